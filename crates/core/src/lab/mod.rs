//! The lab: code that all commands share to answer "which rate does this machine sustain?".
//!
//! ```text
//!  Processors ──profile──▶ Workload ─┐                       ┌─ simulate: CapacitySearch, play_all ─▶ predicted
//!  (CPU lanes, GPU lanes)            ├─▶ Estimates ─▶ Node ──┤
//!            └───────── lanes ───────┘   (what policies      └─ drive ─▶ LiveReport ──▶ Calibration ─▶ measured
//!  seeds, traces ──▶ Arrivals             know)                                           │
//!                                             ▲                                           │
//!                                             └───────── find_answer: predicted, measured ┘
//! ```
//!
//! 1. [`Processors`] are opened on an index. CPU cores share queries by a [method](Multicore), and [`GpuChoice`]
//!    decides about GPUs and their streams.
//! 2. Query costs on them are measured or read from a file ([`named_workload`], [`workload_of_index`]).
//! 3. A [`Node`] runs that workload on these processors. Policies see [`Estimates`] of costs, never the true costs.
//! 4. [Arrivals](crate::sim::Arrivals) are [drawn](draw_all) from seeds or come from a [trace](traced). Simulator and
//!    live driver use the same arrivals.
//! 5. [`CapacitySearch`] finds the highest rate that a policy sustains in simulation. [`find_answer`] predicts this
//!    rate with query costs *under load*, measured on backlogs (a [`Calibration`]). Then it drives the node live
//!    between a rate that holds and a higher rate that does not.
//!
//! The lab prints nothing and knows no command-line options. It reports progress to [`Progress`], and failures as
//! [`StudyError`] or [`LabError`].

mod answer;
mod calibration;
mod capacity;
mod comparison;
mod delays;
mod draws;
mod error;
mod estimates;
mod faults;
mod fleet;
mod gap;
mod live_record;
mod machine;
mod named_workload;
mod node;
mod objective;
mod pairs;
mod peak;
pub mod plan;
mod progress;
pub mod record;
mod simulated_node;
mod study_error;
mod summary;
pub mod sweep;
mod workload;

pub use answer::{
    Answer, Disagreement, Driven, DrivenRun, Effort, Forecast, LiveCapacity, LiveSearch, Prediction, Question, Scope,
    Side, Vote, find_answer,
};
pub use calibration::{Calibration, ServiceRow, ServiceRun};
pub(crate) use capacity::COVERED_QUERIES;
pub use capacity::{
    Capacity, CapacitySearch, ClosedForm, Coverage, Judge, Played, QueryError, RunLength, play_all, relaxation,
};
pub use comparison::{Comparison, PolicyForecast, PolicyResults, short_runs};
pub use draws::{draw_all, traced};
pub use error::LabError;
pub use estimates::length_threshold::{QueryLengths, best_length_threshold};
pub use estimates::regret::{DELAY_QUERIES, Regret, experiment, regret, regret_pieces};
pub use estimates::{Estimates, sim_queries};
pub use faults::read_faults;
pub use fleet::{Fewest, Fleet, SPEED_SPREAD, needs_dispatcher, usual_policies, workers};
pub use gap::{Gap, gaps};
pub use live_record::{KEPT_SHARE, above_floor, is_paused};
pub use machine::host_info::HostInfo;
pub use machine::pauses::observe_pauses;
pub use machine::processors::{GpuChoice, Multicore, Processors, Wanted, gpu_executor};
pub use machine::simulated::{GPU_LANE_DEPTH, NamedMachine, SimulatedMachine, about_queries, extrapolated};
pub use machine::system_load::SystemLoad;
pub use machine::{POWER_BATCHES, gpu_watts, idle_watts, measure_machine};
pub use named_workload::{named_workload, named_workload_in, rows_in};
pub use node::{GpuSource, LiveReport, LiveRunSpec, Node};
pub use objective::{Bound, Criterion, Objective, Unsteady, Verdict};
pub use pairs::{Difference, paired};
pub use peak::{Peak, avoids_peak, peak};
pub use progress::{Progress, Silent, in_pieces};
pub use study_error::StudyError;
pub use summary::{PriorityTally, Summary, Tally};
pub use workload::{asked, kept_workload, settle_gpu_times, workload_of_index};
