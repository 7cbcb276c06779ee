//! `cpu-only` and `gpu-only`: one FIFO queue for all processors of one class; the others stay idle.
//!
//! These are the first two configurations of Ding et al. 2009, section 9. With c processors of the class it is the textbook's
//! queue with c servers.

use super::registry::PolicyEntry;
use super::{FifoQueues, Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, QueueServers, QueuedJob};
use crate::base::ids::JobId;
use crate::base::machine::{Class, Machine};
use crate::base::time::Nanos;

pub(super) const GPU_ONLY: PolicyEntry = PolicyEntry {
    required_classes: &[Class::GPU],
    may_run_on: |class, _| class == Class::GPU,
    ..PolicyEntry::new("gpu-only", "Everything on the GPUs, first come, first served", |setup| {
        Ok(Box::new(OnlyOn::new(Class::GPU, setup.machine())?))
    })
};

pub(super) const CPU_ONLY: PolicyEntry = PolicyEntry {
    required_classes: &[Class::CPU],
    may_run_on: |class, _| class == Class::CPU,
    ..PolicyEntry::new("cpu-only", "Everything on the CPUs, first come, first served", |setup| {
        Ok(Box::new(OnlyOn::new(Class::CPU, setup.machine())?))
    })
};

#[derive(Clone, Debug)]
struct OnlyOn {
    class: Class,
    name: &'static str,
}

impl OnlyOn {
    /// A policy that uses only processors of `class`. Fails if `machine` has none.
    fn new(class: Class, machine: &Machine) -> Result<Self, PolicyError> {
        let name = if class.is_gpu() { GPU_ONLY.name } else { CPU_ONLY.name };
        PolicyError::require(machine, name, &[class])?;
        Ok(Self { class, name })
    }
}

impl Policy for OnlyOn {
    fn name(&self) -> &str {
        self.name
    }

    fn arrive(&mut self, _job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        LanesToPoll::Class(self.class)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, _now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if lane.class != self.class || lane.under_way > 0 {
            return Next::Wait;
        }
        batch.extend(jobs.oldest().map(|job| job.id));
        if batch.is_empty() { Next::Wait } else { Next::Run }
    }

    fn as_fifo_queues(&mut self) -> Option<&mut dyn FifoQueues> {
        Some(self)
    }
}

impl FifoQueues for OnlyOn {
    fn queues(&self) -> Vec<QueueServers> {
        vec![QueueServers::Class(self.class)]
    }

    fn join(&mut self, _job: QueuedJob<'_>, _now: Nanos) -> usize {
        0
    }
}
