//! Early ends of a run, and the watchdog of its lanes.

use std::sync::atomic::Ordering;

use tandem_model::base::machine::FaultPlan;
use tandem_model::base::time::Nanos;
use tandem_model::cost::{Rerun, ServiceTimes};
use tandem_model::sched::Job;

use super::{Driver, Limits, fail, lane_fault};
use crate::live::clock::Clock;
use crate::live::ending::{Ending, LiveError};
use crate::live::record::Record;
use crate::live::worker_lane::Lane;

/// Time between two checks of whether the run is lost.
const LOOK: Nanos = Nanos(500_000_000);
/// A backlog grows if each of this many looks found it longer than the one before. A pause of the whole machine leaves
/// a long backlog that shrinks.
const GROWN_LOOKS: u32 = 6;

/// Number of looks at a lane during the time that the watchdog waits for it.
const WATCHES: u64 = 100;
/// A look that is late by this many intervals comes from a driver that was held up itself.
const LATE_WATCHES: u64 = 10;

/// What ends a run whose backlog only grows.
pub(super) struct LostRun {
    /// The next check, the jobs in flight at the last one, and the looks in a row that found more of them.
    look_at: Nanos,
    backlog: usize,
    grown: u32,
}

impl Default for LostRun {
    fn default() -> Self {
        Self { look_at: LOOK, backlog: 0, grown: 0 }
    }
}

/// What takes a batch from a lane that does not end it.
pub(super) struct Watchdog {
    /// Time that a lane may spend on a batch.
    patience: Nanos,
    /// Time after which a lane without a fallback is given up.
    lost_after: Nanos,
    /// The next look at the lanes.
    pub(super) look_at: Nanos,
    /// Start of the time in which the driver has looked as often as it should. A gap means that the whole machine stood
    /// still, lanes included.
    awake_since: Nanos,
}

impl Watchdog {
    pub(super) fn of(faults: &FaultPlan) -> Self {
        let (patience, lost_after) = (faults.watchdog, faults.lost_after);
        Self { patience, lost_after, look_at: Nanos::ZERO, awake_since: Nanos::ZERO }
    }
}

impl<C: Clock, T: ServiceTimes, J: Iterator<Item = Job>, R: Record> Driver<'_, C, T, J, R> {
    /// Ends the run early if a limit is reached. Nothing is released or started afterwards; running batches are
    /// awaited.
    pub(super) fn look_at_limits(&mut self, limits: Limits<'_>, now: Nanos) {
        if !self.goes_on() {
            return;
        }
        if limits.stop.load(Ordering::Relaxed) {
            self.ending = Ending::Interrupted;
        } else if let (Some(limit), Some(oldest)) = (limits.abandon_after, self.dispatcher.oldest_arrival())
            && now.since(oldest) > limit
        {
            self.ending = Ending::Overloaded;
        } else if now >= self.lost_run.look_at {
            self.lost_run.look_at = now + LOOK;
            if self.is_hopeless(now) {
                self.ending = Ending::Overloaded;
            }
        }
    }

    /// Whether the run is certain to fail and its backlog only grows.
    #[cold]
    fn is_hopeless(&mut self, now: Nanos) -> bool {
        let backlog = self.dispatcher.in_flight();
        let LostRun { grown, backlog: before, .. } = &mut self.lost_run;
        *grown = if backlog > *before { *grown + 1 } else { 0 };
        *before = backlog;
        let Some(late_after) = self.dispatcher.sink().1.late_after() else { return false };
        if self.lost_run.grown < GROWN_LOOKS || self.coming == self.group.len() {
            return false;
        }
        let overdue = self.dispatcher.unfinished().filter(|job| now.since(job.arrival) > late_after).count();
        self.dispatcher.sink().1.is_lost(overdue)
    }

    /// Lets another thread take over each lane that has been at one batch for longer than the watchdog waits.
    #[cold]
    pub(super) fn watch(&mut self, now: Nanos) {
        let each = Nanos((self.watchdog.patience.0 / WATCHES).max(1));
        if now.since(self.watchdog.look_at) > Nanos(each.0 * LATE_WATCHES) {
            self.watchdog.awake_since = now;
        }
        self.watchdog.look_at = now + each;
        let Watchdog { patience, lost_after, awake_since, .. } = self.watchdog;
        let lanes = &mut self.lanes;
        for word in 0..lanes.working.words() {
            for lane in lanes.working.of_word(word) {
                let Lane::Worker(worker) = &mut lanes.all[lane] else { continue };
                let begun = lanes.starts[lane][worker.oldest_slot()];
                let began = begun.started.max(self.clock.at(lanes.last_done[lane])).max(awake_since);
                if now.since(began) <= patience || worker.has_completion() {
                    continue;
                }
                let queries = self.dispatcher.rows(begun.processor, begun.number).len();
                match worker.take_over(queries, patience) {
                    // A lane without fallback is given up after a longer wait; a lane that only passes the time always
                    // ends.
                    None if now.since(began) > lost_after && !worker.pretends() => {
                        lanes.batches_working -= worker.give_up() as usize;
                        lanes.working.remove(lane);
                        let (processor, waited) = (begun.processor, lost_after);
                        fail(&mut self.ending, LiveError::LaneHangs { processor, waited });
                    }
                    None => {}
                    Some(Ok(survived)) => {
                        let fault = lane_fault(begun.processor, self.clock.at(survived.at), survived);
                        self.dispatcher.rerun(begun.processor, begun.number, &Rerun { fault: Some(fault) });
                    }
                    Some(Err(error)) => fail(&mut self.ending, error),
                }
            }
        }
    }
}
