//! Runs: arrivals of a workload, played through a policy on a node or a cluster.

use super::ahead::Ahead;
use super::cluster::{ClusterRun, OtherNodes, play_cluster};
use super::fifo_queues::{QueuesRun, play_queues};
use super::node::{Inbox, Node};
use super::table::{QueryTable, SimQuery};
use crate::base::ids::JobId;
use crate::base::random::{NodeSeed, Purpose};
use crate::base::time::Nanos;
use crate::cost::{Decisions, MachineModel, MeasuredTimes, ServiceTimes};
use crate::sched::{Dispatcher, Job, LawBroken, Policy, RunLog, Sink};
use crate::traffic::Priorities;

/// One run: a machine, a policy and the arrivals.
pub struct SimRun<'a, A> {
    /// The machine.
    pub model: &'a MachineModel,
    /// The policy, without state of earlier runs.
    pub policy: Box<dyn Policy>,
    /// The seed of service times, stalls, routing and policies.
    pub seed: u64,
    /// The workload.
    pub queries: &'a [SimQuery],
    /// Ascending times of arrival, each with a position in `queries`.
    pub arrivals: A,
    /// Time from a query's arrival to its deadline.
    pub deadline: Nanos,
    /// The priorities of the queries, with deadlines of their own in place of `deadline`; not in clusters.
    pub priorities: Option<&'a Priorities>,
    /// The nodes of the cluster besides the machine, which is its first node.
    pub others: Option<OtherNodes<'a>>,
}

impl<A> std::fmt::Debug for SimRun<'_, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimRun")
            .field("machine", &self.model.machine)
            .field("policy", &self.policy.name())
            .field("queries", &self.queries.len())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl<'a, A: Iterator<Item = (Nanos, u32)>> SimRun<'a, A> {
    /// Copies the run with arrivals that pass each time to `notice` before it is played.
    pub(crate) fn noticing<N: FnMut(Nanos)>(
        self,
        mut notice: N,
    ) -> SimRun<'a, impl Iterator<Item = (Nanos, u32)> + use<'a, A, N>> {
        let Self { model, policy, seed, queries, arrivals, deadline, priorities, others } = self;
        let arrivals = arrivals.inspect(move |&(at, _)| notice(at));
        SimRun { model, policy, seed, queries, arrivals, deadline, priorities, others }
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
    let mut log = simulate_into(run, RunLog::with_room_for(jobs), |_| false)?;
    log.sort();
    Ok(log)
}

/// Plays a run like [`simulate`], but only gives each query's end to `sink`, in order. The run ends early once `enough`
/// returns true.
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
    let SimRun { model, mut policy, seed, queries, arrivals, deadline, priorities, others } = run;
    if let Some(others) = others {
        let run = ClusterRun { model, others, first: policy, seed, queries, deadline };
        return play_cluster(run, arrivals, sink, enough);
    }
    let levels = priorities.map(|priorities| priorities.of_run(seed));
    let seed = NodeSeed { seed, node: 0 };
    policy.set_chance(seed.stream(Purpose::Policy, 0));
    let decisions = model.decisions(policy.name());
    if model.faults.faults.is_empty() && levels.is_none() {
        let name = policy.name().to_owned();
        if let Some(lines) = policy.as_fifo_queues() {
            let table = QueryTable::of_alone(queries, model);
            let times = MeasuredTimes::new(model, seed, |row, class| table.service(row, class));
            let arrivals = Ahead::of(arrivals, |row| table.prefetch(row));
            let run = QueuesRun { machine: &model.machine, table: &table, times, decisions, deadline };
            return play_queues(run, &name, lines, arrivals, sink, enough);
        }
    }
    let table = QueryTable::of(queries, model);
    let mut times = MeasuredTimes::new(model, seed, |row, class| table.service(row, class));
    let arrivals = Ahead::of(arrivals, |row| table.prefetch(row));
    let dispatcher = Dispatcher::with_sink(&model.machine, policy, sink);
    let job = |id: JobId, arrival, row| {
        let (priority, allowance) = levels.map_or((0, deadline), |levels| levels.of(id.0));
        let (query, predicted) = (table.id(row), *table.estimate(row));
        Job { id, query, row, priority, arrival, deadline: arrival + allowance, predicted }
    };
    Ok(drive(dispatcher, &mut times, decisions, arrivals, job, enough)?.into_sink())
}

