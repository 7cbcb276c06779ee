//! The loop around the dispatcher, in simulated time.
//!
//! Arrivals are streamed from an iterator; completions and the wake-up wait in an [`EventQueue`], which also holds the
//! rule for events at one and the same nanosecond. A batch takes the sum of its jobs' service times.

use crate::ids::{JobId, QueryId};
use crate::machine::{Machine, PerKind};
use crate::sched::{Action, Dispatcher, Due, Event, EventQueue, Job, LawBroken, LogRow, Policy, RunLog, Sink};
use crate::time::Nanos;

/// A query of the workload: what it costs in truth, and what the policy is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimQuery {
    /// Its number in the workload.
    pub id: QueryId,
    /// True service time on each kind. On a kind that the machine lacks it is never read.
    pub service: PerKind<Nanos>,
    /// Estimated service time on each kind; [`Nanos::MAX`] on a kind that the machine lacks.
    pub estimate: PerKind<Nanos>,
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
    let mut arrivals = arrivals.fuse();
    let mut next_arrival = arrivals.next();
    // By job number: its position in `queries`, which a policy never learns.
    let mut asked: Vec<u32> = Vec::with_capacity(arrivals.size_hint().0);
    let mut events = EventQueue::new();
    let mut actions = Vec::new();
    while let Some(due) = events.pop(next_arrival.map(|(at, _)| at)) {
        let (now, event) = match (due, next_arrival) {
            (Due::Finish(at, processor), _) => (at, Event::Finish(processor)),
            (Due::Wake(at), _) => (at, Event::Wake),
            (Due::Arrival, Some((arrival, query))) => {
                next_arrival = arrivals.next();
                let job = Job {
                    id: JobId(asked.len() as u32),
                    query: queries[query as usize].id,
                    arrival,
                    deadline: arrival + deadline,
                    predicted: queries[query as usize].estimate,
                };
                asked.push(query);
                (arrival, Event::Arrive(job))
            }
            (Due::Arrival, None) => break,
        };
        let finished = matches!(event, Event::Finish(_));
        dispatcher.handle(now, event, &mut actions)?;
        if finished && enough(dispatcher.sink()) {
            break;
        }
        for action in actions.drain(..) {
            match action {
                Action::Start(processor, batch) => {
                    let kind = machine.kind(processor);
                    let service = |job: &Job| queries[asked[job.id.index()] as usize].service[kind];
                    let service = batch.jobs().iter().map(service).fold(Nanos::ZERO, |sum, time| sum + time);
                    events.finish_at(now + service, processor);
                }
                Action::WakeAt(at) => events.wake_at(at),
            }
        }
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
        let service = PerKind { cpu: Nanos(cpu_ns), gpu: Nanos(gpu_ns) };
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
