//! Clusters: an index in shards, each on several nodes; a query's answer is there when the slowest shard's is.
//!
//! ```text
//!                       ┌─ shard 0: node 0 · node 1 · node 2 ─┐
//!   query ── broker ────┼─ shard 1: node 0 · node 1 · node 2 ─┼── slowest of the shards ──▶ answer
//!                       └─ shard 2: node 0 · node 1 · node 2 ─┘
//!                            one replica of each, by the routing
//! ```
//!
//! Every node is a machine as measured, with a policy of its own, and all nodes live in one simulated time. The workload
//! says what a query costs a node, whose index is one shard; what another shard's node takes for the same query is, by
//! [`ShardCosts`], about as much, or as much as for another query. The first is what shards of a shuffled collection do,
//! the second the worst that they can.
//!
//! With Poisson arrivals and exponential times there are closed forms to compare with (`tests/it/cluster.rs`): one shard of
//! R nodes chosen at random is R queues M/M/1; two independent shards are Flatto and Hahn's fork and join (1984), more of
//! them Nelson and Tantawi's approximation (1988).

use std::collections::VecDeque;
use std::sync::Arc;

use super::node::Node;
use super::table::QueryTable;
use super::{SimQuery, bounds};
use crate::base::ids::{JobId, QueryId};
use crate::base::machine::LaneFault;
use crate::base::machine::PerClass;
use crate::base::random::{NodeSeed, Purpose, Random, exp};
use crate::base::time::Nanos;
use crate::cost::{BatchSizes, Cost, DispatcherTime, MachineModel, MeasuredTimes, ServiceTimes};
use crate::sched::{Dispatcher, Job, LawBroken, LogRow, Policy, ShedJob, Sink};

/// The seed of shards' factors: they belong to the index, and are the same in all runs.
const INDEX_SEED: u64 = 0;

/// Which replica of a shard answers a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Routing {
    /// That with the fewest queries to answer; of equals, the next in turn.
    #[default]
    LeastOutstanding,
    /// Each in turn.
    RoundRobin,
    /// Any, all equally likely.
    Random,
}

impl Routing {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::LeastOutstanding, Self::RoundRobin, Self::Random];

    /// As in options and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LeastOutstanding => "least-outstanding",
            Self::RoundRobin => "round-robin",
            Self::Random => "random",
        }
    }
}

/// What the same query costs on other shards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShardCosts {
    /// As much as measured, times a factor for each query and shard: lognormal of mean 1, whose logarithm deviates by so
    /// much.
    Alike(f64),
    /// As much as another query, drawn anew for each shard.
    Independent,
}

/// How many nodes there are, and how they share the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterShape {
    /// Parts of the index, at least 1. A query goes to all of them.
    pub shards: usize,
    /// Nodes for each, at least 1.
    pub replicas: usize,
    /// How one of them is chosen.
    pub routing: Routing,
    /// How costs differ between shards.
    pub costs: ShardCosts,
}

impl ClusterShape {
    /// How many machines that is.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.shards * self.replicas
    }
}

/// A cluster over a workload: what each shard's nodes take for each query.
#[derive(Clone, Debug)]
pub struct Cluster {
    shape: ClusterShape,
    shards: Vec<Arc<[SimQuery]>>,
}

impl Cluster {
    /// Of this shape, over these queries. A shard's factors are drawn from its number alone: more shards are the same ones
    /// and others beside.
    ///
    /// # Panics
    /// If it has no shards or no replicas.
    #[must_use]
    pub fn new(shape: ClusterShape, queries: &[SimQuery]) -> Self {
        assert!(shape.nodes() > 0, "a cluster without nodes");
        let shards = (0..shape.shards).map(|shard| match shape.costs {
            // One shard is the measured one.
            ShardCosts::Alike(spread) if spread > 0.0 && shape.shards > 1 => {
                let seed = NodeSeed { seed: INDEX_SEED, node: shard as u32 };
                let mut random = seed.stream(Purpose::ShardFactors, 0);
                let mut factor = || exp(spread * random.normal() - spread * spread / 2.0);
                queries.iter().map(|query| query.times(factor())).collect()
            }
            _ => queries.into(),
        });
        Self { shape, shards: shards.collect() }
    }

    /// Its shape.
    #[must_use]
    pub fn shape(&self) -> ClusterShape {
        self.shape
    }

    /// The rate above which no cluster of this shape is stable when queries of these rows are asked, whatever the nodes'
    /// schedulers, which make batches of these sizes; `None` if everything costs nothing.
    pub(super) fn region(&self, model: &MachineModel, rows: &[u32], sizes: BatchSizes) -> Option<bounds::Region> {
        let region = |queries: &Arc<[SimQuery]>| {
            bounds::region(rows.iter().map(|&row| queries[row as usize].service), model, sizes)
        };
        // Where a shard costs what another query costs the first, one tells of all.
        let distinct = if self.shape.costs == ShardCosts::Independent { 1 } else { self.shards.len() };
        let slowest =
            self.shards[..distinct].iter().filter_map(region).min_by(|a, b| a.rate_qps.total_cmp(&b.rate_qps));
        slowest.map(|region| bounds::Region { rate_qps: region.rate_qps * self.shape.replicas as f64, ..region })
    }

