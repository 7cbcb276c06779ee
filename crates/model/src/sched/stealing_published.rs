//! `stealing-published`: three queues and stealing as Ding et al. published them (WWW 2009, section 9).
//!
//! `stealing` is the lab's own form, with a guard over thieves and a fixed threshold. This policy follows the paper, and takes
//! the plainest choice where the paper leaves one open:
//!
//! ```text
//!                 ┌─ CPU at least r times as fast ─▶ CPU queue ───▶ CPUs     idle, own queue empty: the oldest of
//!   arrival ──────┼─ else ─▶ third queue ── feeds ─────▲ ▲                   the third moves over; and if that is
//!                 └─ GPU at least r times as fast ─▶ GPU queue ───▶ GPUs     empty, the oldest of the other's is stolen
//! ```
//!
//! - **A thief has no guard**: it also steals a job that takes a hundred times as long on it.
//! - **The third queue feeds the others**: its oldest job moves to the queue of a processor whose own queue is empty. An
//!   urgent job moves to the queue of its preferred class, and is ordered there like the rest.
//! - **The threshold `r` is "chosen adaptively during the process"**; the paper doesn't say how. Each class has its own. A
//!   theft shows that too many jobs were bound to the victim's class: its `r` grows by a tenth, so that more jobs go to the
//!   third queue. A job of the third queue that the other class runs shrinks `r` by a hundredth, not below 1.
//! - **In an own queue** jobs are ordered by the mix that `stealing` describes, with urgent jobs first.

use super::order::Order;
use super::registry::PolicyEntry;
use super::stealing::{Choice, priority};
use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyOptions};
use crate::base::ids::JobId;
use crate::base::machine::{Class, Machine, PerClass};
use crate::base::time::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    required_classes: &[Class::CPU, Class::GPU],
    for_comparison: true,
    ..PolicyEntry::new(
        "stealing-published",
        "Three queues and stealing as published, without a guard; runs only if it is named",
        |setup| Ok(Box::new(StealingPublished::new(setup.options, setup.machine())?)),
    )
};

/// Factors on a threshold: growth by a theft, decay by a job of the third queue.
const GROWTH: f64 = 1.1;
const DECAY: f64 = 0.99;
/// At this threshold all jobs go to the third queue.
const MAX_THRESHOLD: f64 = 1e6;

#[derive(Clone, Debug)]
struct ClassQueue {
    /// Jobs of the queue: by the mix for the own class, by age for thieves.
    own: Order<i64>,
    ages: Order<()>,
    /// Jobs that prefer this class, in any queue, by the time at which they become urgent.
    urgency: Order<Nanos>,
    threshold: f64,
}

#[derive(Clone, Debug)]
struct StealingPublished {
    classes: Vec<Class>,
    options: PolicyOptions,
    queues: PerClass<ClassQueue>,
    third: Order<()>,
}

impl StealingPublished {
    /// Empty queues; thresholds begin at the options' ratio. Fails if `machine` lacks CPUs or GPUs, or an option is out
    /// of range.
    fn new(options: &PolicyOptions, machine: &Machine) -> Result<Self, PolicyError> {
        PolicyError::require(machine, ENTRY.name, ENTRY.required_classes)?;
        options.check()?;
        let queue = |_| ClassQueue {
            own: Order::default(),
            ages: Order::default(),
            urgency: Order::default(),
            threshold: options.threshold_ratio,
        };
        Ok(Self {
            classes: machine.classes().collect(),
            options: *options,
            queues: PerClass::from_fn(queue),
            third: Order::default(),
        })
    }

    fn enqueue(&mut self, class: Class, job: &Job, choice: &Choice, jobs: &Jobs) {
        let queue = &mut self.queues[class];
        queue.own.push(priority(&self.options, job, choice), job.id, jobs);
        queue.ages.push((), job.id, jobs);
    }

