//! `stealing`: three queues, and idle processors that steal (Ding et al. 2009, section 9).
//!
//! ```text
//!                        ┌─ much faster on a CPU ──▶ CPU queue ──▶ CPUs ─┐
//!   arrival ─ ratio? ────┼─ about the same ────────▶ third queue ────────┼─ whoever is idle first
//!                        └─ much faster on a GPU ──▶ GPU queue ──▶ GPUs ─┘   (and steals when all else is empty)
//! ```
//!
//! A job goes to a kind's own queue if it is predicted to be faster there by at least the threshold ratio. An idle
//! processor takes, of what waits,
//!
//! 1. an urgent job that prefers its kind: one past a set share of its time to the deadline; the most urgent first;
//! 2. the first job of its own queue, by the mix of cost, deadline and affinity below;
//! 3. the oldest job of the third queue;
//! 4. a job of the other kind's queue, unless the guard forbids it: the one that loses least by the move (the smallest
//!    ratio of its predicted time here to its predicted time there; the paper leaves this choice open).
//!
//! # The mix
//! On kind k, of the jobs in its queue, the smallest of
//!
//! ```text
//!   deadline_weight · deadline  +  cost_weight · predicted[k]  −  affinity_weight · (predicted[other] − predicted[k])
//! ```
//!
//! goes first, all three in time. Jobs come nearer to their deadlines all at one pace, so "time left to the deadline"
//! ranks them as the deadline itself does: the key is fixed at arrival and the order never changes with time. A cost
//! weight of 1 lets a job that is 10 ms shorter overtake those that arrived up to 10 ms earlier. The gain by affinity
//! counts up to the job's whole time to its deadline, lest one hopeless misfit outweigh everything.
//!
//! Memory and time: each job stands in at most three orders; O(log n) an event, amortised.

use super::waiting::{Order, WaitingJobs};
use super::{Batch, Job, Next, Policy, PolicyError, PolicyOptions, StealGuard};
use crate::ids::ProcessorId;
use crate::machine::{Class, Machine, PerClass};
use crate::time::Nanos;

/// The queues that lead to processors of one kind.
#[derive(Clone, Debug, Default)]
struct KindQueues {
    /// Jobs of this kind's own queue, by the mix.
    own: Order<i64>,
    /// The same jobs, in the order in which the other kind steals them.
    steals: Order<u64>,
    /// Jobs that prefer this kind, of its own queue and of the third, by the time at which they become urgent.
    urgency: Order<Nanos>,
    /// Predicted time of the jobs that wait in the own queue.
    backlog: Nanos,
}

/// Three queues with deadlines and stealing.
#[derive(Clone, Debug)]
pub struct Stealing {
    machine: Machine,
    options: PolicyOptions,
    counts: PerClass<u64>,
    jobs: WaitingJobs,
    kinds: PerClass<KindQueues>,
    third: Order<()>,
}

impl Stealing {
    /// Empty queues.
    ///
    /// # Errors
    /// If `machine` lacks a kind, or an option makes no sense.
    pub fn new(options: &PolicyOptions, machine: &Machine) -> Result<Self, PolicyError> {
        PolicyError::require(machine, "stealing", &[Class::CPU, Class::GPU])?;
        options.check()?;
        Ok(Self {
            machine: machine.clone(),
            options: *options,
            counts: PerClass::from_fn(|kind| machine.count(kind) as u64),
            jobs: WaitingJobs::default(),
            kinds: PerClass::default(),
            third: Order::default(),
        })
    }

    /// Whether `job` is so much faster on its better kind that it waits in that kind's own queue.
    fn is_bound(&self, job: &Job) -> bool {
        let preferred = job.preferred_class();
        let [better, worse] = [preferred, preferred.other()].map(|kind| job.predicted[kind].0 as f64);
        worse >= better * self.options.threshold_ratio
    }

    /// The mix: see the module's documentation.
    fn priority(&self, job: &Job, kind: Class) -> i64 {
        let ns = |time: Nanos| time.0 as f64;
        let gain = job.predicted[kind.other()] - job.predicted[kind];
        let gain = gain.min(job.deadline.since(job.arrival));
        let key = self.options.deadline_weight * ns(job.deadline) + self.options.cost_weight * ns(job.predicted[kind])
            - self.options.affinity_weight * ns(gain);
        key.round() as i64
    }

    /// Whether a processor of kind `thief` may take `job` from the other kind's queue.
    fn may_steal(&self, job: &Job, thief: Class, now: Nanos) -> bool {
        let finish = now + job.predicted[thief];
        match self.options.steal_guard {
            StealGuard::None => true,
            StealGuard::Deadline => finish <= job.deadline,
            StealGuard::Gain => {
                let victim = thief.other();
                finish <= now + Nanos(self.kinds[victim].backlog.0 / self.counts[victim].max(1))
            }
        }
    }

