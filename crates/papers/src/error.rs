//! Errors of experiments.

use crate::codec::CodecError;
use crate::wang::cache::CacheError;
use tandem_core::index::IndexError;
use tandem_core::indexing::BuildError;
use tandem_core::search::ExecError;
use tandem_core::search::device::GpuError;
use tandem_core::sim::SimError;

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
