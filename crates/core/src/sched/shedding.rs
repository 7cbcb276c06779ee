//! Shedding load: jobs that cannot meet their deadline any more are dropped instead of run.
//!
//! Beyond its capacity a machine that answers everything answers everything late: each query waits for those before it, which
//! are late already. Dropping these leaves the time to queries that can still be answered in it.
//!
//! ```text
//!   shed=late   a lane takes up job j:   now + predicted service alone on the lane's class  >  deadline of j   ──▶ dropped
//! ```
//!
//! The rule is the dispatcher's, the same under every policy, simulated and live: what a policy takes up is looked at before
//! it starts, by what the policy knew, too. A batch starts without those that were dropped. Every objective counts them as
//! late.

use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy};
use crate::base::ids::JobId;
use crate::base::time::Nanos;

/// What is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shed {
    /// Nothing
    #[default]
    Nothing,
    /// Queries that are predicted to finish after their deadline when a processor takes them up
    Late,
}

impl Shed {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Nothing, Self::Late];

    /// `nothing` or `late`, as in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Late => "late",
        }
    }
}

impl std::fmt::Display for Shed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Another policy, which lets load be shed.
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

    fn sheds(&self) -> Shed {
        self.shed
    }
}
