//! What exists only to re-run the papers: no search, no simulation and no live run comes through here.
//!
//! | folder | contents |
//! | --- | --- |
//! | `ding/` | Ding, He, Yan, Suel, WWW 2009: GPU methods against the CPU |
//! | `wang/` | Wang et al., ICPADS 2017: pruned list caching |
//! | `huang/` | Huang et al., 2017: block-max queries by document ranges |
//! | `wei/` | Wei, JaJa, IPDPS 2011: indexing on CPUs and GPUs |
//! | `tatikonda/` | Tatikonda, Cambazoglu, Junqueira, SIGIR 2011: queries on many cores |
//! | [`codec`] | the integer codecs of the papers and their rivals, with their measurement |
//!
//! Each paper's folder has its methods and, in `experiments/`, its tables and figures. Kernel folders have the same names.
//!
//! [`EXPERIMENTS`] names every table and figure of the five papers, and what can be re-run in this version. An
//! experiment is one file with a function from a [`Context`] to [`Findings`]: the paper's numbers beside ours, and
//! charts where the paper drew them:
//!
//! ```text
//! EXPERIMENTS ──▶ tatikonda::experiments::fig4::run(&Context) ──▶ Findings ──▶ a table
//!                       │                              ├────────▶ NAME.csv (quantity, unit, paper, ours)
//!                 index, queries                       └────────▶ NAME-CHART.csv, .svg (paper dashed, ours solid)
//! ```
//!
//! The papers' collections are not ours to ship, and their machines are gone. Ratios between methods are what can be
//! compared; absolute times tell of the fifteen years between.

pub mod codec;
mod context;
pub mod ding;
mod error;
mod findings;
#[cfg(feature = "gpu")]
mod huang;
mod registry;
pub mod tatikonda;
pub mod wang;
pub mod wei;

pub use context::{Context, Input, InputSource, Kept, RealLog, RealSource, Steps};
pub use error::ExperimentError;
pub use findings::{Chart, Findings, Line};
pub use registry::{EXPERIMENTS, Experiment, GpuUse, Here, Run};

#[cfg(test)]
#[path = "../../../tests/skipped/mod.rs"]
mod skipped;
