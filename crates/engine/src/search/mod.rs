//! Executors find the k best documents of a query, on a CPU or a GPU.
//!
//! All executors return the same documents with the same scores, bit for bit:
//! [`Bm25::score`](crate::index::Bm25::score), summed in the query's term order. The smaller document wins a tie. The
//! exhaustive algorithm in [`cpu`] is the reference.

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

use tandem_base::base::ids::DocId;
use tandem_base::base::machine::Class;
use tandem_base::traffic::Mode;

use crate::query::Query;
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

/// The most batches that a GPU's [`Pipeline`] holds.
pub const PIPELINE_DEPTH: usize = 4;
/// The largest `k` that executors take; a GPU takes fewer.
pub const MAX_K: usize = 10_000;

/// Why a query could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The GPU could not be used, or failed.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// The index exceeds the number range of its device form.
    #[error(
        "the index takes {count} {what} on the GPU, which counts up to 4294967295 of them; CPU executors have no such limit"
    )]
    TooLarge {
        /// The unit that is counted.
        what: &'static str,
        /// The number of units.
        count: u64,
    },
    /// `k` is 0 or above [`MAX_K`].
    #[error("k is {0}, expected 1 to {MAX_K}")]
    BadK(usize),
    /// The query has more terms than [`Query::MAX_TERMS`].
    #[error("the query has {0} terms, expected at most {most}", most = Query::MAX_TERMS)]
    TooManyTerms(usize),
    /// The query exceeds a limit of the GPU's kernels. A CPU can answer it.
    #[error("{what} {count}; the GPU takes up to {most}, a CPU up to {cpu_most}")]
    BeyondGpu {
        /// The quantity, in words that the number follows.
        what: &'static str,
        /// The query's value.
        count: usize,
        /// The GPU's limit.
        most: usize,
        /// The CPU's limit.
        cpu_most: usize,
    },
    /// The number of GPU threads per query is not possible.
    #[error("{threads} threads per query, expected a multiple of 32 up to {most}")]
    BadThreads {
        /// The requested number.
        threads: u32,
        /// The largest number.
        most: u32,
    },
    /// A thread panicked during the search, which is a bug. Other queries continue.
    #[error("a thread panicked while it searched; this is a bug")]
    Panicked,
    /// The system refused a new thread.
    #[error("cannot start a thread: {0}")]
    NoThread(String),
}

/// Checks the number of requested documents. Fails with [`ExecError::BadK`] if it is out of range.
pub fn check_k(k: usize) -> Result<(), ExecError> {
    if (1..=MAX_K).contains(&k) { Ok(()) } else { Err(ExecError::BadK(k)) }
}

/// Checks a query and its `k` against the limits of all executors. Fails with [`ExecError::BadK`] or
/// [`ExecError::TooManyTerms`] if a limit is exceeded.
pub fn check(query: &Query, k: usize) -> Result<(), ExecError> {
    check_k(k)?;
    let num_terms = query.terms.len();
    if num_terms <= Query::MAX_TERMS { Ok(()) } else { Err(ExecError::TooManyTerms(num_terms)) }
}

/// Times of a finished query or batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Execution {
    /// Device time in microseconds from the start of the first kernel to the end of the last, without idle gaps.
    pub device_us: Option<f64>,
    /// Microseconds in which the calling thread prepared requests and read answers, if measured. Waiting is not
    /// included.
    pub host_us: Option<f64>,
}

/// Sizes and time of an index upload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UploadReport {
    /// Device memory of lists and norms in bytes.
    pub device_bytes: u64,
    /// Host memory of host-resident rows, which kernels read across the bus, in bytes.
    pub host_bytes: u64,
    /// Bytes copied to the device.
    pub copied_bytes: u64,
    /// Seconds from the first copy to the last written list.
    pub seconds: f64,
}

/// One query of a batch. A batch may mix modes and values of k.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The query.
    pub query: &'a Query,
    /// How its terms are combined.
    pub mode: Mode,
    /// The number of requested documents.
    pub k: usize,
}

