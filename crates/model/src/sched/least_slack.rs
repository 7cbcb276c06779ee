//! `least-slack`: an idle lane takes the job that can wait least: deadline minus predicted time on the lane's class.
//!
//! Unlike [`edf`](super::edf), which looks at deadlines alone, it starts a long query before a short one that is due at the same
//! time. The slacks of all waiting jobs fall at one pace, so that their order never changes while they wait. Of jobs of equal
//! slack the most important one goes first.
//!
//! Source: Dertouzos and Mok, "Multiprocessor On-Line Scheduling of Hard-Real-Time Tasks", IEEE Transactions on Software
//! Engineering 1989.

use super::order::Order;
use super::registry::PolicyEntry;
use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError};
use crate::base::ids::JobId;
use crate::base::machine::{Class, Machine, PerClass};
use crate::base::time::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    for_comparison: true,
    ..PolicyEntry::new("least-slack", "A processor takes the query that can wait least", |setup| {
        Ok(Box::new(LeastSlack::new(setup.machine())?))
    })
};

#[derive(Clone, Debug)]
struct LeastSlack {
    classes: Vec<Class>,
    /// By class, all waiting jobs by the latest start that meets the deadline, then by importance.
    latest_start: PerClass<Order<(Nanos, u8)>>,
}

impl LeastSlack {
    fn new(machine: &Machine) -> Result<Self, PolicyError> {
        PolicyError::require(machine, ENTRY.name, &[])?;
        Ok(Self { classes: machine.classes().collect(), latest_start: PerClass::default() })
    }
}

impl Policy for LeastSlack {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, job: &Job, jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        for &class in &self.classes {
            let latest_start = job.deadline - job.alone(class);
            self.latest_start[class].push((latest_start, job.priority), job.id, jobs);
        }
        LanesToPoll::ClassThenOthers(job.preferred_class())
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, _now: Nanos, batch: &mut Vec<JobId>) -> Next {
        match self.latest_start[lane.class].first(jobs).filter(|_| lane.under_way == 0) {
            Some((_, job)) => {
                batch.push(job.id);
                Next::Run
            }
            None => Next::Wait,
        }
    }
}
