//! `stealing`: three queues, and idle processors that steal (Ding et al. 2009, section 9).
//!
//! ```text
//!                        ┌─ much faster on a CPU ──▶ CPU queue ──▶ CPUs ─┐
//!   arrival ─ ratio? ────┼─ about the same ────────▶ third queue ────────┼─ the first idle processor
//!                        └─ much faster on a GPU ──▶ GPU queue ──▶ GPUs ─┘   (steals when all else is empty)
//! ```
//!
//! A job goes to the queue of its faster class if the predicted times differ by at least the threshold ratio. An idle
//! processor takes the first of these that exists:
//!
//! 1. the most urgent job that prefers its class and has passed a set share of its time to the deadline;
//! 2. the first job of its own queue, by the mix below;
//! 3. the oldest job of the third queue;
//! 4. the job of another class's queue that loses least by the move, if the guard permits it. The loss is the ratio of the
//!    predicted times on its next best and its own class; the paper leaves this choice open.
//!
//! # The mix
//! The queue of class k is ordered by this key in units of time, the smallest first:
//!
//! ```text
//!   deadline_weight · deadline  +  cost_weight · predicted[k]  −  affinity_weight · (predicted[next best] − predicted[k])
//! ```
//!
//! All jobs approach their deadlines at the same pace, so the deadline orders them as the time left would. The key is fixed at
//! arrival, and the order never changes. A cost weight of 1 lets a job that is 10 ms shorter overtake jobs that arrived up to
//! 10 ms earlier. The affinity gain is capped at the job's time from arrival to deadline, so that one extreme job does not
//! dominate.
//!
//! # Lanes to poll
//! An arrival polls a processor of the preferred class. If that starts nothing, processors of other classes are polled one
//! after another until one waits, since a longer backlog may permit several thefts. The end of a job polls in this way too,
//! since the guard may permit the next candidate. Only the candidate that loses least is checked against the guard; later ones
//! wait for their own class on purpose. After each decision no idle processor would start anything (`tests/it/unasked.rs`).
//!
//! Each job is in at most three orders. An event costs O(log n), amortised.

use super::order::Order;
use super::registry::PolicyEntry;
use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyOptions, StealGuard};
use crate::base::ids::JobId;
use crate::base::machine::{Class, Machine, PerClass};
use crate::base::time::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    required_classes: &[Class::CPU, Class::GPU],
    ..PolicyEntry::new("stealing", "Three queues, deadlines and work stealing (Ding et al. 2009, section 9)", |setup| {
        Ok(Box::new(Stealing::new(setup.options, setup.machine())?))
    })
};

#[derive(Clone, Debug, Default)]
struct ClassQueues {
    /// Jobs of this class's own queue, by the mix.
    own: Order<i64>,
    /// Jobs of the own queue, in the order in which other classes steal them.
    steals: Order<u64>,
    /// Jobs that prefer this class, in its own or the third queue, by the time at which they become urgent.
    urgency: Order<Nanos>,
    backlog: Nanos,
}

#[derive(Clone, Debug)]
struct Stealing {
    classes: Vec<Class>,
    counts: PerClass<u64>,
    options: PolicyOptions,
    queues: PerClass<ClassQueues>,
    third: Order<()>,
}

impl Stealing {
    /// Empty queues. Fails if `machine` lacks CPUs or GPUs, or an option is out of range.
    fn new(options: &PolicyOptions, machine: &Machine) -> Result<Self, PolicyError> {
        PolicyError::require(machine, ENTRY.name, ENTRY.required_classes)?;
        options.check()?;
        Ok(Self {
            classes: machine.classes().collect(),
            counts: PerClass::from_fn(|class| machine.count(class) as u64),
            options: *options,
            queues: PerClass::default(),
            third: Order::default(),
        })
    }

    /// Whether a processor of class `thief` may take `job` from the queue of class `victim`.
    fn may_steal(&self, job: &Job, thief: Class, victim: Class, now: Nanos) -> bool {
        match self.options.steal_guard {
            StealGuard::None => true,
            StealGuard::Deadline => now + job.alone(thief) <= job.deadline,
            // The thief must finish before the own class would have emptied its queue.
            StealGuard::Gain => {
                job.alone(thief).0.saturating_mul(self.counts[victim].max(1)) <= self.queues[victim].backlog.0
            }
        }
    }

