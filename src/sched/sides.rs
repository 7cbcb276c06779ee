//! Two queues, one for each side of the machine: what the policies that send a query to CPUs or GPUs for good have in
//! common.
//!
//! GPUs take what waits for them as one batch, CPU workers the oldest of what waits for them. Neither side helps the other.

use std::collections::VecDeque;

use super::batching::{BatchLimits, ask_batching};
use super::forecast::Forecast;
use super::{Ask, Jobs, Lane, Line, Next, PolicyError, PolicyOptions};
use crate::cost::MachineModel;
use crate::ids::JobId;
use crate::machine::Class;
use crate::time::Nanos;

/// Which side a query is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Cpus,
    Gpus,
}

/// The two queues.
#[derive(Clone, Debug)]
pub(super) struct Sides {
    limits: BatchLimits,
    forecast: Forecast,
    cpus: Vec<Class>,
    gpus: Vec<Class>,
    for_cpus: VecDeque<JobId>,
    for_gpus: VecDeque<JobId>,
    is_lines: bool,
}

impl Sides {
    /// Empty queues.
    ///
    /// # Errors
    /// If the machine lacks CPUs or GPUs, or an option makes no sense.
    pub(super) fn new(
        options: &PolicyOptions,
        model: &MachineModel,
        policy: &'static str,
    ) -> Result<Self, PolicyError> {
        options.check()?;
        PolicyError::require(&model.machine, policy, &[])?;
        let (gpus, cpus): (Vec<Class>, Vec<Class>) = model.machine.classes().partition(|class| class.is_gpu());
        for (side, class) in [(&cpus, Class::CPU), (&gpus, Class::GPU)] {
            if side.is_empty() {
                return Err(PolicyError::MissingClass { policy, class });
            }
        }
        let (limits, forecast) = (BatchLimits::new(options), Forecast::new(model));
        let takes_one = |class: &Class| options.batch_limit.min(model.most_queries(*class)) == 1;
        let is_shallow = model.machine.processors().all(|(_, processor)| processor.depth == 1);
        let is_lines = cpus.len() == 1 && gpus.len() == 1 && gpus.iter().all(takes_one) && is_shallow;
        Ok(Self { limits, forecast, cpus, gpus, for_cpus: VecDeque::new(), for_gpus: VecDeque::new(), is_lines })
    }

    /// Whether the sides are no more than two lines: one class each, and lanes that take one query at a time.
    pub(super) fn is_lines(&self) -> bool {
        self.is_lines
    }

    /// Then, these, by [`Side`].
    pub(super) fn lines(&self) -> Vec<Line> {
        vec![Line::Class(self.cpus[0]), Line::Class(self.gpus[0])]
    }

    /// Takes in a job for a side, and says whom that concerns.
    pub(super) fn arrive(&mut self, job: JobId, side: Side) -> Ask {
        match side {
            Side::Cpus => {
                self.for_cpus.push_back(job);
                ask_batching(&self.cpus)
            }
            Side::Gpus => {
                self.for_gpus.push_back(job);
                ask_batching(&self.gpus)
            }
        }
    }

    /// As [`Policy::next`](super::Policy::next).
    pub(super) fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if !lane.class.is_gpu() {
            if lane.under_way > 0 {
                return Next::Wait;
            }
            batch.extend(self.for_cpus.pop_front());
            return if batch.is_empty() { Next::Wait } else { Next::Run };
        }
        if self.for_gpus.is_empty() {
            return Next::Wait;
        }
        if lane.under_way > 0 {
            let close_at = self.forecast.close_at(lane, self.for_gpus.len());
            if close_at > now {
                return Next::WaitUntil(close_at);
            }
        }
        let waiting = self.for_gpus.iter().map(|&id| jobs.job(id));
        let load = self.limits.fill(waiting, lane, &self.forecast, now, batch);
        self.for_gpus.drain(..batch.len());
        self.forecast.start(lane, &load, now);
        Next::Run
    }

    /// As [`Policy::finished`](super::Policy::finished).
    pub(super) fn finished(&mut self, lane: Lane, now: Nanos) -> Ask {
        if lane.class.is_gpu() {
            self.forecast.finished(lane, now);
        }
        Ask::Nobody
    }
}
