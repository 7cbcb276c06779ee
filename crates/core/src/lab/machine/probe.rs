//! A first-come, first-served policy that keeps some lanes busy and leaves the others idle.

use std::collections::VecDeque;

use crate::base::ids::JobId;
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::cost::MachineModel;
use crate::sched::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyFactory};

/// The lanes to keep busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy {
    /// Number of CPU lanes, counted from the first.
    pub(super) cpus: usize,
    /// Number of GPU lanes, counted from the first.
    pub(super) gpus: usize,
    /// Queries per GPU batch.
    pub(super) batch: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Probe {
    pub(super) busy: Busy,
    /// Expected throughput of a GPU lane with batches, relative to single queries.
    pub(super) gain: f64,
}

impl PolicyFactory for Probe {
    fn name(&self) -> &str {
        "probe"
    }

    fn build(&self, model: &MachineModel) -> Result<Box<dyn Policy>, PolicyError> {
        let mut taken = PerClass::<usize>::default();
        let most = PerClass::two(self.busy.cpus, self.busy.gpus);
        let is_used = model.machine.processors().map(|(_, processor)| {
            taken[processor.class] += 1;
            taken[processor.class] <= most[processor.class]
        });
        let batch = self.busy.batch.min(model.most_queries(Class::GPU).max(1) as usize);
        Ok(Box::new(Probing {
            is_used: is_used.collect(),
            lanes: most,
            gain: PerClass::two(1.0, self.gain),
            batch: PerClass::two(1, batch),
            queues: PerClass::default(),
            queued: PerClass::default(),
        }))
    }
}

struct Probing {
    /// By processor, whether it is kept busy.
    is_used: Vec<bool>,
    lanes: PerClass<usize>,
    gain: PerClass<f64>,
    batch: PerClass<usize>,
    queues: PerClass<VecDeque<JobId>>,
    /// Work queued so far, in seconds per lane.
    queued: PerClass<f64>,
}

impl Policy for Probing {
    fn name(&self) -> &str {
        "probe"
    }

    fn arrive(&mut self, job: &Job, _: &Jobs, _: Nanos) -> LanesToPoll {
        let with = |class: Class| {
            self.queued[class] + {
                let lanes = self.lanes[class] as f64 * self.gain[class];
                job.alone(class).as_secs() / lanes
            }
        };
        let class = match (self.lanes[Class::CPU], self.lanes[Class::GPU]) {
            (_, 0) => Class::CPU,
            (0, _) => Class::GPU,
            _ if with(Class::CPU) <= with(Class::GPU) => Class::CPU,
            _ => Class::GPU,
        };
        self.queued[class] = with(class);
        self.queues[class].push_back(job.id);
        LanesToPoll::Class(class)
    }

    fn next(&mut self, lane: Lane, _: &Jobs, _: Nanos, batch: &mut Vec<JobId>) -> Next {
        let queue = &mut self.queues[lane.class];
        if queue.is_empty() || !self.is_used[lane.processor.index()] {
            return Next::Wait;
        }
        let count = self.batch[lane.class].min(queue.len());
        batch.extend(queue.drain(..count));
        Next::Run
    }
}
