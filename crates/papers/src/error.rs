//! What can keep an experiment from its findings.

use crate::codec::CodecError;
use crate::wang::cache::CacheError;
use tandem_core::index::IndexError;
use tandem_core::indexing::BuildError;
use tandem_core::search::ExecError;
use tandem_core::search::device::GpuError;
use tandem_core::sim::SimError;

/// Why an experiment ended without findings.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// What it was to run on does not do: the user's to mend.
    #[error("{0}")]
    Input(String),
    /// A method gave a wrong answer.
    #[error("{0}")]
    Wrong(String),
    /// A processor failed.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A GPU failed, or there is none.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// An index can't be made.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Text can't be indexed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A run can't be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A memory can't be divided as asked for: the user's to mend.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A codec refused a list.
    #[error(transparent)]
    Codec(#[from] CodecError),
}
