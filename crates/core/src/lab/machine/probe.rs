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
    /// Whether lanes wait until a batch is whole; the number of queries is then a multiple of it.
    pub(super) is_whole: bool,
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
            // Where batches cannot be that large, the last queries may not fill one.
            least: PerClass::two(1, if self.is_whole && batch == self.busy.batch { batch } else { 1 }),
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
    /// Fewest queries with which a batch starts.
    least: PerClass<usize>,
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
        if queue.len() < self.least[lane.class] || !self.is_used[lane.processor.index()] {
            return Next::Wait;
        }
        let count = self.batch[lane.class].min(queue.len());
        batch.extend(queue.drain(..count));
        Next::Run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ProcessorId;
    use crate::base::machine::Machine;

    #[test]
    fn a_batch_starts_when_it_is_whole_or_at_once() {
        let machine: MachineModel = Machine::default().with_gpus(1, 1, 4).into();
        let model = MachineModel {
            batches: PerClass::two(None, Some(crate::cost::BatchCost { most_queries: 64, ..Default::default() })),
            ..machine
        };
        let started = |is_whole| {
            let probe = Probe { busy: Busy { cpus: 0, gpus: 1, batch: 4 }, gain: 1.0, is_whole };
            let mut policy = probe.build(&model).unwrap();
            let lane = Lane { processor: ProcessorId(0), class: Class::GPU, under_way: 0 };
            let jobs = Jobs::default();
            let mut sizes = Vec::new();
            for id in 0..9 {
                policy.arrive(&Job { id: JobId(id), ..Job::default() }, &jobs, Nanos::ZERO);
                let mut batch = Vec::new();
                if policy.next(lane, &jobs, Nanos::ZERO, &mut batch) == Next::Run {
                    sizes.push(batch.len());
                }
            }
            sizes
        };
        assert_eq!(started(true), [4, 4]);
        assert_eq!(started(false), [1; 9]);
    }
}
