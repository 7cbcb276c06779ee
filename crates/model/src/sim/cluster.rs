//! Clusters: an index in shards, each on several nodes. A query is answered when its slowest shard has answered.
//!
//! ```text
//!                       ┌─ shard 0: node 0 · node 1 · node 2 ─┐
//!   query ── broker ────┼─ shard 1: node 0 · node 1 · node 2 ─┼── slowest of the shards ──▶ answer
//!                       └─ shard 2: node 0 · node 1 · node 2 ─┘
//!                            one replica of each, by the routing
//! ```
//!
//! Every node is a machine as measured, with a policy of its own; all nodes share one simulated time. The workload holds
//! a query's cost on a node, whose index is one shard. By [`ShardCosts`], another shard's node takes about as long for
//! the query, or as long as for another query. The first models shards of a shuffled collection, the second is the worst
//! case.
//!
//! For Poisson arrivals and exponential service times there are closed forms to compare with (`tests/it/cluster.rs`). One
//! shard of R nodes chosen at random is R queues M/M/1. Two independent shards are Flatto and Hahn's fork-join queue
//! (1984); more of them follow Nelson and Tantawi's approximation (1988).

use std::collections::VecDeque;
use std::sync::Arc;

use super::node::Node;
use super::table::QueryTable;
use super::{SimQuery, bounds};
use crate::base::ids::{JobId, QueryId};
use crate::base::machine::{LaneFault, PerClass};
use crate::base::named::named_enum;
use crate::base::random::{NodeSeed, Purpose, Random, exp};
use crate::base::time::Nanos;
use crate::cost::{BatchSizes, Cost, MachineModel, MeasuredTimes, ServiceTimes};
use crate::sched::{Dispatcher, Job, LawBroken, LogRow, Policy, ShedJob, Sink};

/// Seed of the shards' factors, which belong to the index and are equal in all runs.
const INDEX_SEED: u64 = 0;

named_enum! {
    /// The rule that chooses the replica of a shard for a query. Of equal replicas, the next in turn is chosen.
    #[derive(Default)]
    pub enum Routing {
        #[default]
        LeastOutstanding = "least-outstanding": "The replica with the fewest unanswered queries",
        RoundRobin = "round-robin": "Each replica in turn",
        Random = "random": "A random replica, all equally likely",
    }
}

impl Routing {
    /// The replica for the query of this number in the run, by the unanswered queries of each of `replicas`.
    pub fn choose(
        self,
        number: usize,
        replicas: usize,
        outstanding: impl Fn(usize) -> usize,
        random: &mut Random,
    ) -> usize {
        let turn = number % replicas;
        match self {
            Self::RoundRobin => turn,
            Self::Random => random.below(replicas as u32) as usize,
            Self::LeastOutstanding => {
                let from_turn = (0..replicas).map(|after| (turn + after) % replicas);
                from_turn.min_by_key(|&replica| outstanding(replica)).unwrap_or(turn)
            }
        }
    }
}

/// Costs of one query on different shards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShardCosts {
    /// The measured cost, times a factor for each query and shard: lognormal with mean 1, whose logarithm has this
    /// standard deviation.
    Alike(f64),
    /// The cost of another query, drawn for each shard.
    Independent,
}

/// The number of nodes, and the division of work among them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterShape {
    /// Parts of the index, at least 1. Each query goes to all of them.
    pub shards: usize,
    /// Nodes of each shard, at least 1.
    pub replicas: usize,
    /// The choice among replicas.
    pub routing: Routing,
    /// Differences of costs between shards.
    pub costs: ShardCosts,
}

impl ClusterShape {
    /// The number of machines.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.shards * self.replicas
    }
}

/// A cluster over a workload, with the cost of each query on each shard's nodes.
#[derive(Clone, Debug)]
pub struct Cluster {
    shape: ClusterShape,
    shards: Vec<Arc<[SimQuery]>>,
    /// By replica, its times over those of the workload; empty if all are 1.
    paces: Arc<[f64]>,
}

impl Cluster {
    /// The cluster of this shape over these queries; `None` for a single machine.
    #[must_use]
    pub fn of(shape: ClusterShape, queries: &[SimQuery]) -> Option<Self> {
        (shape.nodes() > 1).then(|| Self::new(shape, queries))
    }

