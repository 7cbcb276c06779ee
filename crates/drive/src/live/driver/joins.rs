//! Lanes that help with the job of another lane.
//!
//! ```text
//!   lead      order ─▶ search_shared  |== piece ==|== piece ==|= piece =| answer ─▶ completion
//!   helper    set_lead ───▶ help            |== piece ==|= piece =|         ···      set_lead(None)
//! ```
//!
//! A helper takes pieces of the query from the lead's slot in the pool of tasks that their executors share. It finds none before
//! the lead has published the query, or once all are taken. The lead waits for the pieces that helpers have taken, so that a
//! completed job has no helper at work.

use tandem_model::base::ids::ProcessorId;
use tandem_model::base::time::Nanos;
use tandem_model::cost::ServiceTimes;
use tandem_model::sched::{Job, Join};

use super::Driver;
use crate::live::clock::Clock;
use crate::live::record::Record;
use crate::live::worker_lane::Lane;

impl<C: Clock, T: ServiceTimes, J: Iterator<Item = Job>, R: Record> Driver<'_, C, T, J, R> {
    /// Carries out the joins of the last decision.
    pub(super) fn join_lanes(&mut self, now: Nanos) {
        while let Some(Join { lead, row, helpers }) = self.dispatcher.take_join() {
            match &self.lanes.all[lead.index()] {
                Lane::Recorded => self.queue.move_to(self.times.join(lead, row, helpers, now), lead),
                Lane::Worker(worker) if worker.pretends() => {
                    let finish = self.times.join(lead, row, helpers, now);
                    worker.set_until(self.clock.since_epoch(finish));
                }
                Lane::Worker(worker) => {
                    if let Some(&(helper, _)) = helpers.last()
                        && let Lane::Worker(helper) = &self.lanes.all[helper.index()]
                    {
                        helper.rings.set_lead(Some(worker.executor_number()));
                    }
                }
            }
        }
    }

    /// Lets the helpers of a job that has ended be idle.
    #[inline]
    pub(super) fn release_helpers(&self, lead: ProcessorId) {
        for &(helper, _) in self.dispatcher.helpers(lead) {
            if let Lane::Worker(helper) = &self.lanes.all[helper.index()] {
                helper.rings.set_lead(None);
            }
        }
    }
}
