//! A first-come, first-served policy that keeps some lanes busy and leaves the others idle.

use std::collections::VecDeque;

use tandem_model::base::ids::JobId;
use tandem_model::base::machine::{Class, PerClass};
use tandem_model::base::time::Nanos;
use tandem_model::cost::MachineModel;
use tandem_model::sched::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyFactory};

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

/// Time within which the rest of a batch arrives.
const REST: Nanos = Nanos(1_000_000);

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

    fn next(&mut self, lane: Lane, _: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        let queue = &mut self.queues[lane.class];
        if !self.is_used[lane.processor.index()] || queue.is_empty() {
            return Next::Wait;
        }
        // The dispatcher takes few arrivals at once, and the rest of the batch is among the next.
        if queue.len() < self.least[lane.class] {
            return Next::WaitUntil(now + REST);
        }
        let count = self.batch[lane.class].min(queue.len());
        batch.extend(queue.drain(..count));
        Next::Run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::base::ids::{ProcessorId, QueryId};
    use tandem_model::base::machine::Machine;
    use tandem_model::cost::Cost;
    use tandem_model::sim::{SimQuery, SimRun, simulate};

    #[test]
    fn a_batch_starts_when_it_is_whole_or_at_once() {
        let machine: MachineModel = Machine::default().with_gpus(1, 1, 4).into();
        let model = MachineModel {
            batches: PerClass::two(
                None,
                Some(tandem_model::cost::BatchCost { most_queries: 64, ..Default::default() }),
            ),
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

    /// A dispatcher may take a part of a batch's arrivals at a time, with nothing else under way.
    #[test]
    fn the_rest_of_a_batch_is_awaited() {
        let machine: MachineModel = Machine::default().with_gpus(1, 1, 4).into();
        let batch = tandem_model::cost::BatchCost { device_fixed_us: 5.0, most_queries: 512, ..Default::default() };
        let model = MachineModel { batches: PerClass::two(None, Some(batch)), ..machine };
        let probe = Probe { busy: Busy { cpus: 0, gpus: 1, batch: 256 }, gain: 1.0, is_whole: true };
        let cost = Cost { alone: Nanos(1000), added: Nanos(10) };
        let costs = PerClass::two(Cost::NEVER, cost);
        let queries = [SimQuery { id: QueryId(0), service: costs, estimate: costs }];
        let arrivals = (0..1024).map(|i| (Nanos(i / 64 * 500), 0));
        let policy = probe.build(&model).unwrap();
        let deadline = Nanos::from_ms(1.0);
        let (priorities, others) = (None, None);
        let run = SimRun { model: &model, policy, seed: 1, queries: &queries, arrivals, deadline, priorities, others };
        let log = simulate(run).unwrap();
        let mut sizes = std::collections::BTreeMap::<u32, usize>::new();
        log.rows.iter().for_each(|row| *sizes.entry(row.batch).or_default() += 1);
        assert_eq!(sizes.into_values().collect::<Vec<_>>(), [256; 4]);
    }
}
