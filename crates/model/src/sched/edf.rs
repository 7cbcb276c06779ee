//! `edf`: any idle lane takes the job with the earliest deadline.
//!
//! On one lane, if any order meets all deadlines of jobs that have arrived, this one does. With one time to the deadline for
//! all queries it is first come, first served. It differs where queries have [priorities](crate::traffic::Priorities): a job that
//! arrived later may be due earlier. Of jobs that are due at once the most important one goes first.
//!
//! Source: Jackson, "Scheduling a Production Line to Minimize Maximum Tardiness", 1955; Liu and Layland, "Scheduling Algorithms
//! for Multiprogramming in a Hard-Real-Time Environment", JACM 1973.

use super::order::Order;
use super::registry::PolicyEntry;
use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError};
use crate::base::ids::JobId;
use crate::base::time::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    for_comparison: true,
    ..PolicyEntry::new("edf", "Any processor takes the query that is due first", |setup| {
        PolicyError::require(setup.machine(), ENTRY.name, &[])?;
        Ok(Box::new(EarliestDeadline::default()))
    })
};

#[derive(Clone, Debug, Default)]
struct EarliestDeadline {
    /// Waiting jobs by deadline, then by importance.
    due: Order<(Nanos, u8)>,
}

impl Policy for EarliestDeadline {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, job: &Job, jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        self.due.push((job.deadline, job.priority), job.id, jobs);
        LanesToPoll::ClassThenOthers(job.preferred_class())
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, _now: Nanos, batch: &mut Vec<JobId>) -> Next {
        match self.due.first(jobs).filter(|_| lane.under_way == 0) {
            Some((_, job)) => {
                batch.push(job.id);
                Next::Run
            }
            None => Next::Wait,
        }
    }
}
