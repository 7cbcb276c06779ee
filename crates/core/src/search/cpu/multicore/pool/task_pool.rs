//! The pool of tasks: queries in flight, and who may take which of their tasks.

use std::sync::atomic::AtomicUsize;

use super::partition::Partition;
use super::slot::Slot;

/// Who may take which task: the schedules of parallel loops, as OpenMP names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Task `i` belongs to core `i`.
    Static,
    /// Whoever comes takes the next one.
    Dynamic,
    /// Whoever comes takes a share of what is left: the half of an even share, so that pieces shrink towards the end.
    Guided,
}

/// The slots, and what holds for all of them.
#[derive(Debug)]
pub struct TaskPool {
    pub(crate) slots: Box<[Slot]>,
    pub(crate) partition: Partition,
    pub(crate) schedule: Schedule,
    /// Cores that have nothing to do, as far as they tell.
    pub(crate) idle: AtomicUsize,
}

impl TaskPool {
    /// A pool of `slots` slots for `workers` cores.
    pub fn new(slots: usize, workers: usize, partition: Partition, schedule: Schedule) -> Self {
        let slots = (0..slots).map(|_| Slot::new(workers)).collect();
        Self { slots, partition, schedule, idle: AtomicUsize::new(0) }
    }

    /// Tasks that nobody has claimed yet, in all slots.
    pub(crate) fn unclaimed(&self) -> usize {
        self.slots.iter().map(|slot| slot.unclaimed() as usize).sum()
    }
}