/// Plays arrivals through a dispatcher. Each arrival names a row of the workload, from which `job` makes a job. `times`
/// gives the service times of batches, `decisions` the dispatcher's own time.
///
/// # Errors
/// If the policy breaks its contract, or arrivals go back in time.
pub fn drive<S: Sink>(
    dispatcher: Dispatcher<S>,
    times: &mut impl ServiceTimes,
    decisions: Decisions,
    mut arrivals: impl Iterator<Item = (Nanos, u32)>,
    job: impl Fn(JobId, Nanos, u32) -> Job,
    enough: impl Fn(&S) -> bool,
) -> Result<Dispatcher<S>, LawBroken> {
    let mut inbox = Stream { next: arrivals.next(), arrivals, job };
    let mut node = Node::new(dispatcher, times, decisions);
    while let Some(at) = node.next_group_at(inbox.next_at()) {
        if !node.play_group(at, &mut inbox, &enough)? {
            break;
        }
    }
    Ok(node.into_dispatcher())
}

/// Arrivals as they are drawn; each becomes a job when it is taken.
struct Stream<A, F> {
    next: Option<(Nanos, u32)>,
    arrivals: A,
    job: F,
}

impl<A: Iterator<Item = (Nanos, u32)>, F: Fn(JobId, Nanos, u32) -> Job> Inbox for Stream<A, F> {
    #[inline(always)]
    fn next_at(&self) -> Option<Nanos> {
        self.next.map(|(arrival, _)| arrival)
    }

    #[inline(always)]
    fn hand_in<S: Sink>(&mut self, dispatcher: &mut Dispatcher<S>, now: Nanos) -> Result<(), LawBroken> {
        let Some((arrival, row)) = self.next else { return Ok(()) };
        self.next = self.arrivals.next();
        dispatcher.arrive_made(now, arrival, |id| (self.job)(id, arrival, row))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::ids::QueryId;
    use crate::base::machine::Machine;
    use crate::cost::Cost;
    use crate::cost::machine_profile::DispatcherProfile;
    use crate::sched::{PolicyFactory, PolicyKind, PolicyOptions};

    fn query(id: u32, cpu_ns: u64, gpu_ns: u64) -> SimQuery {
        let service = Cost::on_cpu_and_gpu(Nanos(cpu_ns), Nanos(gpu_ns));
        SimQuery { id: QueryId(id), service, estimate: service }
    }

    fn run_of<'a>(
        policy: PolicyKind,
        model: &'a MachineModel,
        queries: &'a [SimQuery],
        arrivals: &'a [(u64, u32)],
    ) -> SimRun<'a, impl Iterator<Item = (Nanos, u32)> + 'a> {
        let policy = policy.with(PolicyOptions::default()).build(model).unwrap();
        let arrivals = arrivals.iter().map(|&(at, query)| (Nanos(at), query));
        SimRun { model, policy, seed: 0, queries, arrivals, deadline: Nanos(100), priorities: None, others: None }
    }

    #[test]
    fn a_small_run_by_hand() {
        let model = MachineModel::from(Machine::new(1, 1));
        let queries = [query(70, 10, 50), query(71, 60, 30)];
        let log = simulate(run_of(PolicyKind::CpuOnly, &model, &queries, &[(0, 1), (5, 0), (60, 0)])).unwrap();
        let times: Vec<_> = log.rows.iter().map(|r| (r.query.0, r.started.0, r.finished.0)).collect();
        assert_eq!(times, [(71, 0, 60), (70, 60, 70), (70, 70, 80)]);
        let log = simulate(run_of(PolicyKind::BestOf, &model, &queries, &[(0, 1), (5, 0), (60, 0)])).unwrap();
        let times: Vec<_> = log.rows.iter().map(|r| (r.processor.0, r.started.0, r.finished.0)).collect();
        assert_eq!(times, [(1, 0, 30), (0, 30, 40), (0, 60, 70)]);
    }

