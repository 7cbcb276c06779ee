//! The driver's end of a lane: orders, completions, and the replacement of its thread.

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;

use tandem_model::base::machine::FaultKind;
use tandem_model::base::time::Nanos;

use super::clock::since;
use super::ending::LiveError;
use super::pinning::Cores;
use super::ring::{Completion, Rings, Survived};
use super::worker::Worker;

/// A lane as the driver sees it.
#[derive(Debug)]
pub(super) enum Lane {
    /// A thread takes its batches from rings.
    Worker(WorkerLane),
    /// The recorded times pass in the driver's event queue.
    Recorded,
}

/// The driver's end of a lane's rings.
pub(super) struct WorkerLane {
    pub(super) rings: Arc<Rings>,
    /// Turns ordered, and completions seen.
    pub(super) ordered: u32,
    pub(super) seen: u32,
    /// Whether the lane lets recorded times pass instead of working.
    pub(super) pretends: bool,
    /// Whether the lane was given up: its thread is still at some batch.
    pub(super) is_lost: bool,
    /// State needed only when the lane fails, kept apart from what every batch needs.
    pub(super) threads: Box<Threads>,
}

/// The threads of a lane: the present one, and a template for its replacement.
pub(super) struct Threads {
    pub(super) had_fallback: bool,
    pub(super) affinity: CpuAffinity,
    /// The initial state of each thread; it never changes.
    pub(super) worker: Worker,
    pub(super) current: Option<JoinHandle<()>>,
}

impl fmt::Debug for WorkerLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ordered, seen, pretends, is_lost, .. } = self;
        f.debug_struct("WorkerLane")
            .field("ordered", ordered)
            .field("seen", seen)
            .field("pretends", pretends)
            .field("is_lost", is_lost)
            .finish_non_exhaustive()
    }
}

/// The cores that the thread of a lane may use.
#[derive(Clone, Debug)]
pub(super) struct CpuAffinity {
    pub(super) cores: Cores,
    pub(super) is_gpu: bool,
    /// The lane's number among GPU lanes, or the first of its cores among the CPU workers'.
    pub(super) number: usize,
}

impl CpuAffinity {
    pub(super) fn apply(&self) {
        if self.is_gpu {
            self.cores.pin_gpu(self.number);
        } else {
            self.cores.pin_worker(self.number);
        }
    }
}

impl WorkerLane {
    pub(super) fn under_way(&self) -> u32 {
        self.ordered.wrapping_sub(self.seen)
    }

    /// Whether the lane lets recorded times pass instead of working.
    pub(super) fn pretends(&self) -> bool {
        self.pretends
    }

    /// The slot of the oldest batch under way, from 0 to below [`slots`](Self::slots).
    pub(super) fn oldest_slot(&self) -> usize {
        self.rings.slot(self.seen.wrapping_add(1))
    }

    pub(super) fn next_slot(&self) -> usize {
        self.rings.slot(self.ordered.wrapping_add(1))
    }

    pub(super) fn slots(&self) -> usize {
        self.rings.slots()
    }

    /// Orders a batch; a lane that pretends works `until` that time. A query with which other lanes may help begins on
    /// `lanes` lanes; else they are 0. A worker that falls asleep at this very moment is woken by a later
    /// [look](Self::wake_if_asleep); the driver looks often while the lane has work.
    pub(super) fn order(&mut self, rows: impl ExactSizeIterator<Item = u32>, until: u64, lanes: u32) {
        self.ordered = self.ordered.wrapping_add(1);
        self.rings.order(self.ordered, rows, until, lanes);
    }

    /// Moves the end of the oldest batch under way, on a lane that pretends.
    pub(super) fn set_until(&self, until: u64) {
        self.rings.set_until(self.seen.wrapping_add(1), until);
    }

    /// The number of the lane's executor among those of the CPU lanes.
    pub(super) fn executor_number(&self) -> usize {
        self.threads.affinity.number
    }

    #[inline]
    pub(super) fn wake_if_asleep(&self) {
        self.rings.worker.wake_if_asleep();
    }

    #[inline]
    pub(super) fn has_completion(&self) -> bool {
        self.rings.has_completed(self.seen.wrapping_add(1))
    }

    pub(super) fn take_completion(&mut self) -> Option<Completion> {
        let completion = self.rings.completed(self.seen.wrapping_add(1))?;
        self.seen = self.seen.wrapping_add(1);
        Some(completion)
    }

    /// Whether the fallback executor has replaced the lane's own permanently, or has failed itself.
    pub(super) fn is_retired(&self) -> bool {
        self.threads.had_fallback && !self.rings.has_fallback()
    }

    /// Hands the lane to another thread with the fallback executor, which begins with the oldest batch under way, of
    /// `queries` queries. Returns the fault, with the time since the lane pool was made; `None` without a fallback.
    ///
    /// # Errors
    /// If the system gives no thread; the fallback is lost then, too.
    pub(super) fn take_over(&mut self, queries: usize, watchdog: Nanos) -> Option<Result<Survived, LiveError>> {
        let (taken, again) = (self.seen, self.under_way());
        let (fallback, thread) = self.rings.hand_on()?;
        let replacement = Worker { thread, taken, completed: taken, again, ..self.threads.worker.clone() };
        let affinity = self.threads.affinity.clone();
        let serve = move || {
            affinity.apply();
            replacement.serve(fallback);
        };
        let name = format!("replacement of lane {}", self.threads.worker.processor);
        match std::thread::Builder::new().name(name).spawn(serve) {
            // The replaced thread ends when its call returns, or never.
            Ok(thread) => self.threads.current = Some(thread),
            Err(e) => return Some(Err(LiveError::NoThread(e.to_string()))),
        }
        let what = format!("nothing was heard of a batch for {:.0} ms", watchdog.as_ms());
        let at = since(self.threads.worker.epoch);
        Some(Ok(Survived { at, kind: FaultKind::Hang, queries, is_retired: true, what }))
    }

    /// Gives the lane up and returns its number of batches under way. Its thread is abandoned, and no later run can use
    /// the lane.
    pub(super) fn give_up(&mut self) -> u32 {
        let under_way = self.under_way();
        self.rings.abandon();
        (self.seen, self.is_lost) = (self.ordered, true);
        // Joining this thread at the end might never return.
        self.threads.current = None;
        under_way
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    pub(super) fn take_failure(&self) -> Option<LiveError> {
        self.rings.take_failure()
    }

    /// The faults survived since the last call.
    pub(super) fn take_survived(&self) -> Vec<Survived> {
        self.rings.take_survived()
    }

    /// Waits until the answers of all completed batches have been compared, and reports their first error.
    pub(super) fn settle(&self) -> Result<(), LiveError> {
        while !self.is_lost && !self.rings.is_checked(self.seen) {
            std::thread::yield_now();
        }
        self.take_failure().map_or(Ok(()), Err)
    }
}
