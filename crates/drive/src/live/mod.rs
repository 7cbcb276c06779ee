//! Driving real executors with the same scheduler code.
//!
//! The loop is the simulator's: the same [`Dispatcher`](tandem_model::sched::Dispatcher), the same policies, the same
//! [`EventQueue`](tandem_model::sched::EventQueue) with its rule for ties. Only the clock, which cannot jump, and the processors,
//! whose service times are real, differ:
//!
//! ```text
//!              ┌────────────── driver thread ──────────────┐       ┌─ thread of lane 0 (CPU) ┐
//!  plan ──────▶│ arrivals   EventQueue      Dispatcher     │─ring─▶│ Executor::search(_batch)│
//!  (arrivals)  │            recorded        Policy ──▶ log │◀─ring─│ answers checked         │
//!              └───────────────────────────────────────────┘       └─ lane 1 (GPU): Pipeline ┘
//! ```
//!
//! - **Open loop.** A query is released at its arrival time whatever the backlog, and its delay counts from the *intended*
//!   arrival. A driver that waited for answers before it sent more (a closed loop) would offer less load just when the
//!   system is slow, and never see the delays that matter. How late the driver itself was is logged (`released` −
//!   `arrival`) and summed up as [`LiveOutcome::lag`].
//! - **Groups.** The driver takes in all completions and arrivals that are due, then decides once. Orders and completions
//!   travel through a pair of rings for each lane; nothing on the way is locked, allocated or shared by lanes. The driver's
//!   own time for an event is measured as [`LiveOutcome::decision`].
//! - **Recorded lanes.** In the place of a processor that this machine lacks, a lane can take the *recorded* times:
//!   [`ServiceTimes`](tandem_model::cost::ServiceTimes) is asked when a batch will have finished, as in the simulator, and its
//!   completion waits in the driver's event queue. It has no thread on purpose: a third thread that spins on a machine of
//!   two cores would slow the driver and the CPU worker that are being measured.
//! - **Time-warp.** A thread lets the recorded times pass ([`LaneWork::TimeWarp`]). Compared with the simulator, such a run
//!   shows the scheduling costs that predictions miss. Compared with a live run, it shows how far real query costs differ
//!   from the recorded ones. This separates the two errors of a prediction.
//! - **Several lanes for one job.** A policy may start a job on several lanes or let an idle lane join it. A recorded or
//!   time-warped job then ends earlier, as in the simulator. On real executors the helper takes pieces of the query from a
//!   lock-free pool until the job ends (`driver/joins.rs`).
//! - **Manual clock.** With all lanes recorded and a clock that jumps, the driver writes exactly the log that the simulator
//!   writes. That test is why the loop is generic over its clock.
//! - **Lanes survive.** What fails on a lane (an error, a panic, a batch that never ends) is run again on the lane's
//!   fallback executor, by a [rule](tandem_model::base::machine::FaultPlan); the log says so. The same fault plan can be injected
//!   ([`Faulty`]) and simulated.
//! - **Answers are checked.** Every answer's length is compared with the profile's, and every answer of a query with its
//!   first, whichever processor gave it. Speed measured on wrong answers is worth nothing.
//!
//! Layers: `live` uses `exec` and `sched`, and knows nothing of `sim`.

mod clock;
mod driver;
mod ending;
mod faults;
mod gaps;
mod lane_pool;
mod lane_set;
mod outcome;
mod pinning;
mod queries;
mod record;
mod ring;
mod run;
mod served;
mod worker;
mod worker_lane;

pub use ending::{Ending, LiveError};
pub use faults::{Faulty, RunClock};
pub use gaps::{Course, Gap, GapOf, GapSum, LEAST_GAP, SLACK, Third};
pub use lane_pool::{GpuLane, LanePool, LaneWork};
pub use outcome::{LiveOutcome, Spread};
pub use queries::{LiveQuery, QuerySet};
pub use record::Record;
pub use run::{LiveRun, plan, plan_ahead, run, run_under_manual_clock};
pub use served::{Round, ServedBatch};
pub use tandem_model::base::interrupt::{interrupt, interrupt_flag, interrupted};
