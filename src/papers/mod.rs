//! What exists only to re-run the papers: no search, no simulation and no live run comes through here.
//!
//! | folder | what lives there |
//! | --- | --- |
//! | [`codec`] | the integer codecs of the papers and their rivals, with the measuring of them |
//! | `daat/` | queries on one core as the papers ran them: coded lists with skips, a document at a time |
//! | `ding_gpu/` | the GPU methods of Ding et al. as they were published |
//! | `ding/` | tables and figures of Ding, He, Yan and Suel, WWW 2009: GPU methods against the CPU |
//! | `ranges/` | queries by document ranges, as Huang et al. published them: AND, OR, WAND and BMW on CPU and GPUs |
//! | `huang/` | tables and figures of Huang et al., 2017 |
//! | `wang/` | figures of Wang et al., ICPADS 2017: pruned list caching, its ranking and order, the CPU's side |
//! | `wang_gpu/` | the GPU's side of it as it was published |
//! | [`trie`] | indexing by a trie of B-trees, as Wei and JaJa 2011 published it |
//! | `tatikonda/` | figures of Tatikonda, Cambazoglu and Junqueira, SIGIR 2011: queries on many cores |
//! | `wei/` | tables and figures of Wei and JaJa, IPDPS 2011: indexing on CPUs and GPUs |
//!
//! [`EXPERIMENTS`] names every table and figure of the five papers, and what can be re-run in this version. An
//! experiment is one file with a function from a [`Context`] to [`Findings`]: the paper's numbers beside ours, and
//! charts where the paper drew them:
//!
//! ```text
//! EXPERIMENTS ──▶ tatikonda::fig4::run(&Context) ──▶ Findings ──▶ a table
//!                       │                              ├────────▶ NAME.csv (quantity, unit, paper, ours)
//!                 index, queries                       └────────▶ NAME-CHART.csv, .svg, .png (paper dashed, ours solid)
//! ```
//!
//! The papers' collections are not ours to ship, and their machines are gone. Ratios between methods are what can be
//! compared; absolute times tell of the fifteen years between.

pub mod codec;
mod context;
mod daat;
mod ding;
#[cfg(feature = "gpu")]
pub(crate) mod ding_gpu;
mod error;
mod findings;
#[cfg(feature = "gpu")]
mod huang;
#[cfg(feature = "gpu")]
mod ranges;
mod registry;
mod tatikonda;
pub mod trie;
mod wang;
#[cfg(feature = "gpu")]
mod wang_gpu;
#[cfg(not(feature = "gpu"))]
#[path = "wang_no_gpu.rs"]
mod wang_gpu;
mod wei;

pub use context::{Context, Input, InputSource, Kept, RealLog, RealSource, Steps};
pub use error::ExperimentError;
pub use findings::{Chart, Findings, Line};
pub use registry::{EXPERIMENTS, Experiment, GpuUse, Here, Run};
