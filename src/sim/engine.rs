//! The loop around the dispatcher, in simulated time.
//!
//! Arrivals are streamed from an iterator; completions and the wake-up wait in an [`EventQueue`], which also holds the
//! rule for events at one and the same nanosecond. A batch takes the sum of its jobs' service times.

use std::collections::VecDeque;
use std::ops::Add;

use crate::ids::{JobId, QueryId};
use crate::machine::{Machine, PerClass};
use crate::sched::{Action, Batch, Dispatcher, Due, Event, EventQueue, Job, LawBroken, LogRow, Policy, RunLog, Sink};
use crate::time::Nanos;

/// A query of the workload: what it costs in truth, and what the policy is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimQuery {
    /// Its number in the workload.
    pub id: QueryId,
    /// True service time on each kind. On a kind that the machine lacks it is never read.
    pub service: PerClass<Nanos>,
    /// Estimated service time on each kind; [`Nanos::MAX`] on a kind that the machine lacks.
    pub estimate: PerClass<Nanos>,
}

/// One run: a machine, a policy and what arrives.
pub struct SimRun<'a, A> {
    /// The processors.
    pub machine: &'a Machine,
    /// The policy, fresh.
    pub policy: Box<dyn Policy>,
    /// The workload.
    pub queries: &'a [SimQuery],
    /// Times of arrival, never descending, each with a position in `queries`.
    pub arrivals: A,
    /// Time from a query's arrival to its deadline.
    pub deadline: Nanos,
}

impl<A> std::fmt::Debug for SimRun<'_, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimRun")
            .field("machine", self.machine)
            .field("policy", &self.policy.name())
            .field("queries", &self.queries.len())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Plays the arrivals through the policy until every query has been answered.
///
/// # Errors
/// If the policy breaks its contract, or arrivals go back in time.
///
/// # Panics
/// If an arrival names a query that `run.queries` lacks.
pub fn simulate(run: SimRun<'_, impl Iterator<Item = (Nanos, u32)>>) -> Result<RunLog, LawBroken> {
    let jobs = run.arrivals.size_hint().0;
    let dispatcher = Dispatcher::new(run.machine.clone(), run.policy, jobs);
    let dispatcher = drive(dispatcher, run.queries, run.arrivals, run.machine, run.deadline, |_| false)?;
    Ok(dispatcher.into_log())
}

/// Like [`simulate`], but gives each finished query's row to `sink`, in order of finish, and keeps nothing else; ends
/// early, in the middle of the run, once `enough` says so of the sink.
///
/// # Errors
/// As for [`simulate`].
///
/// # Panics
/// As for [`simulate`].
pub fn simulate_into<S: Sink>(
    run: SimRun<'_, impl Iterator<Item = (Nanos, u32)>>,
    sink: S,
    enough: impl Fn(&S) -> bool,
) -> Result<S, LawBroken> {
    let dispatcher = Dispatcher::with_sink(run.machine.clone(), run.policy, sink);
    Ok(drive(dispatcher, run.queries, run.arrivals, run.machine, run.deadline, enough)?.into_sink())
}

