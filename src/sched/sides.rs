//! Policies that send each query to the CPUs or to the GPUs for good, by some rule.
//!
//! ```text
//!               the rule says GPUs ──▶ all that waits for these, as one batch
//!   arrival ──┤
//!               the rule says CPUs ──▶ the oldest of what waits for these
//! ```
//!
//! Neither side helps the other. O(1) a job.

use std::collections::VecDeque;

use super::batching::{BatchLimits, ask_batching};
use super::forecast::Forecast;
use super::{Ask, Job, Jobs, Joining, Lane, Line, Lines, Next, Policy, PolicyError, PolicyOptions};
use crate::cost::MachineModel;
use crate::ids::JobId;
use crate::machine::Class;
use crate::time::Nanos;

/// Which side a query is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The CPUs.
    Cpus,
    /// The GPUs.
    Gpus,
}

/// Says for which side each query is. Equal histories give equal answers.
pub trait SideRule: Send {
    /// The name of the policy that goes by it.
    const NAME: &'static str;

    /// The side of job `id`, a query of this row of the workload.
    fn side(&self, id: JobId, row: u32) -> Side;
}

/// The policy that goes by a rule.
#[derive(Clone, Debug)]
pub struct Sides<R> {
    rule: R,
    limits: BatchLimits,
    forecast: Forecast,
    cpus: Vec<Class>,
    gpus: Vec<Class>,
    for_cpus: VecDeque<JobId>,
    for_gpus: VecDeque<JobId>,
    /// Whether the sides are no more than two lines: one class each, and lanes that take one query at a time.
    is_lines: bool,
}

impl<R: SideRule> Sides<R> {
    /// Empty queues.
    ///
    /// # Errors
    /// If the machine lacks CPUs or GPUs, or an option makes no sense.
    pub(super) fn by(rule: R, options: &PolicyOptions, model: &MachineModel) -> Result<Self, PolicyError> {
        options.check()?;
        PolicyError::require(&model.machine, R::NAME, &[])?;
        let (gpus, cpus): (Vec<Class>, Vec<Class>) = model.machine.classes().partition(|class| class.is_gpu());
        for (side, class) in [(&cpus, Class::CPU), (&gpus, Class::GPU)] {
            if side.is_empty() {
                return Err(PolicyError::MissingClass { policy: R::NAME, class });
            }
        }
        let (limits, forecast) = (BatchLimits::new(options), Forecast::new(model));
        let takes_one = |class: &Class| options.batch_limit.min(model.most_queries(*class)) == 1;
        let is_shallow = model.machine.processors().all(|(_, processor)| processor.depth == 1);
        let is_lines = cpus.len() == 1 && gpus.len() == 1 && gpus.iter().all(takes_one) && is_shallow;
        let (for_cpus, for_gpus) = (VecDeque::new(), VecDeque::new());
        Ok(Self { rule, limits, forecast, cpus, gpus, for_cpus, for_gpus, is_lines })
    }
}

impl<R: SideRule> Policy for Sides<R> {
    fn name(&self) -> &str {
        R::NAME
    }

    fn arrive(&mut self, job: &Job, _jobs: &Jobs, _now: Nanos) -> Ask {
        let (queue, classes) = match self.rule.side(job.id, job.row) {
            Side::Cpus => (&mut self.for_cpus, &self.cpus),
            Side::Gpus => (&mut self.for_gpus, &self.gpus),
        };
        queue.push_back(job.id);
        ask_batching(classes)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
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

    fn finished(&mut self, lane: Lane, _batch: &[JobId], _jobs: &Jobs, _service: Nanos, now: Nanos) -> Ask {
        if lane.class.is_gpu() {
            self.forecast.finished(lane, now);
        }
        Ask::Nobody
    }

    fn as_lines(&mut self) -> Option<&mut dyn Lines> {
        if self.is_lines { Some(self) } else { None }
    }
}

impl<R: SideRule> Lines for Sides<R> {
    fn lines(&self) -> Vec<Line> {
        // By `Side`.
        vec![Line::Class(self.cpus[0]), Line::Class(self.gpus[0])]
    }

    fn join(&mut self, job: Joining<'_>, _now: Nanos) -> usize {
        self.rule.side(job.id, job.row) as usize
    }
}
