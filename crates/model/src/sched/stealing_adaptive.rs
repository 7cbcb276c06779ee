//! `stealing-adaptive`: stealing whose threshold follows the load, with late jobs behind all others.
//!
//! `stealing` separates the classes where a query is equally fast on both. Under load this is the wrong place: the less loaded
//! class takes over much work anyway, but by single thefts and out of order. Here each class has a price, and a query belongs
//! to the class with the least predicted time *times price*:
//!
//! ```text
//!   price of a CPU's time   1.0    a steal by a CPU   ▶ 0.98    the next such query is a CPU's to begin with
//!   price of a GPU's time   1.0    from a GPU's queue ▶ 1.02
//! ```
//!
//! Each steal lowers the thief's price and raises the victim's. Without steals both return to 1, so that at low load every
//! query runs where it is answered first. Prices at which neither side steals solve the linear program of the capacity region
//! ([`bounds`](crate::sim::bounds)). The steps are ascent on its dual, one per steal.
//!
//! An idle processor takes the first of these that exists:
//!
//! 1. the first job of its class's own queue, by the sum of deadline and predicted time;
//! 2. the oldest job that is about as fast on two classes;
//! 3. the job of another class's queue that loses least, if the thief is predicted to finish it before that class would have
//!    emptied its queue;
//! 4. the oldest late job: steps 1 and 2 passed it over because it would have missed its deadline even if started at once.
//!
//! Late jobs therefore delay no others. This is admission control that still answers every query.
//!
//! Each job is in at most three orders. An event costs O(log n), amortised.
//!
//! Source: the queues are those of Ding et al. 2009, section 9. Prices that follow demand are subgradient ascent, as in Low
//! and Lapsley, "Optimization Flow Control I", IEEE/ACM Transactions on Networking 1999.

use super::order::Order;
use super::registry::PolicyEntry;
use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyOptions};
use crate::base::ids::JobId;
use crate::base::machine::{Class, Machine, PerClass};
use crate::base::random::exp;
use crate::base::time::Nanos;

pub(super) const ENTRY: PolicyEntry =
    PolicyEntry::new("stealing-adaptive", "Stealing between classes whose prices follow the load", |setup| {
        Ok(Box::new(StealingAdaptive::new(setup.options, setup.machine())?))
    });

/// Change of the logarithm of a price by a steal, down for the thief and up for the victim.
const STEP: f64 = 0.02;
/// Factor on the prices' logarithms per arrival.
const KEPT: f64 = 0.9995;

/// The queue that leads to processors of one class.
#[derive(Clone, Debug, Default)]
struct ClassQueue {
    /// Jobs of the queue, by the sum of deadline and predicted time.
    own: Order<Nanos>,
    /// Jobs of the queue, in the order in which other classes steal them.
    steals: Order<u64>,
    backlog: Nanos,
    /// Jobs that were already late when this class could have run them.
    late: Order<()>,
}

#[derive(Clone, Debug)]
struct StealingAdaptive {
    classes: Vec<Class>,
    counts: PerClass<u64>,
    threshold_ratio: f64,
    /// By class, the logarithm of the price of its time.
    ln_price: PerClass<f64>,
    queues: PerClass<ClassQueue>,
    /// Jobs that are about as fast on two classes.
    third: Order<()>,
}

impl StealingAdaptive {
    /// Empty queues, and all prices 1. Fails if `machine` has no processor, or an option is out of range.
    fn new(options: &PolicyOptions, machine: &Machine) -> Result<Self, PolicyError> {
        PolicyError::require(machine, ENTRY.name, &[])?;
        options.check()?;
        Ok(Self {
            classes: machine.classes().collect(),
            counts: PerClass::from_fn(|class| machine.count(class) as u64),
            threshold_ratio: options.threshold_ratio,
            ln_price: PerClass::default(),
            queues: PerClass::default(),
            third: Order::default(),
        })
    }

    /// The class with the least priced time, and whether it wins by the threshold ratio over all others.
    fn choice(&self, job: &Job) -> (Class, bool) {
        let (mut best, mut least, mut second) = (self.classes[0], f64::INFINITY, f64::INFINITY);
        for &class in &self.classes {
            let priced = job.alone(class).0 as f64 * exp(self.ln_price[class]);
            if priced < least {
                (best, second, least) = (class, least, priced);
            } else {
                second = second.min(priced);
            }
        }
        (best, second >= least * self.threshold_ratio)
    }

