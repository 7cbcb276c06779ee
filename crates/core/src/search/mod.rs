//! Executors: they find the k best documents of a query, on a CPU or a GPU.
//!
//! Every executor returns the same documents with the same scores, bit for bit: BM25 as
//! [`Bm25::score`](crate::index::Bm25::score) has it, terms added in the query's order, ties to the smaller document.
//! The reference is the exhaustive one in [`cpu`].

pub mod cpu;
pub mod device;
#[cfg(feature = "gpu")]
pub mod gpu;
#[cfg(not(feature = "gpu"))]
#[path = "no_gpu.rs"]
pub mod gpu;
#[cfg(feature = "gpu")]
mod placement;
mod topk;

use crate::base::ids::DocId;
use crate::base::machine::Class;
use crate::query::{Mode, Query};
use crate::search::device::GpuError;

pub use topk::TopK;

/// One result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The document.
    pub doc: DocId,
    /// Its score.
    pub score: f32,
}

/// Batches that a GPU's [`Pipeline`] holds at most.
pub const PIPELINE_DEPTH: usize = 4;

/// The largest `k` that executors take; a GPU takes fewer.
pub const MAX_K: usize = 10_000;

/// Why a query could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The GPU could not be used, or failed.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// The index is larger than the device's form of it can be, whatever the memory.
    #[error("the index takes {count} {what} on the GPU, which counts up to 4294967295 of them")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many there would be.
        count: u64,
    },
    /// `k` is 0 or above [`MAX_K`].
    #[error("k is {0}, expected 1 to {MAX_K}")]
    BadK(usize),
    /// The query has more terms than [`Query::MAX_TERMS`].
    #[error("the query has {0} terms, expected at most {most}", most = Query::MAX_TERMS)]
    TooManyTerms(usize),
    /// The query asks for more than the GPU's kernels take: a CPU answers it.
    #[error("{what} {count}; the GPU takes up to {most}, a CPU up to {cpu_most}")]
    BeyondGpu {
        /// What it has too much of, in words that the number follows.
        what: &'static str,
        /// How much it has of it.
        count: usize,
        /// How much the GPU takes.
        most: usize,
        /// How much a CPU takes.
        cpu_most: usize,
    },
    /// A query can't have so many threads of a GPU.
    #[error("{threads} threads a query, expected a multiple of 32 up to {most}")]
    BadThreads {
        /// What was asked for.
        threads: u32,
        /// How many there may be.
        most: u32,
    },
    /// GPUs that are to hold the same are not alike.
    #[error("GPUs that share queries must be alike, and these are not: {0} and {1}")]
    UnequalGpus(String, String),
    /// A thread that took part in the search panicked: a fault of ours. Other queries go on.
    #[error("a thread panicked while it searched; this is a bug")]
    Panicked,
    /// The system gave no thread.
    #[error("cannot start a thread: {0}")]
    NoThread(String),
}

/// Whether so many documents may be asked for.
///
/// # Errors
/// [`ExecError::BadK`] if not.
pub fn check_k(k: usize) -> Result<(), ExecError> {
    if (1..=MAX_K).contains(&k) { Ok(()) } else { Err(ExecError::BadK(k)) }
}

/// Whether executors take this query with this `k`.
///
/// # Errors
/// [`ExecError::BadK`] or [`ExecError::TooManyTerms`] if not.
pub fn check(query: &Query, k: usize) -> Result<(), ExecError> {
    check_k(k)?;
    let num_terms = query.terms.len();
    if num_terms <= Query::MAX_TERMS { Ok(()) } else { Err(ExecError::TooManyTerms(num_terms)) }
}

/// What is known after a query ran, or a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Execution {
    /// The device's own time in microseconds, where it has a clock of its own: from its first kernel's beginning to its
    /// last one's end, less the time between in which it had nothing to do.
    pub device_us: Option<f64>,
    /// What the host did for it, where that is told apart: microseconds in which the calling thread prepared requests and
    /// read answers; not those in which it waited for the device.
    pub host_us: Option<f64>,
}

/// A query as it is asked: one of a batch, in which modes and numbers of results may mix.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The query.
    pub query: &'a Query,
    /// How its terms combine.
    pub mode: Mode,
    /// How many documents it asks for.
    pub k: usize,
}

/// The answers to a batch, in the order of its requests; the memory is used again from batch to batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    hits: Vec<Hit>,
    /// Where each answer ends among the hits.
    ends: Vec<usize>,
}

impl Answers {
    /// Forgets all answers.
    pub fn clear(&mut self) {
        self.hits.clear();
        self.ends.clear();
    }

    /// Adds the answer to the next request, best first.
    pub fn push(&mut self, hits: &[Hit]) {
        self.hits.extend_from_slice(hits);
        self.ends.push(self.hits.len());
    }

    /// Adds the answers of another batch, in their order.
    pub fn append(&mut self, others: &Self) {
        let before = self.hits.len();
        self.hits.extend_from_slice(&others.hits);
        self.ends.extend(others.ends.iter().map(|end| before + end));
    }

    /// How many requests have been answered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The answers, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[Hit]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.hits[start..end])
    }
}

/// An executor that prepares a batch while it runs another: the host's work hides behind the device's.
///
/// Batches end in the order in which they were submitted.
pub trait Pipeline {
    /// How many batches it holds at most.
    fn depth(&self) -> usize;

    /// Prepares and launches a batch, and returns while it runs. There must be room: fewer than [`depth`](Self::depth)
    /// batches under way.
    ///
    /// # Errors
    /// If a request is out of range or the device fails; then this batch was not taken.
    fn submit(&mut self, batch: &[Request<'_>]) -> Result<(), ExecError>;

    /// Looks at the oldest batch under way, without waiting: `None` while it runs. When it has ended, replaces `answers`
    /// by its answers.
    ///
    /// # Errors
    /// If the device failed: then this batch is lost.
    fn poll(&mut self, answers: &mut Answers) -> Option<Result<Execution, ExecError>>;
}

/// Finds the k best documents of queries. It belongs to one thread at a time.
pub trait Executor: Send {
    /// What it runs on.
    fn class(&self) -> Class;

    /// What it runs on, in words: the CPU's or the GPU's name.
    fn device(&self) -> String;

    /// Replaces `hits` by the at most `k` best documents, best first.
    ///
    /// # Errors
    /// If `k` is out of range or the device fails. It can be called again after an error.
    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError>;

    /// Answers a batch, and waits for it: one request after another, unless the executor knows better.
    ///
    /// # Errors
    /// As [`search`](Self::search); then `answers` holds nothing that is worth reading.
    fn search_batch(&mut self, batch: &[Request<'_>], answers: &mut Answers) -> Result<Execution, ExecError> {
        answers.clear();
        let mut hits = Vec::new();
        for &Request { query, mode, k } in batch {
            self.search(query, mode, k, &mut hits)?;
            answers.push(&hits);
        }
        Ok(Execution::default())
    }

    /// Its pipeline of batches, if it has one.
    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        None
    }

    /// Helps other executors with their queries for a moment, if they are made for that. To be called again and again
    /// while there is no query to [`search`](Self::search).
    fn help(&mut self) -> Help {
        Help::Never
    }

    /// How many cores it keeps busy: the caller's, and those of helpers that it has of its own.
    fn num_cores(&self) -> usize {
        1
    }
}

/// What came of an offer to help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// Nothing ever will: this executor works for itself.
    Never,
    /// Nobody needs it now.
    NotNow,
    /// A piece of another executor's query was done.
    Given,
}
