//! What work takes on a machine: one place that is asked, whoever plays the work.
//!
//! The simulator, the lanes that replay recorded times and the driver whose threads only pretend to search all ask the
//! same [`ServiceTimes`]: *these jobs start now on this processor; when will they have finished?* A batch is not the sum
//! of its queries, two streams of one GPU share it, and the host prepares a batch while the device runs the one before:
//!
//! ```text
//!   stream 0   host  |prepare A|prepare B|.........|prepare C|
//!              device          |=====A=====|====B====|.......|==C==|
//!                    start A   start B    A done    B done
//! ```
//!
//! [`BatchCost`] says what a batch takes of host and device; [`MachineModel`] is a machine with all that is known of its
//! costs beyond those of single queries; [`MeasuredTimes`] plays the two.

mod batch_cost;
mod machine_model;
mod measured_times;

pub use batch_cost::{BatchCost, BatchLoad, BatchTime, Cost, Exposed};
pub use machine_model::{BatchSizes, Decisions, DispatcherTime, LeastUse, MachineModel};
pub use measured_times::MeasuredTimes;

use crate::base::ids::ProcessorId;
use crate::base::machine::LaneFault;
use crate::base::time::Nanos;

/// When batches finish that start on the processors of a machine.
///
/// It is told of every start, in order of time, and may remember what it needs: what runs beside a batch, what ran
/// before it.
pub trait ServiceTimes {
    /// The queries of these rows of the workload start together on `processor` at `now`: when they will have finished.
    /// Batches of one processor finish in the order in which they start.
    fn start(&mut self, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos;

    /// Whether the batch that was started last will run again on its lane's fallback executor, since the lane fails meanwhile;
    /// to be asked after each start.
    #[inline]
    fn take_rerun(&mut self) -> Option<Rerun> {
        None
    }

    /// When the thread of the lane whose batch was started last sees no other end, since it prepares that one; to be asked after
    /// each start. Threads that only let time pass have been told their batches' ends by then, and do not keep to it.
    #[inline]
    fn take_preparing(&mut self) -> Option<Preparing> {
        None
    }
}

/// A lane's thread prepares a batch while others of its batches are under way: those that end meanwhile are seen to end afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparing {
    /// When it begins,
    pub from: Nanos,
    /// and when the batch is launched.
    pub until: Nanos,
}

/// A batch runs again, on the fallback executor of a lane that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerun {
    /// The fault; `None` where the lane failed with another batch, and held this one, too.
    pub fault: Option<LaneFault>,
}

impl<T: ServiceTimes + ?Sized> ServiceTimes for &mut T {
    #[inline]
    fn start(&mut self, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos {
        (**self).start(processor, rows, now)
    }

    #[inline]
    fn take_rerun(&mut self) -> Option<Rerun> {
        (**self).take_rerun()
    }

    #[inline]
    fn take_preparing(&mut self) -> Option<Preparing> {
        (**self).take_preparing()
    }
}