    /// The least time of a job on any other class.
    fn elsewhere(&self, job: &Job, class: Class) -> Nanos {
        let others = self.classes.iter().filter(|&&other| other != class);
        others.map(|&other| job.alone(other)).min().unwrap_or(Nanos::MAX)
    }

    /// A job that `class` runs in time, from its own queue or else from the third. Late jobs are put aside.
    fn in_time<'a>(&mut self, class: Class, jobs: &'a Jobs, now: Nanos) -> Option<&'a Job> {
        let queue = &mut self.queues[class];
        while let Some((_, job)) = queue.own.first(jobs) {
            queue.backlog = queue.backlog - job.alone(class);
            if !is_late(job, class, now) {
                return Some(job);
            }
            queue.own.pop();
            queue.late.push((), job.id, jobs);
        }
        while let Some((_, job)) = self.third.first(jobs) {
            if !is_late(job, class, now) {
                return Some(job);
            }
            self.third.pop();
            queue.late.push((), job.id, jobs);
        }
        None
    }

    /// The job that loses least by being stolen, if the steal gains time.
    fn steal<'a>(&mut self, thief: Class, jobs: &'a Jobs, now: Nanos) -> Option<&'a Job> {
        let mut least: Option<(u64, Class, &Job)> = None;
        for &victim in self.classes.iter().filter(|&&victim| victim != thief) {
            let steals = &mut self.queues[victim].steals;
            while let Some((loss, job)) = steals.first(jobs) {
                if is_late(job, victim, now) {
                    // The job is late, and put aside now or later.
                    steals.pop();
                    continue;
                }
                if least.is_none_or(|(other, ..)| loss < other) {
                    least = Some((loss, victim, job));
                }
                break;
            }
        }
        let (_, victim, job) = least?;
        let queue = &mut self.queues[victim];
        if job.alone(thief) > Nanos(queue.backlog.0 / self.counts[victim].max(1)) {
            return None;
        }
        queue.backlog = queue.backlog - job.alone(victim);
        self.ln_price[thief] -= STEP;
        self.ln_price[victim] += STEP;
        Some(job)
    }
}

impl Policy for StealingAdaptive {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, job: &Job, jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        for &class in &self.classes {
            self.ln_price[class] *= KEPT;
        }
        let (class, is_bound) = self.choice(job);
        if is_bound {
            let (alone, elsewhere) = (job.alone(class), self.elsewhere(job, class));
            let queue = &mut self.queues[class];
            queue.own.push(job.deadline + alone, job.id, jobs);
            queue.steals.push(loss_by_moving(alone, elsewhere), job.id, jobs);
            queue.backlog += alone;
        } else {
            self.third.push((), job.id, jobs);
        }
        LanesToPoll::ClassThenOthers(class)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if lane.under_way > 0 {
            return Next::Wait;
        }
        let (found, next) = match self.in_time(lane.class, jobs, now) {
            Some(job) => (job, Next::Run),
            None => match self.steal(lane.class, jobs, now) {
                Some(job) => (job, Next::Steal),
                None => match self.queues[lane.class].late.first(jobs) {
                    Some((_, job)) => (job, Next::Run),
                    None => return Next::Wait,
                },
            },
        };
        batch.push(found.id);
        next
    }

    fn finished(&mut self, lane: Lane, _batch: &[JobId], jobs: &Jobs, _service: Nanos, _now: Nanos) -> LanesToPoll {
        // The lane takes the next job of its class's queue, which may change the first candidate for a steal.
        match self.queues[lane.class].steals.first(jobs) {
            Some(_) => LanesToPoll::ClassThenOthers(lane.class),
            None => LanesToPoll::Nobody,
        }
    }
}

/// Whether a job would miss its deadline on `class` even if it started now.
fn is_late(job: &Job, class: Class, now: Nanos) -> bool {
    now + job.alone(class) > job.deadline
}

/// Predicted time elsewhere over predicted time here, in 1/65536. An integer has a total order.
fn loss_by_moving(here: Nanos, elsewhere: Nanos) -> u64 {
    (elsewhere.0 as f64 / (here.0 as f64).max(1.0) * 65_536.0) as u64
}

#[cfg(test)]
mod tests {
    use super::super::stealing::tests::{CPU, GPU, job};
    use super::*;

    fn policy() -> StealingAdaptive {
        StealingAdaptive::new(&PolicyOptions::default(), &Machine::new(1, 1)).unwrap()
    }

