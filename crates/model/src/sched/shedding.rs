//! Load shedding: jobs that can no longer meet their deadline are dropped instead of run.
//!
//! Above its capacity, a machine that answers everything answers everything late: each query waits for others that are already
//! late. Dropping these leaves time for queries that can still meet their deadline.
//!
//! ```text
//!   shed=late   a lane takes up job j:   now + predicted service alone on the lane's class  >  deadline of j   ──▶ dropped
//! ```
//!
//! The dispatcher applies this rule under every policy, simulated and live. It checks the jobs of a batch before the start, by
//! the policy's own estimates. The batch starts without dropped jobs. Every objective counts them as late.

use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, Shed};
use crate::base::ids::JobId;
use crate::base::time::Nanos;

pub(super) struct Shedding {
    pub(super) inner: Box<dyn Policy>,
    pub(super) shed: Shed,
}

impl Policy for Shedding {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn arrive(&mut self, job: &Job, jobs: &Jobs, now: Nanos) -> LanesToPoll {
        self.inner.arrive(job, jobs, now)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        self.inner.next(lane, jobs, now, batch)
    }

    fn finished(&mut self, lane: Lane, batch: &[JobId], jobs: &Jobs, service: Nanos, now: Nanos) -> LanesToPoll {
        self.inner.finished(lane, batch, jobs, service, now)
    }

    fn shares_jobs(&self) -> bool {
        self.inner.shares_jobs()
    }

    fn joins_running(&self) -> bool {
        self.inner.joins_running()
    }

    fn sheds(&self) -> Shed {
        self.shed
    }
}
