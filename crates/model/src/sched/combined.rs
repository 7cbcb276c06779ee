//! `combined`: GPUs run waiting jobs in batches. CPU workers run jobs that gain least from a batch, and jobs that cannot wait.
//!
//! ```text
//!               by age ──────────▶ GPU: all that waits, oldest first, as one batch
//!   arrival ──┤
//!               by what a batch     CPU: the job on which a batch gains least, if the CPU
//!               gains on it ─────▶       has it done before a GPU would
//! ```
//!
//! The gain of a query from a batch is its cost alone on a CPU divided by the cost that it *adds* to a batch. Its cost alone
//! on a GPU does not matter, since sixteen queries take a GPU little longer than one. Sorting by this ratio is optimal for the
//! linear program of the capacity region ([`bounds`](crate::sim::bounds)), which also gives its smallest ratios to the CPUs.
//!
//! A CPU worker leaves a job alone that the next batch would finish sooner. At low load every query therefore runs where it is
//! answered first, as under `mct`. Under load batches grow, the next batch is far away, and the workers are always busy. With
//! a long queue a worker takes a few short jobs at once, which saves dispatcher decisions.
//!
//! Each job is in one order per class of workers. A job costs O(log n), amortised.

use super::batching::BatchLimits;
use super::forecast::Forecast;
use super::order::Order;
use super::registry::PolicyEntry;
use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyOptions};
use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::cost::{BatchLoad, MachineModel};

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    batches: true,
    ..PolicyEntry::new(
        "combined",
        "GPUs take batches; CPUs take urgent queries, and those that gain least from a batch",
        |setup| Ok(Box::new(Combined::new(setup.options, setup.model)?)),
    )
};

/// Waiting jobs per worker from which a worker takes several jobs at once.
const CROWD: usize = 4;
const MOST_AT_ONCE: usize = 8;
/// The largest share of the time to a deadline that several jobs at once may take.
const SHARE_AT_ONCE: f64 = 0.01;

#[derive(Clone, Debug)]
pub(super) struct Combined {
    limits: BatchLimits,
    forecast: Forecast,
    batching: Vec<(ProcessorId, Class)>,
    /// Classes whose lanes run single queries.
    workers: Vec<Class>,
    num_workers: usize,
    /// By class of worker: waiting jobs, smallest gain from a batch first.
    gains: PerClass<Order<u64>>,
    /// All waiting jobs as one batch on the first batching class.
    waiting: BatchLoad,
}

impl Combined {
    /// Empty queues. Fails if the machine has no processor, or an option is out of range.
    pub(super) fn new(options: &PolicyOptions, model: &MachineModel) -> Result<Self, PolicyError> {
        options.check()?;
        PolicyError::require(&model.machine, ENTRY.name, &[])?;
        let (batching, workers): (Vec<_>, Vec<_>) = model
            .machine
            .processors()
            .map(|(id, processor)| (id, processor.class))
            .partition(|(_, class)| class.is_gpu());
        let worker_classes = model.machine.classes().filter(|class| !class.is_gpu()).collect();
        Ok(Self {
            limits: BatchLimits::new(options),
            forecast: Forecast::new(model),
            batching,
            workers: worker_classes,
            num_workers: workers.len(),
            gains: PerClass::default(),
            waiting: BatchLoad::default(),
        })
    }

    /// When a GPU would finish if its next batch held all waiting jobs; never without GPUs.
    pub(super) fn gpu_finish(&self, now: Nanos) -> Nanos {
        self.forecast.earliest_finish(&self.batching, &self.waiting, now)
    }

