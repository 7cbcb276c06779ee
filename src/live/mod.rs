//! Driving real executors with the same scheduler code.
//!
//! The loop is the simulator's: the same [`Dispatcher`](crate::sched::Dispatcher), the same policies, the same
//! [`EventQueue`](crate::sched::EventQueue) with its rule for ties. What differs is the clock, which cannot be told to
//! jump, and the processors, which finish when they finish:
//!
//! ```text
//!              ┌────────────── driver thread ──────────────┐       ┌─ worker thread 0 (CPU) ─┐
//!  plan ──────▶│ arrivals   EventQueue      Dispatcher     │─batch▶│ Executor::search        │
//!  (arrivals)  │            replayed        Policy ──▶ log │◀─done─│ answer checked          │
//!              └───────────────────────────────────────────┘       └─ worker thread 1 (GPU) …┘
//! ```
//!
//! - **Open loop.** A query is released at its arrival time whatever the backlog, and its delay counts from the
//!   *intended* arrival. A driver that waited for answers before it sent more (a closed loop) would offer less load
//!   just when the system is slow, and never see the delays that matter. How late the driver itself was is logged
//!   (`released` − `arrival`) and summed up as [`LiveOutcome::lag`].
//! - **Replay.** In the place of a processor that this machine lacks, a lane can take the *recorded* time of each
//!   query: a completion in the driver's event queue, due that much after the start. It has no thread on purpose: on
//!   two cores, one is the driver's and one the CPU worker's; a third thread that spins to hit a time exactly would
//!   take from either the very time that is being measured.
//! - **Manual clock.** With all lanes replayed and a clock that jumps, the driver writes exactly the log that the
//!   simulator writes. That test is why the loop is generic over its clock.
//! - **Answers are checked.** Every answer's length is compared with the profile's, and every answer of a query with
//!   its first, whichever processor gave it. Speed measured on wrong answers is worth nothing.
//!
//! Layers: `live` uses `exec` and `sched`, and knows nothing of `sim`.

mod clock;
mod driver;
mod ending;
mod interrupt;
mod pinning;
mod plan;
mod queries;
mod replay;
mod run;
mod worker;

pub use ending::{Ending, LiveError};
pub use interrupt::{interrupt, interrupted};
pub use plan::plan;
pub use queries::{LiveQuery, QuerySet};
pub use replay::RecordedTimes;
pub use run::{LiveOutcome, LiveRun, Spread, run, run_under_manual_clock};
pub use worker::{Fleet, GpuLane, Gpus};
