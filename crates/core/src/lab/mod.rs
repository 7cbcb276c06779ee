//! The lab: what all commands that ask "what does this machine sustain?" have in common.
//!
//! ```text
//!  Processors ──profile──▶ Workload ─┐                       ┌─ simulate: CapacitySearch, play_all ─▶ predicted
//!  (CPU lanes, GPU lanes)            ├─▶ Estimates ─▶ Node ──┤
//!            └───────── lanes ───────┘   (what policies      └─ drive ─▶ LiveOutcome ─▶ Calibration ─▶ measured
//!  seeds, traces ──▶ Arrivals             are told)                                       │
//!                                             ▲                                           │
//!                                             └──── Validation: predicted beside measured ┘
//! ```
//!
//! 1. [`Processors`] are opened on an index: CPU cores that share queries by some [method](Multicore), and GPUs with their
//!    streams, if there are any and they are wanted ([`GpuChoice`]).
//! 2. What queries cost on them is measured, or read ([`named_workload`], [`workload_of_index`]).
//! 3. A [`Node`] is these processors at work on that workload. What policies are told of costs are [`Estimates`], never
//!    the costs themselves.
//! 4. [Arrivals](crate::sim::Arrivals) are [drawn](draw) from seeds or come from a [trace](traced); simulator and driver
//!    take the same ones.
//! 5. [`CapacitySearch`] finds the highest rate that a policy sustains in simulation; [`Validation`] drives the node at
//!    rates around it and finds the same live. Before each live run a backlog shows what queries cost *while others are
//!    served*: a [`Calibration`].
//!
//! The lab prints nothing, draws nothing and knows no options: whoever waits is told by [`Progress`], and what goes wrong
//! is a [`LabError`], which speaks of what the lab was given.

mod answer;
mod capacity;
mod comparison;
mod delays;
mod draws;
mod error;
mod estimates;
mod faults;
mod machine;
mod node;
mod objective;
pub mod plan;
mod progress;
mod summary;
pub mod sweep;
mod validation;
mod workload;

pub use answer::{Answer, Disagreement, LiveCheck, LiveRate, Question, answer};
pub use capacity::{Capacities, Capacity, CapacitySearch, Judge, Played, RunLength, play_all};
pub use comparison::{Comparison, PolicyResults};
pub use draws::{draw, draw_all, traced};
pub use error::LabError;
pub use estimates::length_threshold::{QueryLengths, best_length_threshold};
pub use estimates::regret::{DELAY_QUERIES, Regret, experiment, regret, regret_pieces};
pub use estimates::{Estimates, sim_queries};
pub use faults::read_faults;
pub use machine::host_info::HostInfo;
pub use machine::interference::Interference;
pub use machine::processors::{GPU_LANE_DEPTH, GpuChoice, Multicore, Processors, Wanted, gpu_executor};
pub use machine::{MachineSample, MeasuredMachine, Stage, adopt_machine, measure_contention, measure_machine};
pub use node::{GpuSource, LiveRunSpec, Node, in_stream};
pub use objective::{Criterion, Objective, Verdict};
pub use progress::{Progress, Silent, in_pieces};
pub use summary::{Summary, Tally};
pub use validation::calibration::{Calibration, ServiceRow, ServiceRun};
pub use validation::compared::{Compared, ComparedRun, Parts, Repeated};
pub use validation::{
    LogSink, LoggedRun, Validated, Validation, ValidationCapacityRow, ValidationOptions, ValidationRow,
};
pub use workload::{asked, kept_workload, named_workload, named_workload_in, settle_gpu_times, workload_of_index};