    #[test]
    fn the_dispatcher_takes_its_time_and_what_comes_meanwhile_waits_for_it() {
        let model = MachineModel { decision: Nanos(10), ..Machine::new(2, 0).into() };
        let queries = [query(0, 25, 0)];
        let log = simulate(run_of(PolicyKind::CpuOnly, &model, &queries, &[(0, 0), (3, 0), (8, 0)])).unwrap();
        let times: Vec<_> = log.rows.iter().map(|r| (r.released.0, r.started.0, r.finished.0)).collect();
        // The first query is decided on at 10, the two that arrived in between at 30, when one worker is idle. The end of the
        // first, at 35, is seen at once; its worker starts the third at 45.
        assert_eq!(times, [(0, 10, 35), (10, 30, 55), (10, 45, 70)]);
    }

    #[test]
    fn a_long_round_delays_what_comes_meanwhile_in_both_loops() {
        let dispatcher = DispatcherProfile { any: Decisions::each(Nanos(1015)), ..DispatcherProfile::default() };
        let model = MachineModel { dispatcher: Some(Arc::new(dispatcher)), ..Machine::new(1, 0).into() };
        let queries = [query(0, 25, 0)];
        let arrivals = [(0, 0), (500, 0)];
        let by_lines = simulate(run_of(PolicyKind::CpuOnly, &model, &queries, &arrivals)).unwrap();
        let table = QueryTable::of(&queries, &model);
        let mut times = MeasuredTimes::new(&model, NodeSeed::default(), |row, class| table.service(row, class));
        let policy = PolicyKind::CpuOnly.with(PolicyOptions::default()).build(&model).unwrap();
        let dispatcher = Dispatcher::with_sink(&model.machine, policy, RunLog::default());
        let job = |id, arrival, row| {
            let (query, predicted) = (queries[row as usize].id, queries[row as usize].estimate);
            Job { id, query, row, priority: 0, arrival, deadline: arrival + Nanos(100), predicted }
        };
        let arrivals = arrivals.map(|(at, row)| (Nanos(at), row)).into_iter();
        let decisions = model.decisions("cpu-only");
        let driven = drive(dispatcher, &mut times, decisions, arrivals, job, |_| false).unwrap().into_sink();
        for log in [by_lines, driven] {
            let rows: Vec<_> = log.rows.iter().map(|r| (r.released.0, r.started.0, r.finished.0)).collect();
            // Each round of one event takes 1,015 ns. The second query arrives during the first round and is decided on
            // at 2030; the end of the first query, at 1040, comes during that round and is taken in after it.
            assert_eq!(rows, [(0, 1015, 2030), (1015, 3045, 3070)]);
        }
    }

    #[test]
    fn a_run_stops_early_once_the_sink_has_enough() {
        let model = MachineModel::from(Machine::new(1, 0));
        let queries = [query(0, 80, 0)];
        let arrivals = [(0, 0), (0, 0), (0, 0)];
        let run = run_of(PolicyKind::CpuOnly, &model, &queries, &arrivals);
        assert_eq!(simulate_into(run, RunLog::default(), |log| log.rows.len() == 1).unwrap().rows.len(), 1);
    }

    #[test]
    fn arrivals_that_go_back_are_refused() {
        let model = MachineModel::from(Machine::new(1, 0));
        let queries = [query(0, 1, 1)];
        let run = run_of(PolicyKind::CpuOnly, &model, &queries, &[(9, 0), (3, 0)]);
        assert!(simulate(run).unwrap_err().to_string().contains("time went back"));
    }
}