    /// Takes the waiting job that a worker of `class` runs next, if it passes.
    pub(super) fn take_next<'a>(
        &mut self,
        class: Class,
        jobs: &'a Jobs,
        passes: impl FnOnce(&Job) -> bool,
    ) -> Option<&'a Job> {
        let (_, job) = self.gains[class].first(jobs).filter(|(_, job)| passes(job))?;
        self.gains[class].pop();
        self.take(job);
        Some(job)
    }

    /// The batching class that workers are compared with.
    fn batching_class(&self) -> Option<Class> {
        self.batching.first().map(|&(_, class)| class)
    }

    fn take(&mut self, job: &Job) {
        if let Some(class) = self.batching_class() {
            self.waiting = self.waiting.without(BatchLoad::default().with(job.predicted[class]));
        }
    }

    fn batch_for_gpu(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if lane.under_way > 0 {
            let close_at = self.forecast.close_at(lane, jobs.num_waiting());
            if close_at > now {
                return Next::WaitUntil(close_at);
            }
        }
        let load = self.limits.fill(jobs.iter_waiting(), lane, &self.forecast, now, batch);
        if self.batching_class() == Some(lane.class) {
            self.waiting = self.waiting.without(load);
        } else {
            batch.iter().for_each(|&id| self.take(jobs.job(id)));
        }
        self.forecast.start(lane, &load, now);
        Next::Run
    }

    fn batch_for_worker(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if lane.under_way > 0 {
            return Next::Wait;
        }
        let gpu_finish = self.gpu_finish(now);
        let crowd = jobs.num_waiting() / (CROWD * self.num_workers.max(1));
        let most = crowd.clamp(1, MOST_AT_ONCE);
        let mut finish = now + self.forecast.model().handoff[lane.class];
        let mut stop_at = Nanos::MAX;
        while batch.len() < most {
            let in_time = |job: &Job| finish + job.alone(lane.class) <= gpu_finish.min(stop_at);
            let Some(job) = self.take_next(lane.class, jobs, in_time) else { break };
            if batch.is_empty() {
                stop_at = finish + job.allowance().scaled(SHARE_AT_ONCE);
            }
            finish += job.alone(lane.class);
            batch.push(job.id);
        }
        if batch.is_empty()
            && let Some(oldest) = jobs.oldest()
            && oldest.deadline < gpu_finish
            && finish + oldest.alone(lane.class) <= oldest.deadline
        {
            // The job cannot wait for the batch.
            self.take(oldest);
            batch.push(oldest.id);
        }
        if batch.is_empty() { Next::Wait } else { Next::Run }
    }
}

impl Policy for Combined {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, job: &Job, jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        let batching = self.batching_class();
        if let Some(class) = batching {
            self.waiting = self.waiting.with(job.predicted[class]);
        }
        for &class in &self.workers {
            let key = batching.map_or(0, |batching| gain(job.alone(class), job.predicted[batching].added));
            self.gains[class].push(key, job.id, jobs);
        }
        LanesToPoll::ClassThenOthers(job.preferred_class())
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if jobs.num_waiting() == 0 {
            Next::Wait
        } else if lane.class.is_gpu() {
            self.batch_for_gpu(lane, jobs, now, batch)
        } else {
            self.batch_for_worker(lane, jobs, now, batch)
        }
    }

    fn finished(&mut self, lane: Lane, _batch: &[JobId], _jobs: &Jobs, _service: Nanos, now: Nanos) -> LanesToPoll {
        self.forecast.finished(lane, now);
        LanesToPoll::Nobody
    }
}

/// Time of a query on a worker over the time that it adds to a batch, in 1/65536. An integer has a total order.
fn gain(alone: Nanos, added: Nanos) -> u64 {
    (alone.0 as f64 / (added.0 as f64).max(1.0) * 65_536.0) as u64
}

#[cfg(test)]
mod tests {
    use super::super::stealing::tests::{CPU, GPU, job};
    use super::*;
    use crate::base::machine::Machine;

    #[test]
    fn waiting_load_equals_the_sum_of_waiting_jobs() {
        let options = PolicyOptions { batch_limit: 1, ..PolicyOptions::default() };
        let mut policy = Combined::new(&options, &Machine::new(1, 1).into()).unwrap();
        let mut jobs = Jobs::default();
        let mut batch = Vec::new();
        for id in 0..100 {
            let job = job(id, 0, 30 + u64::from(id), 10);
            jobs.arrive(Nanos::ZERO, |_| job);
            policy.arrive(&job, &jobs, Nanos::ZERO);
            // From the third job on, one starts for each that arrives, so that two always wait.
            if id >= 2 {
                batch.clear();
                let lane = if id % 3 == 0 { CPU } else { GPU };
                if policy.next(lane, &jobs, Nanos::ZERO, &mut batch) != Next::Run {
                    policy.next(GPU, &jobs, Nanos::ZERO, &mut batch);
                }
                jobs.start(batch[0]);
            }
            let waiting = jobs.iter_waiting().map(|job| job.predicted[Class::GPU]);
            let expected = waiting.fold(BatchLoad::default(), BatchLoad::with);
            assert_eq!(policy.waiting, expected, "after job {id}");
        }
    }
}