    /// The row of the workload whose cost a shard's node takes for the query of `row`.
    #[inline]
    fn row(&self, shard: usize, chance: &mut ShardChance, row: u32) -> u32 {
        match self.shape.costs {
            ShardCosts::Independent if shard > 0 => chance.rows.below(self.shards[shard].len() as u32),
            _ => row,
        }
    }
}

impl SimQuery {
    /// The same, on a node that takes `factor` times as long.
    fn times(&self, factor: f64) -> Self {
        let times = |cost: Cost| cost.scaled(factor);
        Self { id: self.id, service: self.service.map(times), estimate: self.estimate.map(times) }
    }
}

/// The streams of one shard of a run.
struct ShardChance {
    rows: Random,
    routing: Random,
}

/// The nodes of a cluster beside the first, each with its policy.
pub struct OtherNodes<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// A fresh policy for each of its nodes but the first.
    pub policies: Vec<Box<dyn Policy>>,
}

impl std::fmt::Debug for OtherNodes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtherNodes").field("shape", &self.cluster.shape).finish_non_exhaustive()
    }
}

/// What a run on a cluster is made of.
pub(super) struct ClusterRun<'a> {
    pub(super) model: &'a MachineModel,
    pub(super) first: Box<dyn Policy>,
    pub(super) seed: u64,
    pub(super) others: OtherNodes<'a>,
    pub(super) queries: &'a [SimQuery],
    pub(super) deadline: Nanos,
}

/// How a node's queries ended, until the broker has taken it.
#[derive(Debug, Default)]
struct Returned {
    rows: Vec<LogRow>,
    shed: Vec<ShedJob>,
    faults: Vec<LaneFault>,
}

impl Sink for Returned {
    fn record(&mut self, row: &LogRow) {
        self.rows.push(*row);
    }

    fn shed(&mut self, job: &ShedJob) {
        self.shed.push(*job);
    }

    fn lane_fault(&mut self, fault: &LaneFault) {
        self.faults.push(fault.clone());
    }
}

/// A node, and what has been sent to it that it has not seen.
struct Member<T> {
    node: Node<Returned, T>,
    inbox: VecDeque<Job>,
    sent: u32,
}

impl<T: ServiceTimes> Member<T> {
    /// Plays all that is taken in before `until`.
    fn advance(&mut self, until: Nanos) -> Result<(), LawBroken> {
        while let Some(at) = self.node.next_group_at(self.inbox.front().map(|job| job.arrival)).filter(|&at| at < until)
        {
            // What comes while the dispatcher is held up is taken in with it.
            if self.node.held_until(at) >= until {
                break;
            }
            self.node.play_group(at, &mut self.inbox, |_| false)?;
        }
        Ok(())
    }

    fn outstanding(&self) -> usize {
        self.node.dispatcher().in_flight() + self.inbox.len()
    }
}

/// Plays arrivals through the cluster. A query's row is that of the shard which answered it last, with the number and id
/// that it has in the run; rows come in order of finish.
///
/// # Errors
/// If a policy breaks its contract, or arrivals go back in time.
pub(super) fn play_cluster<S: Sink>(
    run: ClusterRun<'_>,
    arrivals: impl Iterator<Item = (Nanos, u32)>,
    mut sink: S,
    enough: impl Fn(&S) -> bool,
) -> Result<S, LawBroken> {
    let ClusterRun { model, first, seed, others: OtherNodes { cluster, policies }, queries, deadline } = run;
    let ClusterShape { replicas, routing, .. } = cluster.shape;
    let tables: Vec<QueryTable<Cost>> =
        cluster.shards.iter().map(|shard| QueryTable::of(shard, &model.machine)).collect();
    let mut policies = std::iter::once(first).chain(policies);
    let mut seeds = (0..).map(|node| NodeSeed { seed, node });
    let mut shards: Vec<Vec<Member<_>>> = Vec::new();
    for table in &tables {
        let member = |(mut policy, seed): (Box<dyn Policy>, NodeSeed)| {
            policy.set_chance(seed.stream(Purpose::Policy, 0));
            let DispatcherTime { decisions, stalls } = model.dispatcher_time(policy.name());
            let stalls = stalls.of_run(seed);
            let dispatcher = Dispatcher::with_sink(&model.machine, policy, Returned::default());
            let times = MeasuredTimes::new(model, seed, |row, class| table.service(row, class));
            Member { node: Node::new(dispatcher, times, decisions, stalls), inbox: VecDeque::new(), sent: 0 }
        };
        shards.push(policies.by_ref().take(replicas).zip(seeds.by_ref()).map(member).collect());
    }
    let of_shard = |shard: usize| {
        let seed = NodeSeed { seed, node: (shard * replicas) as u32 };
        ShardChance { rows: seed.stream(Purpose::ShardRows, 0), routing: seed.stream(Purpose::Routing, 0) }
    };
    let mut chances: Vec<ShardChance> = (0..shards.len()).map(of_shard).collect();
    let mut broker = Broker::default();
    for (number, (arrival, row)) in (0_u32..).zip(arrivals) {
        if !broker.collect(&mut shards, arrival, &mut sink, &enough)? {
            return Ok(sink);
        }
        broker.send(arrival, queries[row as usize].id, shards.len());
        for (shard, nodes) in shards.iter_mut().enumerate() {
            let turn = number as usize % nodes.len();
            let chosen = match routing {
                Routing::RoundRobin => turn,
                Routing::Random => chances[shard].routing.below(nodes.len() as u32) as usize,
                Routing::LeastOutstanding => {
                    let from_turn = (0..nodes.len()).map(|after| (turn + after) % nodes.len());
                    from_turn.min_by_key(|&node| nodes[node].outstanding()).unwrap_or(turn)
                }
            };
            let row = cluster.row(shard, &mut chances[shard], row);
            let member = &mut nodes[chosen];
            // On its way through a node a query goes by its number in the run.
            let (id, query) = (JobId(member.sent), QueryId(number));
            let predicted: PerClass<Cost> = *tables[shard].estimate(row);
            member.inbox.push_back(Job { id, query, row, arrival, deadline: arrival + deadline, predicted });
            member.sent += 1;
        }
    }
    broker.collect(&mut shards, Nanos::MAX, &mut sink, &enough)?;
    Ok(sink)
}

