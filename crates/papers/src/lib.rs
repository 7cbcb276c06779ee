//! Methods and experiments of five papers, re-run on the machine at hand.
//!
//! | folder | contents |
//! | --- | --- |
//! | `ding/` | Ding, He, Yan, Suel, WWW 2009: GPU methods against the CPU |
//! | `wang/` | Wang et al., ICPADS 2017: pruned list caching |
//! | `huang/` | Huang et al., 2017: block-max queries by document ranges |
//! | `wei/` | Wei, JaJa, IPDPS 2011: indexing on CPUs and GPUs |
//! | `tatikonda/` | Tatikonda, Cambazoglu, Junqueira, SIGIR 2011: queries on many cores |
//! | [`codec`] | integer codecs of the papers and their rivals |
//!
//! Each folder of a paper holds its methods and, in `experiments/`, its tables and figures. Kernel folders have the same
//! names. Search, simulation and live runs do not use this crate.
//!
//! [`EXPERIMENTS`] lists every table and figure. An experiment is one file with a function from a [`Context`] to
//! [`Findings`]: the numbers of the paper, ours, and charts where the paper has them.
//!
//! ```text
//! EXPERIMENTS ──▶ tatikonda::experiments::fig4::run(&Context) ──▶ Findings ──▶ a table
//!                       │                              ├────────▶ NAME.csv (quantity, unit, paper, ours)
//!                 index, queries                       └────────▶ NAME-CHART.csv, .svg (paper dashed, ours solid)
//! ```
//!
//! The papers' collections and machines are not available. Ratios between methods can be compared; absolute times show
//! the progress of hardware since then.

mod claims;
pub mod codec;
mod context;
pub mod ding;
mod error;
mod findings;
#[cfg(feature = "gpu")]
mod huang;
mod measure;
mod registry;
mod results;
mod tatikonda;
#[cfg(feature = "gpu")]
mod wang;
pub mod wei;

pub use claims::{Claim, Verdict, check, foreign_rows, judge, judge_folder, read_claims, write_claims};
pub use context::{Context, Input, InputSource, PageRank, RealLog, RealSource, SharedSetup};
pub use error::ExperimentError;
use error::Result;
pub use findings::Findings;
pub use registry::{Availability, EXPERIMENTS, Experiment, GpuUse, Run};
pub use results::Results;

#[cfg(all(test, feature = "gpu"))]
#[path = "../../../tests/occupied/mod.rs"]
mod occupied;
#[cfg(test)]
#[path = "../../../tests/skipped/mod.rs"]
mod skipped;
#[cfg(test)]
mod test_support;
