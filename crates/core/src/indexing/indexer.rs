//! From text to an index file, by any indexer: what all ways have in common.
//!
//! ```text
//! Collection ──Indexer──▶ Inverted ──▶ documents checked ──▶ IndexWriter ◀── merged lists
//! ```
//!
//! An indexer is a way from text to lists; how they become one file, and that they become the same file, byte for byte, is
//! not its affair alone: documents are numbered in the collection's order, terms come in byte order, and a list is packed by
//! [`ListEncoder`](crate::index::ListEncoder).

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::documents::{self, OfInverted, SegmentDocuments};
use super::{Budget, BuildError, HashIndexer, Progress, allocator, journal};
use crate::corpus::{Collection, Skipped, Tokenizer};
use crate::index::{Bm25, IndexFolder, IndexWriter};

/// How to build an index from text.
#[derive(Debug)]
pub struct BuildOptions {
    /// How text is cut into terms.
    pub tokenizer: Tokenizer,
    /// BM25's parameters, for the stored impacts.
    pub bm25: Bm25,
    /// Threads; at least 1.
    pub threads: usize,
    /// Memory that the process may take, in bytes; what has no room in it goes to disk. No limit if `None`.
    pub memory_bytes: Option<u64>,
}

impl BuildOptions {
    /// The memory that the build may take.
    pub fn budget(&self) -> Budget {
        Budget::new(self.memory_bytes, self.threads)
    }
}

/// What a build did.
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
    /// Runs that went to disk.
    pub runs_on_disk: usize,
    /// Of the bytes, those that an interrupted build had done already.
    pub resumed_bytes: u64,
    /// Where the time went.
    pub stages: Stages,
}

/// What a build's stages took, one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// From text to runs, or what else an indexer makes.
    pub inverting: Duration,
    /// Of that, what the reader waited for whoever inverts: little where reading is what takes long.
    pub reader_waited: Duration,
    /// Looking for ids that occur twice, and documents' norms.
    pub checking: Duration,
    /// Merging and packing lists.
    pub merging: Duration,
    /// Writing what waited for that: directories, dictionary, lengths, ids; until all is on disk.
    pub finishing: Duration,
}

/// A way from text to lists.
pub trait Indexer: fmt::Debug {
    /// Reads all of `collection` and inverts it. What does not stay in memory goes into the journal's folder inside `dir`,
    /// which is the caller's to remove. `progress` is told now and then, by any thread.
    ///
    /// # Errors
    /// If a document can't be read: the collection's first that can't. Or if the disk or the threads fail.
    fn invert(
        &mut self,
        collection: Collection,
        dir: &Path,
        options: &BuildOptions,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Arc<dyn Inverted>, BuildError>;
}

/// A collection as lists, in pieces still.
pub trait Inverted: fmt::Debug + Send + Sync {
    /// What was done so far; documents and tokens are not counted yet.
    fn summary(&self) -> BuildSummary;

    /// Shows the documents of each batch, in the collection's order.
    ///
    /// # Errors
    /// Those of `visit`, or if they can't be read again.
    fn for_each_segment(
        &self,
        visit: &mut dyn FnMut(&SegmentDocuments) -> Result<(), BuildError>,
    ) -> Result<(), BuildError>;

    /// Documents in all batches.
    fn num_docs(&self) -> u64;

    /// Bytes of memory in use.
    fn bytes(&self) -> u64;

    /// Appends each term's list to `writer`, in byte order of the terms.
    ///
    /// # Errors
    /// If what was kept can't be read again or is damaged, or the index can't be written.
    fn merge_into(
        &self,
        writer: &mut IndexWriter,
        options: &BuildOptions,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(), BuildError>;
}

/// Indexes `collection` into folder `dir`, Tandem's own way. `progress` is told now and then, by any thread.
///
/// # Errors
/// If a document can't be read, an id occurs twice, there is nothing to index, another process writes into the folder,
/// or the index can't be written. An index that was there stays then.
pub fn build_from_text(
    collection: Collection,
    dir: &Path,
    options: &BuildOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<BuildSummary, BuildError> {
    build_by(&mut HashIndexer::default(), collection, dir, options, progress)
}

/// As [`build_from_text`], by an indexer of choice: the index is the same.
///
/// # Errors
/// As [`build_from_text`], and those of the indexer.
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
            allocator::give_back();
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
    // Runs are of use again only where nothing is wrong with the text: a disk that was full, for one.
    if matches!(built, Ok(_) | Err(BuildError::Input(_))) {
        journal::remove(dir).map_err(|e| BuildError::of(dir, "cannot remove what the build left", &e))?;
    }
    built
}
