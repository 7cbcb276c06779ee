//! Service times on a machine, from one source for simulated and live runs.
//!
//! The simulator, lanes that replay recorded times, and drivers with simulated threads all ask the same [`ServiceTimes`]:
//! *when will these jobs have finished if they start now on this processor?* The time of a batch is not the sum of its
//! queries' times. Two streams of one GPU share it, and the host prepares a batch while the device runs the previous one:
//!
//! ```text
//!   stream 0   host  |prepare A|prepare B|.........|prepare C|
//!              device          |=====A=====|====B====|.......|==C==|
//!                    start A   start B    A done    B done
//! ```
//!
//! [`BatchCost`] gives the host and device times of a batch. [`MachineModel`] is a machine with all known costs beyond those
//! of single queries. [`MeasuredTimes`] combines both: planned faults
//! around the costs of a machine profile, around the pipeline of threads and devices.

mod batch_cost;
mod machine_model;
mod measured_times;
mod pipeline;
mod profiled;

pub use batch_cost::{BatchCost, BatchLoad, BatchTime, Cost, Exposed};
pub use machine_model::{BatchSizes, LeastUse, MachineModel};
pub use measured_times::MeasuredTimes;

use crate::base::ids::ProcessorId;
use crate::base::machine::LaneFault;
use crate::base::time::Nanos;

/// The finish times of batches on the processors of a machine.
///
/// All starts are reported in order of time. An implementation may keep state, such as concurrent and earlier batches.
pub trait ServiceTimes {
    /// When the queries of these workload rows will have finished if they start together on `processor` at `now`. Batches of
    /// one processor finish in the order of their starts.
    fn start(&mut self, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos;

    /// When the job of this row, which runs on `lead`, will have finished now that another lane joins it at `now`: the last of
    /// `helpers`, which are in the order in which they joined.
    fn join(&mut self, lead: ProcessorId, row: u32, helpers: &[(ProcessorId, Nanos)], now: Nanos) -> Nanos;

    /// The rerun of the last started batch on its lane's fallback executor, if the lane fails meanwhile. It must be asked
    /// after each start.
    #[inline]
    fn take_rerun(&mut self) -> Option<Rerun> {
        None
    }

    /// The preparation of the last started batch, during which the lane's thread notices no other end. It must be asked after
    /// each start. Threads that only let time pass ignore it, since they know their batches' ends already.
    #[inline]
    fn take_preparing(&mut self) -> Option<Preparing> {
        None
    }
}

/// A lane's thread prepares a batch while others of the lane are under way. Ends during the preparation are noticed afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparing {
    /// When the preparation begins.
    pub from: Nanos,
    /// When the batch is launched.
    pub until: Nanos,
}

/// The rerun of a batch on the fallback executor of a failed lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerun {
    /// The fault; `None` if the lane failed with another batch and held this one too.
    pub fault: Option<LaneFault>,
}

impl<T: ServiceTimes + ?Sized> ServiceTimes for &mut T {
    #[inline]
    fn start(&mut self, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos {
        (**self).start(processor, rows, now)
    }

    fn join(&mut self, lead: ProcessorId, row: u32, helpers: &[(ProcessorId, Nanos)], now: Nanos) -> Nanos {
        (**self).join(lead, row, helpers, now)
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