    /// A job for a processor of `class`, and the class whose own queue held it.
    fn choose(&mut self, class: Class, jobs: &Jobs, now: Nanos) -> Option<(JobId, Option<Class>)> {
        if let Some(job) = self.queues[class].urgency.first_until(now, jobs) {
            let is_bound = Choice::of(job, &self.classes).is_bound(self.options.threshold_ratio);
            return Some((job.id, is_bound.then_some(class)));
        }
        if let Some((_, job)) = self.queues[class].own.first(jobs) {
            return Some((job.id, Some(class)));
        }
        if let Some((_, job)) = self.third.first(jobs) {
            return Some((job.id, None));
        }
        let mut least_lost: Option<(u64, Class, JobId)> = None;
        for &victim in self.classes.iter().filter(|&&victim| victim != class) {
            if let Some((loss, job)) = self.queues[victim].steals.first(jobs)
                && least_lost.is_none_or(|(least, ..)| loss < least)
            {
                least_lost = Some((loss, victim, job.id));
            }
        }
        let (_, victim, id) = least_lost?;
        let job = jobs.job(id);
        self.may_steal(job, class, victim, now).then_some((id, Some(victim)))
    }
}

/// The class where a job runs best, and its predicted times there and on the next best class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) preferred: Class,
    better: Nanos,
    next_best: Nanos,
}

impl Choice {
    pub(super) fn of(job: &Job, classes: &[Class]) -> Self {
        let preferred = job.preferred_class();
        let mut next_best = Nanos::MAX;
        for &class in classes {
            if class != preferred {
                next_best = next_best.min(job.alone(class));
            }
        }
        Self { preferred, better: job.alone(preferred), next_best }
    }

    /// Whether the job is at least `ratio` times as fast on its better class.
    pub(super) fn is_bound(&self, ratio: f64) -> bool {
        self.next_best.0 as f64 >= self.better.0 as f64 * ratio
    }
}

/// The mix of cost, deadline and affinity, as the module's documentation defines it.
pub(super) fn priority(options: &PolicyOptions, job: &Job, &Choice { better, next_best, .. }: &Choice) -> i64 {
    let ns = |time: Nanos| time.0 as f64;
    let gain = next_best.since(better).min(job.allowance());
    let key = options.deadline_weight * ns(job.deadline) + options.cost_weight * ns(better)
        - options.affinity_weight * ns(gain);
    rounded(key)
}

/// `key.round() as i64`, without a call into the mathematical library.
fn rounded(key: f64) -> i64 {
    let whole = key as i64;
    // The rest is 0 where doubles are further apart than halves.
    let rest = key - whole as f64;
    whole.saturating_add(i64::from(rest >= 0.5) - i64::from(rest <= -0.5))
}

impl Policy for Stealing {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, job: &Job, jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        let choice = Choice::of(job, &self.classes);
        let Choice { preferred, better, next_best } = choice;
        let urgent_at = job.arrival + job.allowance().scaled(self.options.urgent_share);
        if choice.is_bound(self.options.threshold_ratio) {
            let priority = priority(&self.options, job, &choice);
            let queues = &mut self.queues[preferred];
            queues.own.push(priority, job.id, jobs);
            queues.steals.push(loss_by_moving(better, next_best), job.id, jobs);
            queues.urgency.push(urgent_at, job.id, jobs);
            queues.backlog += better;
        } else {
            self.third.push((), job.id, jobs);
            self.queues[preferred].urgency.push(urgent_at, job.id, jobs);
        }
        LanesToPoll::ClassThenOthers(preferred)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if lane.under_way > 0 {
            return Next::Wait;
        }
        let Some((id, owner)) = self.choose(lane.class, jobs, now) else { return Next::Wait };
        if let Some(owner) = owner {
            let backlog = &mut self.queues[owner].backlog;
            *backlog = *backlog - jobs.job(id).alone(owner);
        }
        let stolen = owner.is_some_and(|owner| owner != lane.class);
        batch.push(id);
        if stolen { Next::Steal } else { Next::Run }
    }

    fn finished(&mut self, lane: Lane, _batch: &[JobId], jobs: &Jobs, _service: Nanos, _now: Nanos) -> LanesToPoll {
        // The lane takes the next job of its class's queue, and the guard may permit the new first candidate for a theft.
        match self.queues[lane.class].steals.first(jobs) {
            Some(_) => LanesToPoll::ClassThenOthers(lane.class),
            None => LanesToPoll::Nobody,
        }
    }
}

