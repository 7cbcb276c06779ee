//! Studies on simulated machines: capacity searches, comparisons of policies, sweeps and plans.
//!
//! ```text
//!  Workload ─▶ Estimates ─▶ SimQuery ─┐
//!  SimulatedMachine ──────────────────┼─▶ Experiment ─▶ CapacitySearch, play_all, Comparison, sweep, plan
//!  seeds, traces ─▶ Arrivals ─────────┘
//! ```
//!
//! 1. Query costs are read from a file or shipped ([`named_workload`]). Policies see [`Estimates`] of costs, never the true
//!    costs.
//! 2. [Arrivals](crate::sim::Arrivals) are [drawn](draw_all) from seeds or come from a [trace](traced).
//! 3. [`CapacitySearch`] finds the highest rate that a policy sustains; [`Judge`] decides for one run, simulated or live.
//!
//! A study prints nothing and knows no command-line options. It reports progress to [`Progress`], and failures as
//! [`StudyError`].

mod capacity;
mod comparison;
mod delays;
mod draws;
mod error;
mod estimates;
mod faults;
mod fleet;
pub mod forecast;
mod gap;
pub mod interval;
mod measured;
mod objective;
mod pairs;
mod peak;
pub mod plan;
mod progress;
pub mod simulated;
mod summary;
pub mod sweep;
mod workload;

pub(crate) use capacity::COVERED_QUERIES;
pub use capacity::{
    Capacity, CapacitySearch, ClosedForm, Coverage, Judge, Played, QueryError, RunLength, play_all, relaxation,
};
pub use comparison::{Comparison, PolicyForecast, PolicyResults, short_runs};
pub use draws::{draw_all, traced};
pub use error::StudyError;
pub use estimates::length_threshold::{QueryLengths, best_length_threshold};
pub use estimates::{Estimates, sim_queries};
pub use faults::read_faults;
pub use fleet::{Fewest, Fleet, SPEED_SPREAD, needs_dispatcher, usual_policies, workers};
pub use forecast::Forecast;
pub use gap::{Gap, gaps};
pub use measured::never_measured;
pub use objective::{Bound, Criterion, Objective, Unsteady, Verdict};
pub use pairs::{Difference, driven_pairs, paired};
pub use peak::{Peak, avoids_peak, peak};
pub use progress::{Progress, Silent, in_pieces};
pub use simulated::{
    DELAY_QUERIES, GPU_LANE_DEPTH, NamedMachine, SimulatedMachine, about_queries, experiment, extrapolated,
};
pub use summary::{PriorityTally, Summary, Tally};
pub use workload::{named_workload, named_workload_in, rows_in};
