//! From text to an index file, by any indexer.
//!
//! ```text
//! Collection ──Indexer──▶ Inverted ──▶ documents checked ──▶ IndexWriter ◀── merged lists
//! ```
//!
//! An indexer turns text into lists. All indexers give the same file, byte for byte: documents are numbered in the
//! collection's order, terms come in byte order, and [`ListEncoder`](crate::index::ListEncoder) packs the lists.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::budget::{Budget, give_back};
use super::documents::{self, OfInverted, SegmentDocuments};
use super::error::BuildError;
use super::invert::HashIndexer;
use super::journal;
use super::progress::Progress;
use crate::corpus::{Collection, Skipped, Tokenizer};
use crate::index::{Bm25, IndexFolder, IndexWriter};

/// Options of building an index from text.
#[derive(Debug)]
pub struct BuildOptions {
    /// Cuts text into terms.
    pub tokenizer: Tokenizer,
    /// BM25's parameters for the stored impacts.
    pub bm25: Bm25,
    /// Number of threads, at least 1.
    pub threads: usize,
    /// Memory limit of the process in bytes, beyond which data goes to disk. `None` stands for no limit.
    pub memory_bytes: Option<u64>,
}

impl BuildOptions {
    /// The memory budget of the build.
    pub fn budget(&self) -> Budget {
        Budget::new(self.memory_bytes, self.threads)
    }
}

/// Totals of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuildSummary {
    /// Documents indexed.
    pub documents: u64,
    /// Tokens in them.
    pub tokens: u64,
    /// Bytes of the collection, decompressed.
    pub bytes: u64,
    /// Files and records that were skipped.
    pub skipped: Skipped,
    /// Runs that were written to disk.
    pub runs_on_disk: usize,
    /// Bytes that an interrupted build had already done.
    pub resumed_bytes: u64,
    /// Durations of the stages.
    pub stages: Stages,
}

/// Durations of a build's consecutive stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// From text to runs, or to what else an indexer makes.
    pub inverting: Duration,
    /// The part of that time in which the reader waited for workers. It is short where reading is the bottleneck.
    pub reader_waited: Duration,
    /// Looking for repeated ids, and computing norms.
    pub checking: Duration,
    /// Merging and packing lists.
    pub merging: Duration,
    /// Writing directories, dictionary, lengths and ids, until everything is on disk.
    pub finishing: Duration,
}

/// A method to turn text into lists.
pub trait Indexer: fmt::Debug {
    /// Reads and inverts all of `collection`. Data that does not stay in memory goes into the journal's folder inside
    /// `dir`, which the caller removes. Any thread may call `progress`.
    ///
    /// # Errors
    /// The error of the collection's first unreadable document, or a failure of the disk or of threads.
    fn invert(
        &mut self,
        collection: Collection,
        dir: &Path,
        options: &BuildOptions,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Arc<dyn Inverted>, BuildError>;
}

/// An inverted collection, whose lists are still in pieces.
pub trait Inverted: fmt::Debug + Send + Sync {
    /// Totals so far, without documents and tokens.
    fn summary(&self) -> BuildSummary;

    /// Passes the documents of each batch to `visit`, in the collection's order.
    fn for_each_segment(
        &self,
        visit: &mut dyn FnMut(&SegmentDocuments) -> Result<(), BuildError>,
    ) -> Result<(), BuildError>;

    /// Number of documents in all batches.
    fn num_docs(&self) -> u64;

    /// Bytes of memory in use.
    fn bytes(&self) -> u64;

    /// Appends each term's list to `writer`, in byte order of the terms.
    ///
    /// # Errors
    /// If stored data can't be read again or is damaged, or the index can't be written.
    fn merge_into(
        &self,
        writer: &mut IndexWriter,
        options: &BuildOptions,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(), BuildError>;
}

/// Indexes `collection` into folder `dir` with Tandem's own indexer. Any thread may call `progress`.
///
/// # Errors
/// If a document can't be read, an id occurs twice, there is nothing to index, another process writes into the folder,
/// or the index can't be written. A previous index stays then.
pub fn build_from_text(
    collection: Collection,
    dir: &Path,
    options: &BuildOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<BuildSummary, BuildError> {
    build_by(&mut HashIndexer, collection, dir, options, progress)
}

/// Indexes as [`build_from_text`] does, with an indexer of choice. The index is the same.
pub fn build_by(
    indexer: &mut dyn Indexer,
    collection: Collection,
    dir: &Path,
    options: &BuildOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<BuildSummary, BuildError> {
    let folder = IndexFolder::claim(dir)?;
    let budget = options.budget();
    if let Some(need) = budget.lacks_for_any() {
        progress(Progress::Exceeding(need));
    }
    let (paths, may_repeat) = (collection.paths().to_vec(), collection.may_repeat());
    let mut stage = Instant::now();
    let mut lap = || std::mem::replace(&mut stage, Instant::now()).elapsed();
    let built = indexer.invert(collection, dir, options, progress).and_then(|inverted| {
        let mut summary = inverted.summary();
        summary.stages.inverting = lap();
        if summary.runs_on_disk > 0 {
            give_back();
        }
        if let Some(need) = budget.lacks_for_documents(inverted.num_docs(), inverted.bytes()) {
            progress(Progress::Exceeding(need));
        }
        let digests_bytes = budget.digests_bytes(inverted.num_docs(), inverted.bytes());
        let doc_lengths = if may_repeat {
            documents::lengths(&*inverted)?
        } else {
            documents::check(&*inverted, &paths, digests_bytes)?
        };
        summary.documents = doc_lengths.len() as u64;
        summary.tokens = doc_lengths.iter().map(|&length| u64::from(length)).sum();
        let source = Box::new(OfInverted(Arc::clone(&inverted)));
        let mut writer = IndexWriter::create_in(folder, doc_lengths, source, options.bm25, &options.tokenizer.name())?;
        writer.limit_memory(budget.columns_bytes());
        summary.stages.checking = lap();
        inverted.merge_into(&mut writer, options, progress)?;
        summary.stages.merging = lap();
        writer.finish()?;
        summary.stages.finishing = lap();
        Ok(summary)
    });
    // Runs are of no use after an error in the text, but they are after a full disk, for example.
    if matches!(built, Ok(_) | Err(BuildError::Input(_))) {
        journal::remove(dir).map_err(|e| BuildError::of(dir, "cannot remove what the build left", &e))?;
    }
    built
}
