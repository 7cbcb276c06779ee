//! `--shards`, `--replicas`, `--routing`, `--shard-costs`: a cluster of machines.

use super::machine::MAX_PROCESSORS;
use crate::cli::Failure;
use crate::sim::{Cluster, ClusterShape, Routing, ShardCosts, SimQuery};

/// What is said of shards' costs where nothing is asked for: what four quarters of 261,409 articles of English Wikipedia, in
/// order of their pages, differed by in 1,346 of the TREC 2005 efficiency queries (OR, top 10), after the noise of repeats
/// was taken out. Dealt out one by one they differed by 0.08.
const DEFAULT_COSTS: &str = "alike=0.1";
/// A lognormal factor of more spread than this is no index in shards.
const MAX_SPREAD: f64 = 3.0;

/// How nodes share the work.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct RoutingArguments {
    /// Clusters: which of a shard's replicas answers a query
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Routing::default())]
    routing: Routing,
    /// Clusters: what a query costs on other shards: `alike=S`, as measured times a lognormal factor whose logarithm
    /// deviates by S; or `independent`, as much as another query
    #[arg(long, value_name = "WHAT", default_value = DEFAULT_COSTS)]
    shard_costs: String,
}

impl RoutingArguments {
    /// Both, checked.
    pub(in crate::cli) fn checked(&self) -> Result<(Routing, ShardCosts), Failure> {
        let text = self.shard_costs.trim();
        let spread = || text.strip_prefix("alike")?.strip_prefix('=').map_or(Some(0.0), |spread| spread.parse().ok());
        let costs = match text {
            "independent" => Some(ShardCosts::Independent),
            _ => spread().filter(|spread| (0.0..=MAX_SPREAD).contains(spread)).map(ShardCosts::Alike),
        };
        let fault = || {
            Failure::input(format!(
                "--shard-costs: {text:?}, expected independent, or alike=S with S from 0 to {MAX_SPREAD}"
            ))
        };
        Ok((self.routing, costs.ok_or_else(fault)?))
    }
}

/// A cluster of the machine that is simulated.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct ClusterArguments {
    /// Machines that hold a part of the index each: a query waits for the slowest of them
    #[arg(long, value_name = "N", default_value_t = 1)]
    shards: usize,
    /// Machines for each part: a query goes to one of them
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: usize,
    #[command(flatten)]
    routing: RoutingArguments,
}

impl ClusterArguments {
    /// The cluster, checked; `None` for a single machine.
    pub(in crate::cli) fn shape(&self) -> Result<Option<ClusterShape>, Failure> {
        let (routing, costs) = self.routing.checked()?;
        let shape = ClusterShape { shards: self.shards, replicas: self.replicas, routing, costs };
        check_nodes(self.shards, self.replicas)?;
        Ok((shape.nodes() > 1).then_some(shape))
    }

    /// The same over a workload.
    pub(in crate::cli) fn cluster(&self, queries: &[SimQuery]) -> Result<Option<Cluster>, Failure> {
        Ok(self.shape()?.map(|shape| Cluster::new(shape, queries)))
    }
}

/// Refuses numbers of machines that are surely slips.
pub(in crate::cli) fn check_nodes(shards: usize, replicas: usize) -> Result<(), Failure> {
    for (option, count) in [("--shards", shards), ("--replicas", replicas)] {
        if count == 0 {
            return Err(Failure::input(format!("{option} is 0, expected at least 1")));
        }
    }
    match shards.checked_mul(replicas) {
        Some(nodes) if nodes <= MAX_PROCESSORS => Ok(()),
        _ => Err(Failure::input(format!(
            "--shards {shards} with --replicas {replicas} is too much: expected at most {MAX_PROCESSORS} machines in all"
        ))),
    }
}

/// `4 shards of 3 replicas (12 machines)`.
pub(in crate::cli) fn cluster_in_words(shape: &ClusterShape) -> String {
    let costs = match shape.costs {
        ShardCosts::Alike(spread) => format!("costs alike to a factor of e^{spread}"),
        ShardCosts::Independent => String::from("costs independent"),
    };
    let ClusterShape { shards, replicas, routing, .. } = shape;
    format!(
        "a cluster of {} such machines: {shards} x {replicas}, {}, {costs}; the broker costs nothing",
        shape.nodes(),
        routing.name()
    )
}