    /// Makes a cluster of this shape over these queries. A shard's factors depend on its number only, so a cluster of
    /// more shards keeps those of a smaller one.
    ///
    /// # Panics
    /// If it has no shards or no replicas.
    #[must_use]
    pub fn new(shape: ClusterShape, queries: &[SimQuery]) -> Self {
        assert!(shape.nodes() > 0, "a cluster without nodes");
        let shards = (0..shape.shards).map(|shard| match shape.costs {
            // The measured costs are those of a single shard.
            ShardCosts::Alike(spread) if spread > 0.0 && shape.shards > 1 => {
                let seed = NodeSeed { seed: INDEX_SEED, node: shard as u32 };
                let mut random = seed.stream(Purpose::ShardFactors, 0);
                let mut factor = || exp(spread * random.normal() - spread * spread / 2.0);
                queries.iter().map(|query| query.times(factor())).collect()
            }
            _ => queries.into(),
        });
        Self { shape, shards: shards.collect(), paces: Arc::default() }
    }

    /// With replicas of different speed: the times of each over those of the workload.
    ///
    /// # Panics
    /// If there is not one for each replica.
    #[must_use]
    pub fn with_paces(self, paces: &[f64]) -> Self {
        assert_eq!(paces.len(), self.shape.replicas, "one pace for each replica");
        Self { paces: paces.into(), ..self }
    }

    /// The same cluster over other queries.
    pub(crate) fn over(&self, queries: &[SimQuery]) -> Self {
        Self { paces: Arc::clone(&self.paces), ..Self::new(self.shape, queries) }
    }

    /// The cluster's shape.
    #[must_use]
    pub fn shape(&self) -> ClusterShape {
        self.shape
    }

    /// The rate above which no cluster of this shape is stable, for any schedulers of its nodes, when queries of
    /// these rows are asked and batches have these sizes. `None` if everything costs nothing.
    pub(super) fn region(&self, model: &MachineModel, rows: &[u32], sizes: BatchSizes) -> Option<bounds::Region> {
        let region = |queries: &Arc<[SimQuery]>| {
            bounds::region(rows.iter().map(|&row| queries[row as usize].service), model, sizes)
        };
        // Independent shards have equal distributions of costs, so one stands for all.
        let distinct = if self.shape.costs == ShardCosts::Independent { 1 } else { self.shards.len() };
        let slowest =
            self.shards[..distinct].iter().filter_map(region).min_by(|a, b| a.rate_qps.total_cmp(&b.rate_qps));
        let replicas = match &*self.paces {
            [] => self.shape.replicas as f64,
            paces => paces.iter().map(|pace| pace.recip()).sum(),
        };
        slowest.map(|region| bounds::Region { rate_qps: region.rate_qps * replicas, ..region })
    }

    /// The row of the workload whose cost is that of the query of `row` on a shard's node.
    #[inline]
    fn row(&self, shard: usize, chance: &mut ShardChance, row: u32) -> u32 {
        match self.shape.costs {
            ShardCosts::Independent if shard > 0 => chance.rows.below(self.shards[shard].len() as u32),
            _ => row,
        }
    }
}

impl SimQuery {
    /// These costs, with times multiplied by `factor`.
    fn times(&self, factor: f64) -> Self {
        let times = |cost: Cost| cost.scaled(factor);
        Self { id: self.id, service: self.service.map(times), estimate: self.estimate.map(times) }
    }
}

struct ShardChance {
    rows: Random,
    routing: Random,
}

/// The nodes of a cluster besides the first, each with its policy.
pub struct OtherNodes<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// A new policy for each node but the first.
    pub policies: Vec<Box<dyn Policy>>,
}

impl std::fmt::Debug for OtherNodes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtherNodes").field("shape", &self.cluster.shape).finish_non_exhaustive()
    }
}

pub(super) struct ClusterRun<'a> {
    pub(super) model: &'a MachineModel,
    pub(super) first: Box<dyn Policy>,
    pub(super) seed: u64,
    pub(super) others: OtherNodes<'a>,
    pub(super) queries: &'a [SimQuery],
    pub(super) deadline: Nanos,
}

/// The ends of a node's queries, until the broker takes them.
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

/// A node, with queries sent to it that it has not seen.
struct Member<T> {
    node: Node<Returned, T>,
    inbox: VecDeque<Job>,
    sent: u32,
}

