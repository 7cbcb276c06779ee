//! `cached-first`: GPUs take queries whose lists they hold, in batches, and CPU workers help.
//!
//! `patience` balances the sides. It is the number of queries that may wait for each worker before the workers help. Its best
//! value depends on the machine: 0 shares everything, and a large value keeps the workers idle. The GPU holds all lists, as
//! with a device-resident index; `papers/wang` serves backlogs with smaller caches.
//!
//! Source: Wang et al., "Efficient GPU-based Query Processing with Pruned List Caching in Search Engines", ICPADS 2017,
//! section 4.4, applied to arrivals. A job costs O(1).

use std::collections::VecDeque;

use super::batching::BatchLimits;
use super::forecast::Forecast;
use super::registry::PolicyEntry;
use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyOptions};
use crate::base::ids::JobId;
use crate::base::machine::Class;
use crate::base::time::Nanos;
use crate::cost::MachineModel;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    batches: true,
    ..PolicyEntry::new(
        "cached-first",
        "GPUs take queries whose lists they hold, in batches, CPUs the others, and help (Wang et al.)",
        |setup| Ok(Box::new(CachedFirst::new(setup.options, setup.model)?)),
    )
};

/// GPUs batch all that wait; workers help when the queue is too long.
#[derive(Clone, Debug)]
pub(super) struct CachedFirst {
    limits: BatchLimits,
    forecast: Forecast,
    gpu: Option<Class>,
    worker: Option<Class>,
    /// Queue length above which workers help.
    patience: usize,
    waiting: VecDeque<JobId>,
}

impl CachedFirst {
    /// An empty queue. Fails if the machine has no processor, or an option is out of range.
    fn new(options: &PolicyOptions, model: &MachineModel) -> Result<Self, PolicyError> {
        options.check()?;
        PolicyError::require(&model.machine, ENTRY.name, &[])?;
        let classes: Vec<Class> = model.machine.processors().map(|(_, processor)| processor.class).collect();
        let workers = classes.iter().filter(|class| !class.is_gpu()).count();
        Ok(Self {
            limits: BatchLimits::new(options),
            forecast: Forecast::new(model),
            gpu: classes.iter().copied().find(|class| class.is_gpu()),
            worker: classes.iter().copied().find(|class| !class.is_gpu()),
            patience: options.patience as usize * workers,
            waiting: VecDeque::new(),
        })
    }

    fn batch_for_gpu(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if self.waiting.is_empty() {
            return Next::Wait;
        }
        if lane.under_way > 0 {
            let close_at = self.forecast.close_at(lane, self.waiting.len());
            if close_at > now {
                return Next::WaitUntil(close_at);
            }
        }
        let offered = self.waiting.iter().map(|&id| jobs.job(id));
        let load = self.limits.fill(offered, lane, &self.forecast, now, batch);
        self.waiting.drain(..batch.len());
        self.forecast.start(lane, &load, now);
        Next::Run
    }
}

impl Policy for CachedFirst {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        self.waiting.push_back(job.id);
        self.gpu.or(self.worker).map_or(LanesToPoll::Nobody, LanesToPoll::ClassThenOthers)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if lane.class.is_gpu() {
            return self.batch_for_gpu(lane, jobs, now, batch);
        }
        let helps = lane.under_way == 0 && (self.gpu.is_none() || self.waiting.len() > self.patience);
        batch.extend(if helps { self.waiting.pop_front() } else { None });
        if batch.is_empty() { Next::Wait } else { Next::Run }
    }

    fn finished(&mut self, lane: Lane, _batch: &[JobId], _jobs: &Jobs, _service: Nanos, now: Nanos) -> LanesToPoll {
        self.forecast.finished(lane, now);
        LanesToPoll::Nobody
    }
}

#[cfg(test)]
mod tests {
    use super::super::stealing::tests::{CPU, job};
    use super::*;
    use crate::base::machine::Machine;

    #[test]
    fn a_worker_takes_one_query_at_a_time() {
        let mut policy = CachedFirst::new(&PolicyOptions::default(), &Machine::new(1, 0).into()).unwrap();
        let (mut jobs, job) = (Jobs::default(), job(0, 0, 1, 1));
        jobs.arrive(job.arrival, |_| job);
        policy.arrive(&job, &jobs, job.arrival);
        let mut batch = Vec::new();
        let busy = Lane { under_way: 1, ..CPU };
        assert_eq!(policy.next(busy, &jobs, Nanos::ZERO, &mut batch), Next::Wait);
        assert_eq!(policy.next(CPU, &jobs, Nanos::ZERO, &mut batch), Next::Run);
        assert_eq!(batch, [job.id]);
    }

    #[test]
    fn workers_help_when_too_many_wait_for_each() {
        let options = PolicyOptions { patience: 2, ..PolicyOptions::default() };
        let mut policy = CachedFirst::new(&options, &Machine::new(1, 1).into()).unwrap();
        let mut jobs = Jobs::default();
        for number in 0..3 {
            let mut batch = Vec::new();
            assert_eq!(policy.next(CPU, &jobs, Nanos::ZERO, &mut batch), Next::Wait, "{number} wait");
            let job = job(number, 0, 1, 1);
            jobs.arrive(job.arrival, |_| job);
            policy.arrive(&job, &jobs, job.arrival);
        }
        let mut batch = Vec::new();
        assert_eq!(policy.next(CPU, &jobs, Nanos::ZERO, &mut batch), Next::Run);
        assert_eq!(batch.len(), 1);
    }
}