/// Answers of a batch in the order of its requests. Batches reuse the memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    hits: Vec<Hit>,
    /// The end of each answer in `hits`.
    ends: Vec<usize>,
}

impl Answers {
    /// Removes all answers.
    pub fn clear(&mut self) {
        self.hits.clear();
        self.ends.clear();
    }

    /// Adds the answer of the next request, best hit first.
    pub fn push(&mut self, hits: &[Hit]) {
        self.hits.extend_from_slice(hits);
        self.ends.push(self.hits.len());
    }

    /// Like [`push`](Self::push), of hits that `append` appends in place.
    #[cfg(feature = "gpu")]
    pub(crate) fn push_by<T>(&mut self, append: impl FnOnce(&mut Vec<Hit>) -> T) -> T {
        let returned = append(&mut self.hits);
        self.ends.push(self.hits.len());
        returned
    }

    /// Adds the answers of another batch in their order.
    pub fn append(&mut self, others: &Self) {
        let before = self.hits.len();
        self.hits.extend_from_slice(&others.hits);
        self.ends.extend(others.ends.iter().map(|end| before + end));
    }

    /// The number of answered requests.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no request has been answered.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Iterates over the answers in order.
    pub fn iter(&self) -> impl Iterator<Item = &[Hit]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.hits[start..end])
    }
}

/// An executor that prepares one batch while the device runs another. Batches end in submission order.
pub trait Pipeline {
    /// The most batches in flight.
    fn depth(&self) -> usize;

    /// Prepares and launches a batch and returns while it runs. Fewer than [`depth`](Self::depth) batches must be in
    /// flight. Fails if a request is out of range or the device fails. The batch is then not in flight.
    fn submit(&mut self, batch: &[Request<'_>]) -> Result<(), ExecError>;

    /// Polls the oldest batch in flight: `None` while it runs. When it has ended, its answers replace `answers`. Fails
    /// if the device failed. The batch is then lost.
    fn poll(&mut self, answers: &mut Answers) -> Option<Result<Execution, ExecError>>;
}

/// Finds the k best documents of queries, on one thread at a time.
pub trait Executor: Send {
    /// The processor class.
    fn class(&self) -> Class;

    /// The name of the CPU or GPU.
    fn device(&self) -> String;

    /// Replaces `hits` by at most `k` best documents, best first. Fails if `k` is out of range or the device fails. The
    /// executor stays usable after an error.
    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError>;

    /// Like [`search`](Self::search), but executors that cooperate may [help](Self::help) while it runs. `lanes` of them,
    /// this one included, are expected to begin with it, and others may follow. Fails as for [`search`](Self::search).
    fn search_shared(
        &mut self,
        query: &Query,
        mode: Mode,
        k: usize,
        _lanes: u32,
        hits: &mut Vec<Hit>,
    ) -> Result<Execution, ExecError> {
        self.search(query, mode, k, hits)
    }

    /// Answers a batch and waits for it. By default requests run one after another. Fails if a [`search`](Self::search)
    /// fails. The content of `answers` is then unspecified.
    fn search_batch(&mut self, batch: &[Request<'_>], answers: &mut Answers) -> Result<Execution, ExecError> {
        answers.clear();
        let mut hits = Vec::new();
        for &Request { query, mode, k } in batch {
            self.search(query, mode, k, &mut hits)?;
            answers.push(&hits);
        }
        Ok(Execution::default())
    }

    /// The pipeline of batches, if the executor has one.
    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        None
    }

    /// Works briefly on the query of another executor, if executors cooperate: on that of executor number `lead`, or on any.
    /// Callers repeat it while they have no own query.
    fn help(&mut self, lead: Option<usize>) -> Help {
        let _ = lead;
        Help::Never
    }

    /// The number of busy cores: the caller's and those of own helper threads.
    fn num_cores(&self) -> usize {
        1
    }
}

/// The result of an offer to help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// This executor does not help others, or only those that are named.
    Never,
    /// No executor needs help at the moment.
    NotNow,
    /// A task of another executor's query was done.
    Given,
}
