//! The lab: code that the commands which drive a machine share, to answer "which rate does this machine sustain?".
//!
//! ```text
//!  Processors ──profile──▶ Workload ─┐                       ┌─ study: CapacitySearch, play_all ─▶ predicted
//!  (CPU lanes, GPU lanes)            ├─▶ Estimates ─▶ Node ──┤
//!            └───────── lanes ───────┘   (what policies      └─ drive ─▶ LiveReport ─▶ Calibration ─▶ measured
//!  seeds, traces ──▶ Arrivals             know)                                            │
//!                                             ▲                                            │
//!                                             └───────── find_answer: predicted, measured ─┘
//! ```
//!
//! 1. [`Processors`] are opened on an index. CPU cores share queries by a [method](Multicore), and [`GpuChoice`]
//!    decides about GPUs and their streams.
//! 2. Query costs on them are measured, or read from a file ([`workload_of_index`]).
//! 3. A [`Node`] runs that workload on these processors. Simulator and live driver use the same arrivals.
//! 4. [`find_answer`] predicts the rate with query costs *under load*, measured on backlogs (a [`Calibration`]). Then it
//!    drives the node live between a rate that holds and a higher rate that does not.
//!
//! [`study`](tandem_model::study) has the steps that need no machine: estimates, arrivals, and the search by simulation.
//! The lab prints nothing and knows no command-line options. Failures are [`LabError`].

mod answer;
mod calibration;
mod error;
mod live_record;
mod machine;
mod node;
pub mod record;
mod simulated_node;
mod workload;

pub use answer::{
    Answer, Disagreement, Driven, DrivenRun, Effort, Estimate, LiveCapacity, LiveSearch, Prediction, Question, Scope,
    Side, Vote, find_answer,
};
pub use calibration::{Calibration, ServiceRow, ServiceRun};
pub use error::LabError;
pub use live_record::{KEPT_SHARE, above_floor, is_paused};
pub use machine::host_info::HostInfo;
pub use machine::processors::{GpuChoice, Multicore, Processors, Wanted, gpu_executor};
pub use machine::system_load::SystemLoad;
pub use machine::{POWER_BATCHES, gpu_watts, idle_watts, measure_machine};
pub use node::{GpuSource, LiveReport, LiveRunSpec, Node};
pub use workload::{asked, kept_workload, settle_gpu_times, workload_of_index};
