//! Early ends of a run, and the watchdog of its lanes.

use std::sync::atomic::Ordering;

use super::{Driver, Limits, fail, lane_fault, members};
use crate::base::time::Nanos;
use crate::cost::{Rerun, ServiceTimes};
use crate::live::clock::Clock;
use crate::live::ending::{Ending, LiveError};
use crate::live::record::Record;
use crate::live::worker_lane::Lane;
use crate::sched::Job;

/// Time between two checks of whether the run is lost.
pub(super) const LOOK: Nanos = Nanos(500_000_000);
/// A backlog grows if each of this many looks found it longer than the one before. A pause of the whole machine leaves
/// a long backlog that shrinks.
const GROWN_LOOKS: u32 = 6;

/// Number of looks at a lane during the time that the watchdog waits for it.
const WATCHES: u64 = 100;
/// A look that is late by this many intervals comes from a driver that was held up itself.
const LATE_WATCHES: u64 = 10;

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
        } else if now >= self.look_at {
            self.look_at = now + LOOK;
            if self.is_hopeless(now) {
                self.ending = Ending::Overloaded;
            }
        }
    }

    /// Whether the run is certain to fail and its backlog only grows.
    #[cold]
    fn is_hopeless(&mut self, now: Nanos) -> bool {
        let backlog = self.dispatcher.in_flight();
        self.grown = if backlog > self.backlog { self.grown + 1 } else { 0 };
        self.backlog = backlog;
        let Some(late_after) = self.dispatcher.sink().1.late_after() else { return false };
        if self.grown < GROWN_LOOKS || self.next_job.is_none() {
            return false;
        }
        let overdue = self.dispatcher.unfinished().filter(|job| now.since(job.arrival) > late_after).count();
        self.dispatcher.sink().1.is_lost(overdue)
    }

    /// Lets another thread take over each lane that has been at one batch for longer than the watchdog waits.
    #[cold]
    pub(super) fn watch(&mut self, now: Nanos) {
        let each = Nanos((self.watchdog.0 / WATCHES).max(1));
        if now.since(self.watch_at) > Nanos(each.0 * LATE_WATCHES) {
            self.awake_since = now;
        }
        self.watch_at = now + each;
        for word in 0..self.working.len() {
            for lane in members(word, self.working[word]) {
                let Lane::Worker(worker) = &mut self.lanes[lane] else { continue };
                let begun = self.starts[lane][worker.oldest_slot()];
                let began = begun.started.max(self.clock.at(self.last_done[lane])).max(self.awake_since);
                if now.since(began) <= self.watchdog || worker.has_completion() {
                    continue;
                }
                let queries = self.dispatcher.rows(begun.processor, begun.number).len();
                match worker.take_over(queries, self.watchdog) {
                    // A lane without fallback is given up after a longer wait; a lane that only passes the time always
                    // ends.
                    None if now.since(began) > self.lost_after && !worker.pretends() => {
                        self.batches_working -= worker.give_up() as usize;
                        self.working[word] &= !(1 << (lane % 64));
                        let (processor, waited) = (begun.processor, self.lost_after);
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
