//! Executors: they find the k best documents of a query, on a CPU or a GPU.
//!
//! Every executor returns the same documents with the same scores, bit for bit: BM25 as
//! [`Bm25::score`](crate::index::Bm25::score) has it, terms added in the query's order, ties to the smaller document.
//! The reference is the exhaustive one in [`cpu`].

pub mod cpu;
pub mod gpu;
mod topk;

use crate::ids::DocId;
use crate::machine::ProcessorKind;
use crate::query::{Mode, Query};

pub use topk::TopK;

/// One result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The document.
    pub doc: DocId,
    /// Its score.
    pub score: f32,
}

/// The largest `k` that executors take.
pub const MAX_K: usize = 1000;

/// Why a query could not be executed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// There is no GPU to use: no driver, no device, or one too old.
    #[error("no GPU to use: {0}; CPU executors need none")]
    NoGpu(String),
    /// The index does not fit into device memory.
    #[error("the index needs {needed_bytes} bytes of device memory, {free_bytes} are free")]
    DoesNotFit {
        /// What the index takes there.
        needed_bytes: u64,
        /// What is free.
        free_bytes: u64,
    },
    /// The index is larger than the device's form of it can be, whatever the memory.
    #[error("the index takes {count} {what} on the GPU, which counts up to 4294967295 of them")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many there would be.
        count: u64,
    },
    /// A CUDA call failed.
    #[error("{doing}: {message}")]
    Cuda {
        /// The kernel or call, and the query at hand.
        doing: String,
        /// The driver's name for the error.
        message: String,
    },
    /// `k` is 0 or above [`MAX_K`].
    #[error("k is {0}, expected 1 to {MAX_K}")]
    BadK(usize),
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
pub(crate) fn check_k(k: usize) -> Result<(), ExecError> {
    if (1..=MAX_K).contains(&k) { Ok(()) } else { Err(ExecError::BadK(k)) }
}

/// What is known after a query ran.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Execution {
    /// The device's own time in microseconds, where it has a clock of its own (GPU events).
    pub device_us: Option<f64>,
}

/// Finds the k best documents of queries, one after another. It belongs to one thread at a time.
pub trait Executor: Send {
    /// What it runs on.
    fn kind(&self) -> ProcessorKind;

    /// What it runs on, in words: the CPU's or the GPU's name.
    fn device(&self) -> String;

    /// Replaces `hits` by the at most `k` best documents, best first.
    ///
    /// # Errors
    /// If `k` is out of range or the device fails. It can be called again after an error.
    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError>;

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
