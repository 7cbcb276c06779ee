//! Errors of experiments.

use tandem_engine::index::IndexError;
use tandem_engine::indexing::BuildError;
use tandem_engine::search::ExecError;
use tandem_engine::search::device::GpuError;
use tandem_model::sim::SimError;

use crate::codec::CodecError;

/// Result of an experiment, or of a part with its own error `E`.
pub(crate) type Result<T, E = ExperimentError> = std::result::Result<T, E>;

/// Reason why an experiment ended without findings.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The input does not suit the experiment; the user can change it.
    #[error("{0}")]
    Input(String),
    /// A method gave a wrong answer.
    #[error("{0}")]
    Wrong(String),
    /// An executor failed.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A GPU is missing or failed.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// An index cannot be made or read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Text cannot be indexed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A simulation failed.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A memory cannot be divided as requested; the user can change the request.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A codec refused a list.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// Reason why a memory cannot be divided or used as requested.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CacheError {
    /// The share λ is out of range.
    #[error("the admitted share of a list (λ) is {0}, expected above 0 and at most 1")]
    BadShare(f64),
    /// The buffer is too small for every query.
    #[error(
        "a buffer of {buffer_bytes} bytes holds none of the {num_queries} queries: the smallest needs {needed_bytes} bytes"
    )]
    BufferTooSmall {
        /// Size of the buffer.
        buffer_bytes: u64,
        /// Bytes of the smallest query.
        needed_bytes: u64,
        /// Number of queries.
        num_queries: usize,
    },
    /// Cache and buffer exceed the free memory.
    #[error(
        "cache and buffer take {wanted_bytes} bytes ({cache_bytes} and {buffer_bytes}), {free_bytes} are free \
         (choose a smaller budget)"
    )]
    MoreThanFree {
        /// Bytes of both.
        wanted_bytes: u64,
        /// Bytes of the cache.
        cache_bytes: u64,
        /// Bytes of the buffer.
        buffer_bytes: u64,
        /// Free bytes.
        free_bytes: u64,
    },
    /// Lists that are needed together exceed the budget.
    #[error(
        "lists of {wanted_bytes} bytes are needed at once, {room_bytes} of the budget's {budget_bytes} can be free"
    )]
    DoesNotFit {
        /// Bytes of the lists.
        wanted_bytes: u64,
        /// Bytes of the budget that are not pinned.
        room_bytes: u64,
        /// Bytes of the budget.
        budget_bytes: u64,
    },
}
