//! `cached-first`: GPUs take queries whose lists they hold, in batches. CPU workers take the others.
//!
//! ```text
//!               the GPU holds all of its lists ──▶ GPU: all that wait, oldest first, as one batch
//!   arrival ──┤                                          ▲ those of the CPUs' that are too many for the workers
//!               it lacks some of them ───────────▶ CPU: the oldest; of the GPUs', if these are too many
//! ```
//!
//! `patience` balances the sides. It is the number of queries that may wait for each worker before the other side helps. Its
//! best value depends on the machine: 0 shares everything, and a large value keeps the sides apart.
//!
//! A policy built by name assumes that the GPU holds all lists, as with a device-resident index. GPUs then batch all waiting
//! queries, and workers help when more than `patience` queries per worker wait. [`CachedFirst::with_held`] takes the queries
//! whose lists a smaller cache holds.
//!
//! Source: Wang et al., "Efficient GPU-based Query Processing with Pruned List Caching in Search Engines", ICPADS 2017,
//! section 4.4, applied to arrivals. Each side has a queue; a job costs O(1).

use std::collections::VecDeque;
use std::sync::Arc;

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

/// Cached queries go to GPUs and others to CPUs; a side helps when the other's queue is too long.
#[derive(Clone, Debug)]
pub struct CachedFirst {
    /// Whether the GPU holds all lists of a query, by row of the workload. Rows beyond the end count as held.
    is_held: Arc<[bool]>,
    limits: BatchLimits,
    forecast: Forecast,
    gpu: Option<Class>,
    worker: Option<Class>,
    /// Queue length of a side above which the other side helps.
    patience: usize,
    held: VecDeque<JobId>,
    others: VecDeque<JobId>,
}

impl CachedFirst {
    /// Empty queues, for a GPU that holds all lists.
    ///
    /// # Errors
    /// If the machine has no processor, or an option is out of range.
    pub fn new(options: &PolicyOptions, model: &MachineModel) -> Result<Self, PolicyError> {
        Self::with_held(options, model, Arc::new([]))
    }

    /// Empty queues. `is_held` says by row of the workload whether the GPU holds all lists of the query. Rows beyond the end
    /// count as held.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_held(options: &PolicyOptions, model: &MachineModel, is_held: Arc<[bool]>) -> Result<Self, PolicyError> {
        options.check()?;
        PolicyError::require(&model.machine, ENTRY.name, &[])?;
        let classes: Vec<Class> = model.machine.processors().map(|(_, processor)| processor.class).collect();
        let workers = classes.iter().filter(|class| !class.is_gpu()).count();
        Ok(Self {
            is_held,
            limits: BatchLimits::new(options),
            forecast: Forecast::new(model),
            gpu: classes.iter().copied().find(|class| class.is_gpu()),
            worker: classes.iter().copied().find(|class| !class.is_gpu()),
            patience: options.patience as usize * workers,
            held: VecDeque::new(),
            others: VecDeque::new(),
        })
    }

    fn batch_for_gpu(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        let surplus = match self.worker {
            Some(_) => self.others.len().saturating_sub(self.patience),
            None => self.others.len(),
        };
        let waiting = self.held.len() + surplus;
        if waiting == 0 {
            return Next::Wait;
        }
        if lane.under_way > 0 {
            let close_at = self.forecast.close_at(lane, waiting);
            if close_at > now {
                return Next::WaitUntil(close_at);
            }
        }
        let offered = self.held.iter().chain(self.others.iter().take(surplus)).map(|&id| jobs.job(id));
        let load = self.limits.fill(offered, lane, &self.forecast, now, batch);
        let from_held = batch.len().min(self.held.len());
        self.held.drain(..from_held);
        self.others.drain(..batch.len() - from_held);
        self.forecast.start(lane, &load, now);
        Next::Run
    }

    fn job_for_worker(&mut self, lane: Lane, batch: &mut Vec<JobId>) -> Next {
        if lane.under_way > 0 {
            return Next::Wait;
        }
        let helps = self.gpu.is_none() || self.held.len() > self.patience;
        let job = self.others.pop_front().or_else(|| if helps { self.held.pop_front() } else { None });
        batch.extend(job);
        if batch.is_empty() { Next::Wait } else { Next::Run }
    }
}

impl Policy for CachedFirst {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        let is_held = self.gpu.is_some() && self.is_held.get(job.row as usize).copied().unwrap_or(true);
        let (queue, first, then) = match is_held {
            true => (&mut self.held, self.gpu, self.worker),
            false => (&mut self.others, self.worker, self.gpu),
        };
        queue.push_back(job.id);
        first.or(then).map_or(LanesToPoll::Nobody, LanesToPoll::ClassThenOthers)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if lane.class.is_gpu() { self.batch_for_gpu(lane, jobs, now, batch) } else { self.job_for_worker(lane, batch) }
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
}
