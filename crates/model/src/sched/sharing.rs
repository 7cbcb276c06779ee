//! Common parts of policies whose jobs occupy several CPU lanes: one queue, first come, first served, and the running jobs.
//!
//! ```text
//!   a lane is idle, a job waits      the rule gives the job's first number of lanes, at most those that are idle
//!   a lane is idle, none waits       the rule gives each running job the time for its next lane; the lane joins the first that
//!                                    is due, or waits until then
//! ```
//!
//! A waiting job goes before a helper, because a lane with its own job never does less work than one that helps.

use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError};
use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::Class;
use crate::base::time::Nanos;
use crate::cost::MachineModel;

/// The load of the lanes when a rule is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy {
    /// Jobs that run or wait, including the one in question.
    pub(super) jobs: usize,
    /// Lanes in all.
    pub(super) lanes: u32,
}

impl Busy {
    /// The lanes of each job if all are shared out evenly; at least 1.
    pub(super) fn even_share(self) -> u32 {
        (self.lanes / self.jobs.max(1) as u32).max(1)
    }
}

/// A job that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shared {
    lead: ProcessorId,
    pub(super) started: Nanos,
    pub(super) lanes: u32,
    /// Its predicted time on one lane.
    pub(super) predicted: Nanos,
}

/// The number of lanes of a job, over time.
pub(super) trait Rule: Send {
    /// The name of the policy.
    fn name(&self) -> &'static str;

    /// The lanes on which a job starts.
    fn at_start(&self, predicted: Nanos, busy: Busy) -> u32;

    /// When a running job may have one more lane; `None` if it needs none.
    fn next_lane_at(&self, job: &Shared, busy: Busy) -> Option<Nanos>;

    /// Whether any running job may get one.
    fn joins_running(&self) -> bool {
        true
    }
}

/// A policy for CPU lanes by a rule.
#[derive(Clone, Debug)]
pub(super) struct Sharing<R> {
    rule: R,
    /// Whether a speed-up on several lanes is known; without one, each job runs on one lane.
    shares: bool,
    lanes: u32,
    idle: u32,
    running: Vec<Shared>,
}

impl<R: Rule> Sharing<R> {
    /// A policy for the CPU lanes of this machine. Fails if there are none.
    pub(super) fn new(rule: R, model: &MachineModel) -> Result<Self, PolicyError> {
        PolicyError::require(&model.machine, rule.name(), &[Class::CPU])?;
        let lanes = model.machine.count(Class::CPU) as u32;
        Ok(Self { rule, shares: model.parallelism.is_some(), lanes, idle: lanes, running: Vec::new() })
    }

    fn busy(&self, jobs: &Jobs) -> Busy {
        Busy { jobs: jobs.num_waiting() + self.running.len(), lanes: self.lanes }
    }

    fn start(&mut self, lane: Lane, job: &Job, busy: Busy, now: Nanos) -> Next {
        let predicted = job.alone(Class::CPU);
        let lanes = self.rule.at_start(predicted, busy).clamp(1, self.idle.max(1));
        self.running.push(Shared { lead: lane.processor, started: now, lanes, predicted });
        self.idle -= lanes.min(self.idle);
        if lanes == 1 { Next::Run } else { Next::RunOn(lanes) }
    }

    /// Joins the job that is due for another lane first, or waits for it.
    fn help(&mut self, busy: Busy, now: Nanos) -> Next {
        let rule = &self.rule;
        let due = |job: &Shared| rule.next_lane_at(job, busy).filter(|_| job.lanes < busy.lanes);
        let next =
            self.running.iter_mut().filter_map(|job| Some((due(job)?, job))).min_by_key(|(at, job)| (*at, job.started));
        match next {
            Some((at, job)) if at <= now => {
                job.lanes += 1;
                self.idle -= 1.min(self.idle);
                Next::Join(job.lead)
            }
            Some((at, _)) => Next::WaitUntil(at),
            None => Next::Wait,
        }
    }
}

impl<R: Rule> Policy for Sharing<R> {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn shares_jobs(&self) -> bool {
        self.shares
    }

    fn joins_running(&self) -> bool {
        self.rule.joins_running()
    }

    fn arrive(&mut self, _job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        LanesToPoll::Class(Class::CPU)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if lane.class != Class::CPU || lane.under_way > 0 {
            return Next::Wait;
        }
        let busy = self.busy(jobs);
        match jobs.oldest() {
            Some(job) => {
                batch.push(job.id);
                self.start(lane, job, busy, now)
            }
            None => self.help(busy, now),
        }
    }

    fn finished(&mut self, lane: Lane, _batch: &[JobId], _jobs: &Jobs, _service: Nanos, _now: Nanos) -> LanesToPoll {
        if let Some(at) = self.running.iter().position(|job| job.lead == lane.processor) {
            self.idle += self.running.swap_remove(at).lanes;
        }
        LanesToPoll::Class(Class::CPU)
    }
}
