//! The machine that a run is on: processors, each of a class, on a device.
//!
//! ```text
//!                cpu worker   cpu worker   gpu stream 0   gpu stream 1   gpu stream 0
//!   processor        0            1             2              3              4
//!   class           cpu          cpu           gpu            gpu            gpu
//!   device           0            0             0              0              1
//! ```
//!
//! A **processor** is a lane that takes work: a CPU worker thread, or a stream of a GPU. A **class** is what costs are
//! measured and predicted for: a query costs about the same on all processors of a class, and something else on those
//! of another, so that costs, estimates and utilisations come by class ([`PerClass`]). A **device** is what lanes share:
//! two streams of one GPU slow each other, two GPUs don't. A lane's **depth** is how many batches it holds at once: of
//! two, one runs while the host prepares the other.
//!
//! Simulated and live machines are described alike. What stands behind a processor (a core, several that share a query,
//! a stream, or the recorded times of one) is known to [`live`](crate::live) only.

mod class;
mod faults;
mod idle;
mod processors;

pub use class::{Class, PerClass};
pub use faults::{FaultKind, FaultPlan, LaneFault, PATIENCE, PlannedFault};
pub use idle::Idle;
pub use processors::{Machine, Processor};