    fn choose(&mut self, kind: Class, now: Nanos) -> Option<Job> {
        let jobs = &self.jobs;
        let urgent = self.kinds[kind].urgency.first(jobs).filter(|(urgent_at, _)| *urgent_at <= now);
        let found = urgent.map(|(_, job)| job);
        let found = found.or_else(|| self.kinds[kind].own.first(jobs).map(|(_, job)| job));
        let found = found.or_else(|| self.third.first(jobs).map(|(_, job)| job));
        if let Some(job) = found {
            return Some(*job);
        }
        let stolen = self.kinds[kind.other()].steals.first(jobs).map(|(_, job)| *job);
        stolen.filter(|job| self.may_steal(job, kind, now))
    }
}

impl Policy for Stealing {
    fn name(&self) -> &'static str {
        "stealing"
    }

    fn arrive(&mut self, job: Job, _now: Nanos) {
        self.jobs.insert(job);
        let preferred = job.preferred_class();
        let urgent_at = job.arrival + job.deadline.since(job.arrival).scaled(self.options.urgent_share);
        if self.is_bound(&job) {
            let priority = self.priority(&job, preferred);
            let queues = &mut self.kinds[preferred];
            queues.own.push(priority, job.id, &self.jobs);
            queues.steals.push(loss_by_moving(&job, preferred), job.id, &self.jobs);
            queues.urgency.push(urgent_at, job.id, &self.jobs);
            queues.backlog += job.predicted[preferred];
        } else {
            self.third.push((), job.id, &self.jobs);
            self.kinds[preferred].urgency.push(urgent_at, job.id, &self.jobs);
        }
    }

    fn next(&mut self, processor: ProcessorId, now: Nanos) -> Next {
        let Some(job) = self.choose(self.machine.class(processor), now) else { return Next::Wait };
        self.jobs.take(job.id);
        if self.is_bound(&job) {
            let preferred = job.preferred_class();
            let backlog = &mut self.kinds[preferred].backlog;
            *backlog = *backlog - job.predicted[preferred];
        }
        Next::Run(Batch::One(job))
    }
}

/// Predicted time on the other kind per predicted time on `preferred`, in 1/65536: an integer, so that it orders.
fn loss_by_moving(job: &Job, preferred: Class) -> u64 {
    let [there, here] = [preferred.other(), preferred].map(|kind| job.predicted[kind].0 as f64);
    (there / here.max(1.0) * 65_536.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{JobId, QueryId};

    fn job(id: u32, arrival_ms: u64, cpu_ms: u64, gpu_ms: u64) -> Job {
        let ms = |n: u64| Nanos(n * 1_000_000);
        Job {
            id: JobId(id),
            query: QueryId(id),
            arrival: ms(arrival_ms),
            deadline: ms(arrival_ms + 500),
            predicted: PerClass::two(ms(cpu_ms), ms(gpu_ms)),
        }
    }

    const CPU: ProcessorId = ProcessorId(0);
    const GPU: ProcessorId = ProcessorId(1);

    /// One CPU, one GPU, and these jobs waiting.
    fn with_jobs(options: PolicyOptions, jobs: &[Job]) -> Stealing {
        let mut policy = Stealing::new(&options, &Machine::new(1, 1)).unwrap();
        jobs.iter().for_each(|job| policy.arrive(*job, job.arrival));
        policy
    }

    fn run(policy: &mut Stealing, processor: ProcessorId, now_ms: u64) -> Option<u32> {
        match policy.next(processor, Nanos(now_ms * 1_000_000)) {
            Next::Run(batch) => Some(batch.jobs()[0].id.0),
            _ => None,
        }
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
        // Past 0.6 of 500 ms, the long job is urgent.
        assert_eq!(run(&mut with_jobs(options, &jobs), GPU, 300), Some(0));
    }

    #[test]
    fn an_urgent_job_of_the_third_queue_runs_on_its_preferred_kind() {
        let mut policy = with_jobs(PolicyOptions::default(), &[job(0, 0, 100, 99), job(1, 1, 500, 10)]);
        assert_eq!(run(&mut policy, GPU, 300), Some(0));
        assert_eq!(run(&mut policy, GPU, 300), Some(1));
    }

    #[test]
    fn a_thief_takes_what_loses_least_and_the_guard_keeps_it_from_a_predicted_miss() {
        let jobs = [job(0, 0, 400, 4), job(1, 0, 450, 200), job(2, 0, 40, 4)];
        let options = PolicyOptions { steal_guard: StealGuard::Deadline, ..PolicyOptions::default() };
        assert_eq!(run(&mut with_jobs(options, &jobs), CPU, 0), Some(1));
        assert_eq!(run(&mut with_jobs(options, &jobs), CPU, 51), None);
    }
}
