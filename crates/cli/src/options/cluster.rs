//! `--shards`, `--replicas`: a cluster of machines.

use super::machine::MAX_PROCESSORS;
use crate::Failure;
use crate::settings::Settings;
use tandem_core::sim::{Cluster, ClusterShape, ShardCosts, SimQuery};

/// The largest accepted spread of costs between shards.
const MAX_SPREAD: f64 = 3.0;

/// Reads the costs of a query on other shards: `independent`, or `alike=S`.
///
/// By default S is 0.1: what four quarters of 261,409 articles of English Wikipedia, in order of their pages, differed by in
/// 1,346 of the TREC 2005 efficiency queries (OR, top 10), after the noise of repeats was taken out. Dealt out one by one they
/// differed by 0.08.
pub(crate) fn shard_costs(text: &str) -> Result<ShardCosts, String> {
    let text = text.trim();
    let spread = || text.strip_prefix("alike")?.strip_prefix('=').map_or(Some(0.0), |spread| spread.parse().ok());
    let costs = match text {
        "independent" => Some(ShardCosts::Independent),
        _ => spread().filter(|spread| (0.0..=MAX_SPREAD).contains(spread)).map(ShardCosts::Alike),
    };
    costs.ok_or_else(|| format!("{text:?}, expected independent, or alike=S with S from 0 to {MAX_SPREAD}"))
}

/// A cluster of the machine that is simulated.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClusterArguments {
    /// Shards, each on its own machine with the costs of the workload; a query waits for the slowest shard
    #[arg(long, value_name = "N", default_value_t = 1)]
    shards: usize,
    /// Machines per shard; a query goes to one of them
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: usize,
}

impl ClusterArguments {
    /// The cluster, checked; `None` for a single machine.
    pub(crate) fn shape(&self, settings: &Settings) -> Result<Option<ClusterShape>, Failure> {
        let Settings { routing, shard_costs: costs, .. } = *settings;
        let shape = ClusterShape { shards: self.shards, replicas: self.replicas, routing, costs };
        check_nodes(self.shards, self.replicas)?;
        Ok((shape.nodes() > 1).then_some(shape))
    }

    /// The cluster over the queries of a workload; `None` for a single machine.
    pub(crate) fn cluster(&self, settings: &Settings, queries: &[SimQuery]) -> Result<Option<Cluster>, Failure> {
        Ok(self.shape(settings)?.map(|shape| Cluster::new(shape, queries)))
    }
}

/// Refuses more machines than [`MAX_PROCESSORS`], and none.
pub(crate) fn check_nodes(shards: usize, replicas: usize) -> Result<(), Failure> {
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
pub(crate) fn cluster_in_words(shape: &ClusterShape) -> String {
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
