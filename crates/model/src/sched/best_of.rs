//! `best-of`: each query runs on the class that is predicted to answer it sooner. The whole machine runs one query at a time,
//! first come, first served.
//!
//! This is the third configuration of Ding et al. 2009, section 9. It shows the value of choosing the class without
//! parallelism.

use super::job::{preferred_class, soonest_class};
use super::registry::PolicyEntry;
use super::{FifoQueues, Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, QueueServers, QueuedJob};
use crate::base::ids::JobId;
use crate::base::machine::{Class, Machine};
use crate::base::time::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    required_classes: &[Class::CPU, Class::GPU],
    may_run_on: |class, predicted| class == preferred_class(predicted),
    ..PolicyEntry::new("best-of", "Each query on its better processor, one at a time in the whole machine", |setup| {
        Ok(Box::new(BestOf::new(setup.machine())?))
    })
};

#[derive(Clone, Debug)]
struct BestOf {
    is_running: bool,
}

impl BestOf {
    /// A machine-wide queue. Fails if `machine` lacks CPUs or GPUs, since there is then no choice.
    fn new(machine: &Machine) -> Result<Self, PolicyError> {
        PolicyError::require(machine, ENTRY.name, ENTRY.required_classes)?;
        Ok(Self { is_running: false })
    }

    /// The lanes to poll for the job in front; none while a job runs.
    fn lanes_to_poll(&self, jobs: &Jobs) -> LanesToPoll {
        match jobs.oldest() {
            Some(job) if !self.is_running => LanesToPoll::Class(job.preferred_class()),
            _ => LanesToPoll::Nobody,
        }
    }
}

impl Policy for BestOf {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, _job: &Job, jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        self.lanes_to_poll(jobs)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, _now: Nanos, batch: &mut Vec<JobId>) -> Next {
        match jobs.oldest() {
            Some(job) if !self.is_running && job.preferred_class() == lane.class => {
                self.is_running = true;
                batch.push(job.id);
                Next::Run
            }
            _ => Next::Wait,
        }
    }

    fn finished(&mut self, _lane: Lane, _batch: &[JobId], jobs: &Jobs, _service: Nanos, _now: Nanos) -> LanesToPoll {
        self.is_running = false;
        self.lanes_to_poll(jobs)
    }

    fn as_fifo_queues(&mut self) -> Option<&mut dyn FifoQueues> {
        Some(self)
    }
}

impl FifoQueues for BestOf {
    fn queues(&self) -> Vec<QueueServers> {
        Class::ALL.map(QueueServers::Class).to_vec()
    }

    fn is_serial(&self) -> bool {
        true
    }

    fn join(&mut self, job: QueuedJob<'_>, _now: Nanos) -> usize {
        soonest_class(job.alone).index()
    }
}
