//! The machine of a run: processors of classes, on devices.
//!
//! ```text
//!                cpu worker   cpu worker   gpu stream 0   gpu stream 1   gpu stream 0
//!   processor        0            1             2              3              4
//!   class           cpu          cpu           gpu            gpu            gpu
//!   device           0            0             0              0              1
//! ```
//!
//! A **processor** is a lane that takes work: a CPU worker thread, or a stream of a GPU. A **class** is the unit of
//! measured and predicted costs. A query costs about the same on all processors of a class, so costs, estimates and
//! utilisations are stored by class ([`PerClass`]). A **device** is shared by lanes: two streams of one GPU slow each
//! other, two GPUs don't. A lane's **depth** is the number of batches that it holds at once: of two, one runs while the
//! host prepares the other.
//!
//! Simulated and live machines have the same description. Only `live` knows the thread or stream behind a processor:
//! a core, several that share a query, a stream, or the recorded times of one.

mod class;
mod faults;
mod idle;
mod processors;

pub use class::{Class, PerClass};
pub use faults::{FaultKind, FaultPlan, LaneFault, PATIENCE, PlannedFault};
pub use idle::Idle;
pub use processors::{Machine, Processor};