/// Predicted time on the next best class over that on the better one, in 1/65536. An integer has a total order.
fn loss_by_moving(better: Nanos, next_best: Nanos) -> u64 {
    (next_best.0 as f64 / (better.0 as f64).max(1.0) * 65_536.0) as u64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::base::ids::{ProcessorId, QueryId};
    use crate::cost::Cost;

    pub(in crate::sched) fn job(id: u32, arrival_ms: u64, cpu_ms: u64, gpu_ms: u64) -> Job {
        let ms = |n: u64| Nanos(n * 1_000_000);
        Job {
            id: JobId(id),
            query: QueryId(id),
            row: id,
            priority: 0,
            arrival: ms(arrival_ms),
            deadline: ms(arrival_ms + 500),
            predicted: PerClass::from_fn(|class| match class {
                Class::CPU => Cost::alone(ms(cpu_ms)),
                Class::GPU => Cost::alone(ms(gpu_ms)),
                _ => Cost::NEVER,
            }),
        }
    }

    pub(in crate::sched) const CPU: Lane = Lane { processor: ProcessorId(0), class: Class::CPU, under_way: 0 };
    pub(in crate::sched) const GPU: Lane = Lane { processor: ProcessorId(1), class: Class::GPU, under_way: 0 };

    /// One CPU and one GPU, with these jobs waiting.
    fn with_jobs(options: PolicyOptions, arrivals: &[Job]) -> (Stealing, Jobs) {
        let mut policy = Stealing::new(&options, &Machine::new(1, 1)).unwrap();
        let mut jobs = Jobs::default();
        for job in arrivals {
            jobs.arrive(job.arrival, |_| *job);
            policy.arrive(job, &jobs, job.arrival);
        }
        (policy, jobs)
    }

    fn run((policy, jobs): &mut (Stealing, Jobs), lane: Lane, now_ms: u64) -> Option<u32> {
        let mut batch = Vec::new();
        policy.next(lane, jobs, Nanos(now_ms * 1_000_000), &mut batch);
        batch.first().map(|&id| jobs.start(id).id.0)
    }

    #[test]
    fn own_queue_first_then_the_third_then_a_steal() {
        let jobs = [job(0, 0, 100, 10), job(1, 0, 11, 10), job(2, 0, 10, 100)];
        let mut policy = with_jobs(PolicyOptions::default(), &jobs);
        assert_eq!(run(&mut policy, CPU, 1), Some(2));
        assert_eq!(run(&mut policy, CPU, 1), Some(1));
        let mut unguarded =
            with_jobs(PolicyOptions { steal_guard: StealGuard::None, ..PolicyOptions::default() }, &jobs[..1]);
        assert_eq!(run(&mut unguarded, CPU, 1), Some(0));
    }

    #[test]
    fn short_jobs_overtake_and_urgent_jobs_overtake_them() {
        let jobs = [job(0, 0, 300, 90), job(1, 2, 20, 1), job(2, 280, 20, 1)];
        let options = PolicyOptions { cost_weight: 10.0, affinity_weight: 0.0, ..PolicyOptions::default() };
        assert_eq!(run(&mut with_jobs(options, &jobs), GPU, 290), Some(1));
        // The long job is urgent past 0.6 of 500 ms.
        assert_eq!(run(&mut with_jobs(options, &jobs), GPU, 300), Some(0));
    }

    #[test]
    fn an_urgent_job_of_the_third_queue_runs_on_its_preferred_kind() {
        let mut policy = with_jobs(PolicyOptions::default(), &[job(0, 0, 100, 99), job(1, 1, 500, 10)]);
        assert_eq!(run(&mut policy, GPU, 300), Some(0));
        assert_eq!(run(&mut policy, GPU, 300), Some(1));
    }

    #[test]
    fn a_thief_loses_least_and_its_guard_prevents_a_miss() {
        let jobs = [job(0, 0, 400, 4), job(1, 0, 450, 200), job(2, 0, 40, 4)];
        let options = PolicyOptions { steal_guard: StealGuard::Deadline, ..PolicyOptions::default() };
        assert_eq!(run(&mut with_jobs(options, &jobs), CPU, 0), Some(1));
        assert_eq!(run(&mut with_jobs(options, &jobs), CPU, 51), None);
    }

    #[test]
    fn keys_are_rounded_as_the_library_rounds() {
        let edges = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 0.5 - f64::EPSILON / 4.0, 4_503_599_627_370_495.5, 9e15, -9e15];
        let odd = [2f64.powi(53) + 2.0, 1e19, -1e19, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let usual = (-1000..1000).map(|i| f64::from(i) * 1234.567 / 8.0);
        for key in edges.into_iter().chain(odd).chain(usual) {
            assert_eq!(rounded(key), key.round() as i64, "{key}");
        }
    }
}
