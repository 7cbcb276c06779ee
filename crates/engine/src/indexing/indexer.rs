//! Indexers: what turns text into lists.
//!
//! An indexer turns text into lists. All indexers give the same file, byte for byte: documents are numbered in the
//! collection's order, terms come in byte order, and [`ListEncoder`](crate::index::ListEncoder) packs the lists.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::budget::Budget;
use super::error::BuildError;
use super::progress::Progress;
use super::segment::SegmentDocuments;
use crate::corpus::{Collection, Skipped, Tokenizer};
use crate::index::{Bm25, IndexWriter};

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// `dir`, which the caller removes. Any thread may call `progress`. Fails with the error of the collection's first
    /// unreadable document, or a failure of the disk or of threads.
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

    /// Appends each term's list to `writer`, in byte order of the terms. Fails if stored data can't be read again or is
    /// damaged, or the index can't be written.
    fn merge_into(
        &self,
        writer: &mut IndexWriter,
        options: &BuildOptions,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(), BuildError>;
}