/// A query that not all shards have answered.
#[derive(Clone, Copy, Debug)]
struct Open {
    arrival: Nanos,
    query: QueryId,
    missing: usize,
    /// The row of the shard that has taken longest so far.
    slowest: Option<LogRow>,
    /// The last shard that has dropped it: then it has no answer.
    shed: Option<ShedJob>,
    /// Whether it ran twice on any shard.
    again: bool,
}

/// Puts the shards' answers together.
#[derive(Debug, Default)]
struct Broker {
    /// The queries from number `first` on.
    open: VecDeque<Open>,
    first: u32,
    complete: Vec<LogRow>,
    shed: Vec<ShedJob>,
}

impl Broker {
    fn send(&mut self, arrival: Nanos, query: QueryId, shards: usize) {
        self.open.push_back(Open { arrival, query, missing: shards, slowest: None, shed: None, again: false });
    }

    /// Lets all nodes play until `until`, and passes on what is complete; `false` once that is enough.
    fn collect<S: Sink, T: ServiceTimes>(
        &mut self,
        shards: &mut [Vec<Member<T>>],
        until: Nanos,
        sink: &mut S,
        enough: impl Fn(&S) -> bool,
    ) -> Result<bool, LawBroken> {
        for member in shards.iter_mut().flatten() {
            member.advance(until)?;
            let Returned { rows, shed, faults } = member.node.dispatcher_mut().sink_mut();
            rows.drain(..).for_each(|row| self.join(row));
            shed.drain(..).for_each(|job| self.join_shed(job));
            faults.drain(..).for_each(|fault| sink.lane_fault(&fault));
        }
        while self.open.front().is_some_and(|open| open.missing == 0) {
            self.open.pop_front();
            self.first += 1;
        }
        self.complete.sort_unstable_by_key(|row| (row.finished, row.job));
        for row in self.complete.drain(..) {
            sink.record(&row);
            if enough(sink) {
                return Ok(false);
            }
        }
        self.shed.sort_unstable_by_key(|shed| (shed.dropped, shed.job));
        for shed in self.shed.drain(..) {
            sink.shed(&shed);
            if enough(sink) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A shard has answered.
    fn join(&mut self, row: LogRow) {
        let number = row.query.0;
        let open = &mut self.open[(number - self.first) as usize];
        open.missing -= 1;
        open.again |= row.again;
        if open.slowest.is_none_or(|slowest| row.finished > slowest.finished) {
            open.slowest = Some(row);
        }
        self.complete_if_all_are_there(number);
    }

    /// A shard has dropped its part: the whole has no answer.
    fn join_shed(&mut self, job: ShedJob) {
        let number = job.query.0;
        let open = &mut self.open[(number - self.first) as usize];
        open.missing -= 1;
        if open.shed.is_none_or(|shed| job.dropped > shed.dropped) {
            open.shed = Some(job);
        }
        self.complete_if_all_are_there(number);
    }

    fn complete_if_all_are_there(&mut self, number: u32) {
        let open = &self.open[(number - self.first) as usize];
        let (job, query, arrival, again) = (JobId(number), open.query, open.arrival, open.again);
        match (open.missing, open.shed, open.slowest) {
            (0, Some(shed), _) => self.shed.push(ShedJob { job, query, arrival, ..shed }),
            (0, None, Some(slowest)) => self.complete.push(LogRow { job, query, arrival, again, ..slowest }),
            _ => {}
        }
    }
}