impl<T: ServiceTimes> Member<T> {
    fn advance(&mut self, until: Nanos) -> Result<(), LawBroken> {
        while let Some(at) = self.node.next_group_at(self.inbox.front().map(|job| job.arrival)).filter(|&at| at < until)
        {
            self.node.play_group(at, &mut self.inbox, |_| false)?;
        }
        Ok(())
    }

    fn outstanding(&self) -> usize {
        self.node.dispatcher().in_flight() + self.inbox.len()
    }
}

/// Plays arrivals through the cluster. A query's row is that of the last shard to answer, with the query's number and id
/// in the run; rows come in order of finish.
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
    // A table per shard; with replicas of different speed, one for each.
    let tables_of = |shard: &Arc<[SimQuery]>| match &*cluster.paces {
        [] => vec![QueryTable::of(shard, model)],
        paces => {
            let table = |&pace: &f64| {
                let queries: Vec<SimQuery> = shard.iter().map(|query| query.times(pace)).collect();
                QueryTable::of(&queries, model)
            };
            paces.iter().map(table).collect()
        }
    };
    let tables: Vec<Vec<QueryTable<Cost>>> = cluster.shards.iter().map(tables_of).collect();
    let mut policies = std::iter::once(first).chain(policies);
    let mut seeds = (0..).map(|node| NodeSeed { seed, node });
    let mut shards: Vec<Vec<Member<_>>> = Vec::new();
    for tables in &tables {
        let member = |((mut policy, seed), table): ((Box<dyn Policy>, NodeSeed), _)| {
            policy.set_chance(seed.stream(Purpose::Policy, 0));
            let decisions = model.decisions(policy.name());
            let dispatcher = Dispatcher::with_sink(&model.machine, policy, Returned::default());
            let table: &QueryTable<Cost> = table;
            let times = MeasuredTimes::new(model, seed, |row, class| table.service(row, class));
            Member { node: Node::new(dispatcher, times, decisions), inbox: VecDeque::new(), sent: 0 }
        };
        let nodes = policies.by_ref().take(replicas).zip(seeds.by_ref()).zip(tables.iter().cycle());
        shards.push(nodes.map(member).collect());
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
        broker.send(queries[row as usize].id, shards.len());
        for (shard, nodes) in shards.iter_mut().enumerate() {
            let outstanding = |node: usize| nodes[node].outstanding();
            let chosen = routing.choose(number as usize, nodes.len(), outstanding, &mut chances[shard].routing);
            let row = cluster.row(shard, &mut chances[shard], row);
            let member = &mut nodes[chosen];
            // Inside a node, a query is identified by its number in the run.
            let (id, query) = (JobId(member.sent), QueryId(number));
            let predicted: PerClass<Cost> = *tables[shard][chosen % tables[shard].len()].estimate(row);
            member.inbox.push_back(Job {
                id,
                query,
                row,
                priority: 0,
                arrival,
                deadline: arrival + deadline,
                predicted,
            });
            member.sent += 1;
        }
    }
    broker.collect(&mut shards, Nanos::MAX, &mut sink, &enough)?;
    Ok(sink)
}

/// A query that some shards have not answered.
#[derive(Clone, Copy, Debug)]
struct Open {
    query: QueryId,
    missing: usize,
    slowest: Option<LogRow>,
    /// The last shard that dropped the query, which then has no answer.
    shed: Option<ShedJob>,
    again: bool,
}

#[derive(Debug, Default)]
struct Broker {
    /// The queries from number `first` on.
    open: VecDeque<Open>,
    first: u32,
    complete: Vec<LogRow>,
    shed: Vec<ShedJob>,
}

impl Broker {
    fn send(&mut self, query: QueryId, shards: usize) {
        self.open.push_back(Open { query, missing: shards, slowest: None, shed: None, again: false });
    }

    /// Plays all nodes until `until` and passes complete queries on; returns `false` once these are enough.
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

    /// Joins a query dropped by one shard, which leaves it without an answer.
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
        let (job, query, again) = (JobId(number), open.query, open.again);
        match (open.missing, open.shed, open.slowest) {
            (0, Some(shed), _) => self.shed.push(ShedJob { job, query, ..shed }),
            (0, None, Some(slowest)) => self.complete.push(LogRow { job, query, again, ..slowest }),
            _ => {}
        }
    }
}