fn drive<S: Sink>(
    mut dispatcher: Dispatcher<S>,
    queries: &[SimQuery],
    arrivals: impl Iterator<Item = (Nanos, u32)>,
    machine: &Machine,
    deadline: Nanos,
    enough: impl Fn(&S) -> bool,
) -> Result<Dispatcher<S>, LawBroken> {
    // What arrives next is made one event ahead: by then its query's row, anywhere in a large table, has come.
    let mut jobs = (0..).map(JobId).zip(arrivals).map(|(id, (arrival, query))| {
        let SimQuery { id: query, service, estimate: predicted } = queries[query as usize];
        (Job { id, query, arrival, deadline: arrival + deadline, predicted }, service)
    });
    let mut next = jobs.next();
    // True service times of the jobs in flight, which a policy never learns, from job number `first_service` on.
    let mut services: VecDeque<PerClass<Nanos>> = VecDeque::new();
    let mut first_service = JobId(0);
    let mut events = EventQueue::new();
    let mut actions = Vec::new();
    while let Some(due) = events.pop(next.as_ref().map(|(job, _)| job.arrival)) {
        let now = match due {
            Due::Finish(now, processor) => {
                dispatcher.handle(now, Event::Finish(processor), &mut actions)?;
                if enough(dispatcher.sink()) {
                    break;
                }
                while first_service < dispatcher.first_in_flight() {
                    services.pop_front();
                    first_service.0 += 1;
                }
                now
            }
            Due::Wake(now) => {
                dispatcher.handle(now, Event::Wake, &mut actions)?;
                now
            }
            Due::Arrival => {
                let Some((job, service)) = next else { break };
                next = jobs.next();
                services.push_back(service);
                dispatcher.handle(job.arrival, Event::Arrive(job), &mut actions)?;
                job.arrival
            }
        };
        for &action in &actions {
            match action {
                Action::Start(processor) => {
                    let kind = machine.class(processor);
                    let service = |job: &Job| services[(job.id.0 - first_service.0) as usize][kind];
                    let jobs = dispatcher.batch_on(processor).map_or(&[][..], Batch::jobs);
                    events.finish_at(now + jobs.iter().map(service).fold(Nanos::ZERO, Nanos::add), processor);
                }
                Action::WakeAt(at) => events.wake_at(at),
            }
        }
        actions.clear();
    }
    Ok(dispatcher)
}

/// Learns just whether any query missed its deadline: what a capacity search asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoMiss {
    /// Whether one did.
    pub is_broken: bool,
}

impl Sink for NoMiss {
    fn record(&mut self, row: &LogRow) {
        self.is_broken |= row.missed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::{PolicyKind, PolicyOptions};

    fn query(id: u32, cpu_ns: u64, gpu_ns: u64) -> SimQuery {
        let service = PerClass::two(Nanos(cpu_ns), Nanos(gpu_ns));
        SimQuery { id: QueryId(id), service, estimate: service }
    }

    fn run_of<'a>(
        policy: PolicyKind,
        machine: &'a Machine,
        queries: &'a [SimQuery],
        arrivals: &'a [(u64, u32)],
    ) -> SimRun<'a, impl Iterator<Item = (Nanos, u32)> + 'a> {
        let policy = policy.build(&PolicyOptions::default(), machine).unwrap();
        let arrivals = arrivals.iter().map(|&(at, query)| (Nanos(at), query));
        SimRun { machine, policy, queries, arrivals, deadline: Nanos(100) }
    }

    #[test]
    fn a_small_run_by_hand() {
        let machine = Machine::new(1, 1);
        let queries = [query(70, 10, 50), query(71, 60, 30)];
        let log = simulate(run_of(PolicyKind::CpuOnly, &machine, &queries, &[(0, 1), (5, 0), (60, 0)])).unwrap();
        let times: Vec<_> = log.rows.iter().map(|r| (r.query.0, r.started.0, r.finished.0)).collect();
        assert_eq!(times, [(71, 0, 60), (70, 60, 70), (70, 70, 80)]);
        let log = simulate(run_of(PolicyKind::BestOf, &machine, &queries, &[(0, 1), (5, 0), (60, 0)])).unwrap();
        let times: Vec<_> = log.rows.iter().map(|r| (r.processor.0, r.started.0, r.finished.0)).collect();
        assert_eq!(times, [(1, 0, 30), (0, 30, 40), (0, 60, 70)]);
    }

    #[test]
    fn a_run_stops_early_once_the_sink_has_enough() {
        let machine = Machine::new(1, 0);
        let queries = [query(0, 80, 0)];
        let arrivals = [(0, 0), (0, 0), (0, 0)];
        let run = run_of(PolicyKind::CpuOnly, &machine, &queries, &arrivals);
        assert!(simulate_into(run, NoMiss::default(), |sink| sink.is_broken).unwrap().is_broken);
    }

    #[test]
    fn arrivals_that_go_back_are_refused() {
        let machine = Machine::new(1, 0);
        let run = run_of(PolicyKind::CpuOnly, &machine, &[], &[]);
        let run = SimRun {
            queries: &[query(0, 1, 1)],
            arrivals: [(Nanos(9), 0), (Nanos(3), 0)].into_iter(),
            machine: run.machine,
            policy: run.policy,
            deadline: run.deadline,
        };
        assert!(simulate(run).unwrap_err().to_string().contains("time went back"));
    }
}