    /// A job for a processor of `class`, and whether it belonged to the other class.
    fn choose(&mut self, class: Class, jobs: &Jobs, now: Nanos) -> Option<(JobId, bool)> {
        let urgent = self.queues[class].urgency.first(jobs).filter(|(urgent_at, _)| *urgent_at <= now);
        if let Some((_, job)) = urgent {
            return Some((job.id, false));
        }
        if let Some((_, job)) = self.queues[class].own.first(jobs) {
            return Some((job.id, false));
        }
        if let Some((_, job)) = self.third.first(jobs) {
            let preferred = Choice::of(job, &self.classes).preferred;
            if preferred != class {
                let threshold = &mut self.queues[preferred].threshold;
                *threshold = (*threshold * DECAY).max(1.0);
            }
            return Some((job.id, false));
        }
        let others = self.classes.iter().copied().filter(|&other| other != class);
        let mut oldest: Option<(JobId, Class)> = None;
        for victim in others {
            if let Some((_, job)) = self.queues[victim].ages.first(jobs)
                && oldest.is_none_or(|(id, _)| job.id < id)
            {
                oldest = Some((job.id, victim));
            }
        }
        let (id, victim) = oldest?;
        let threshold = &mut self.queues[victim].threshold;
        *threshold = (*threshold * GROWTH).min(MAX_THRESHOLD);
        Some((id, true))
    }
}

impl Policy for StealingPublished {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, job: &Job, jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        let choice = Choice::of(job, &self.classes);
        let urgent_at = job.arrival + job.allowance().scaled(self.options.urgent_share);
        self.queues[choice.preferred].urgency.push(urgent_at, job.id, jobs);
        if choice.is_bound(self.queues[choice.preferred].threshold) {
            self.enqueue(choice.preferred, job, &choice, jobs);
        } else {
            self.third.push((), job.id, jobs);
        }
        LanesToPoll::ClassThenOthers(choice.preferred)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if lane.under_way > 0 {
            return Next::Wait;
        }
        let Some((id, stolen)) = self.choose(lane.class, jobs, now) else { return Next::Wait };
        batch.push(id);
        if stolen { Next::Steal } else { Next::Run }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::stealing::tests::{CPU, GPU, job};

    fn with_jobs(arrivals: &[Job]) -> (StealingPublished, Jobs) {
        let mut policy = StealingPublished::new(&PolicyOptions::default(), &Machine::new(1, 1)).unwrap();
        let mut jobs = Jobs::default();
        for job in arrivals {
            jobs.arrive(job.arrival, |_| *job);
            policy.arrive(job, &jobs, job.arrival);
        }
        (policy, jobs)
    }

    fn run((policy, jobs): &mut (StealingPublished, Jobs), lane: Lane, now_ms: u64) -> Option<(u32, Next)> {
        let mut batch = Vec::new();
        let next = policy.next(lane, jobs, Nanos(now_ms * 1_000_000), &mut batch);
        batch.first().map(|&id| (jobs.start(id).id.0, next))
    }

    #[test]
    fn own_queue_first_then_the_third_queue_then_a_theft() {
        let mut waiting = with_jobs(&[job(0, 0, 9000, 10), job(1, 0, 11, 10), job(2, 0, 10, 100), job(3, 1, 900, 10)]);
        assert_eq!(run(&mut waiting, CPU, 1), Some((2, Next::Run)));
        assert_eq!(run(&mut waiting, CPU, 1), Some((1, Next::Run)));
        // The thief takes the oldest, though the next would lose less and neither can be in time.
        assert_eq!(run(&mut waiting, CPU, 1), Some((0, Next::Steal)));
        assert_eq!(run(&mut waiting, GPU, 1), Some((3, Next::Run)));
        assert_eq!(run(&mut waiting, GPU, 1), None);
    }

    #[test]
    fn urgent_jobs_of_the_third_queue_run_next_where_preferred() {
        let mut waiting = with_jobs(&[job(0, 0, 100, 99), job(1, 1, 500, 10)]);
        assert_eq!(run(&mut waiting, GPU, 300), Some((0, Next::Run)));
        assert_eq!(run(&mut waiting, GPU, 300), Some((1, Next::Run)));
    }

    #[test]
    fn thefts_lengthen_the_third_queue_and_others_shorten_it() {
        let mut waiting = with_jobs(&[job(0, 0, 130, 100)]);
        assert_eq!(run(&mut waiting, CPU, 1), Some((0, Next::Steal)));
        // The threshold is now 1.32, so the ratio no longer suffices.
        let (policy, jobs) = &mut waiting;
        let second = job(1, 2, 130, 100);
        jobs.arrive(second.arrival, |_| second);
        policy.arrive(&second, jobs, second.arrival);
        assert_eq!(run(&mut waiting, CPU, 2), Some((1, Next::Run)));
        let threshold = waiting.0.queues[Class::GPU].threshold;
        assert!((threshold - 1.2 * GROWTH * DECAY).abs() < 1e-12);
    }
}