    fn run(policy: &mut StealingAdaptive, jobs: &mut Jobs, lane: Lane) -> Option<(u32, Next)> {
        run_at(policy, jobs, lane, 0)
    }

    fn run_at(policy: &mut StealingAdaptive, jobs: &mut Jobs, lane: Lane, now_ms: u64) -> Option<(u32, Next)> {
        let mut batch = Vec::new();
        let next = policy.next(lane, jobs, Nanos(now_ms * 1_000_000), &mut batch);
        batch.first().map(|&id| (jobs.start(id).id.0, next))
    }

    #[test]
    fn own_queue_first_then_the_third_then_a_steal_that_gains() {
        let (mut policy, mut jobs) = (policy(), Jobs::default());
        for job in [job(0, 0, 40, 10), job(1, 0, 30, 10), job(2, 0, 20, 10), job(3, 0, 11, 10), job(4, 0, 10, 100)] {
            jobs.arrive(Nanos::ZERO, |_| job);
            policy.arrive(&job, &jobs, Nanos::ZERO);
        }
        let mut taken = |lane| run(&mut policy, &mut jobs, lane);
        assert_eq!([taken(CPU), taken(CPU)], [Some((4, Next::Run)), Some((3, Next::Run))]);
        // The GPU's backlog is 30 ms. The CPU needs 20 ms for the job that loses least; the others would then gain nothing.
        assert_eq!([taken(CPU), taken(CPU)], [Some((2, Next::Steal)), None]);
        assert_eq!([taken(GPU), taken(GPU), taken(GPU)], [Some((0, Next::Run)), Some((1, Next::Run)), None]);
    }

    #[test]
    fn what_would_be_late_waits_behind_what_is_not() {
        // Deadlines are 500 ms after arrival. At 495 ms the first job is late on any class, at 599 ms the second.
        let (mut policy, mut jobs) = (policy(), Jobs::default());
        for job in [job(0, 0, 900, 10), job(1, 100, 900, 10), job(2, 200, 900, 10), job(3, 300, 11, 10)] {
            jobs.arrive(job.arrival, |_| job);
            policy.arrive(&job, &jobs, job.arrival);
        }
        assert_eq!(run_at(&mut policy, &mut jobs, GPU, 495), Some((1, Next::Run)));
        assert_eq!(run_at(&mut policy, &mut jobs, GPU, 695), Some((3, Next::Run)));
        // The GPU has nothing else to run; the CPU leaves the GPU's jobs alone.
        assert_eq!(run_at(&mut policy, &mut jobs, CPU, 700), None);
        assert_eq!(run_at(&mut policy, &mut jobs, GPU, 700), Some((0, Next::Run)));
        assert_eq!(run_at(&mut policy, &mut jobs, GPU, 710), Some((2, Next::Run)));
        assert_eq!(run_at(&mut policy, &mut jobs, GPU, 720), None);
    }

    #[test]
    fn often_stolen_queries_are_for_anyone_then_given_back() {
        let (mut policy, mut jobs) = (policy(), Jobs::default());
        let like = |id| job(id, 0, 15, 10);
        assert_eq!(policy.choice(&like(0)), (Class::GPU, true));
        // The GPU is busy; the CPU steals whenever two wait.
        let mut stolen = 0;
        for id in 0..100 {
            jobs.arrive(Nanos::ZERO, |_| like(id));
            policy.arrive(&like(id), &jobs, Nanos::ZERO);
            if !policy.choice(&like(id)).1 {
                break;
            }
            stolen += u32::from(run(&mut policy, &mut jobs, CPU).is_some_and(|(_, next)| next == Next::Steal));
        }
        // Steals stop when a ratio of 1.5 becomes 1.2: ln(1.5 / 1.2) is 0.22, and a steal moves 0.04.
        assert!((6..=7).contains(&stolen), "{stolen}: {:?}", policy.ln_price);
        while run(&mut policy, &mut jobs, GPU).is_some() {}
        for id in jobs.next_id().0..4000 {
            let short = job(id, 0, 1, 100);
            jobs.arrive(Nanos::ZERO, |_| short);
            policy.arrive(&short, &jobs, Nanos::ZERO);
            assert_eq!(run(&mut policy, &mut jobs, CPU), Some((id, Next::Run)));
        }
        assert_eq!(policy.choice(&like(0)), (Class::GPU, true), "{:?}", policy.ln_price);
    }
}
