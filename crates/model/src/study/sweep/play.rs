//! Simulation of one point of a sweep.

use std::collections::BTreeMap;

use super::{Axes, Point, SweepRow};
use crate::base::machine::{Class, Machine, PerClass};
use crate::base::quantile::nearest_rank;
use crate::base::random::{Purpose, exp};
use crate::base::stats::mean_interval;
use crate::base::time::Nanos;
use crate::cost::{Cost, MachineModel, MachineProfile, Workload};
use crate::files::Digits;
use crate::sched::{BuiltIn, PolicyFactory};
use crate::sim::{Arrivals, ClusterShape, Experiment, Routing, ShardCosts, SimQuery};
use crate::study::{
    COVERED_QUERIES, CapacitySearch, Estimates, Fleet, Judge, NamedMachine, Objective, QueryLengths, RunLength,
    SimulatedMachine, StudyError, Summary, Tally, draw_all, sim_queries,
};
use crate::traffic::{ArrivalProcess, Mode};

/// The seed of estimate errors. They belong to the model and are equal in all runs.
const ERROR_SEED: u64 = 0;
/// Confidence of the intervals of means.
const CONFIDENCE: f64 = 0.95;

/// The queries of one mode.
#[derive(Clone, Debug)]
pub struct SweepWorkload {
    /// A file, or the name of a shipped workload.
    pub name: String,
    /// The rows of that mode.
    pub workload: Workload,
}

/// The parameters that all points share.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    /// The workload of each mode.
    pub workloads: BTreeMap<Mode, SweepWorkload>,
    /// The cost estimates that policies see.
    pub estimates: Estimates,
    /// The objective of each run.
    pub objective: Objective,
    /// The arrival process.
    pub process: ArrivalProcess,
    /// The seeds of arrivals, one run each.
    pub seeds: Vec<u64>,
    /// The length of the runs.
    pub length: RunLength,
    /// The choice of a node for a shard.
    pub routing: Routing,
    /// The variation of costs over shards.
    pub shard_costs: ShardCosts,
    /// Number of blocks from which a query is long for length-based policies; `None` for the best of each machine.
    pub length_threshold: Option<u32>,
    /// The name and content of a machine profile.
    pub profile: Option<(String, MachineProfile)>,
    /// Whether recorded times replace the GPUs.
    pub is_gpu_replayed: bool,
}

impl SweepOptions {
    /// The simulated machine with these processors.
    #[must_use]
    pub fn machine(&self, (cpus, gpus, streams): (usize, usize, usize)) -> SimulatedMachine<'_> {
        let profile = self.profile.as_ref().map(|(name, profile)| NamedMachine { name, profile });
        SimulatedMachine { cpus, gpus, streams, profile, is_gpu_replayed: self.is_gpu_replayed }
    }
}

/// The parameters that costs depend on: the mode, and whether there are CPUs and GPUs.
type CostKey = (Mode, bool, bool);

/// A sweep, ready to be played.
#[derive(Clone, Debug)]
pub struct Sweep {
    options: SweepOptions,
    /// True and estimated query costs, shared by all points with the same key.
    queries: BTreeMap<CostKey, Vec<SimQuery>>,
    /// Whether the fewest machines for a rate are asked for.
    asks_machines: bool,
}

impl Sweep {
    /// A sweep over these axes.
    ///
    /// # Errors
    /// If a workload lacks a measurement or an estimate that a point needs.
    pub fn new(axes: &Axes, options: SweepOptions) -> Result<Self, StudyError> {
        let mut queries = BTreeMap::new();
        for point in axes.points().iter().filter(|point| point.cpus + point.gpus > 0) {
            let key = kinds(point);
            if !queries.contains_key(&key)
                && let Some(SweepWorkload { workload, .. }) = options.workloads.get(&point.mode)
            {
                let machine = options.machine(counts(point)).processors();
                queries.insert(key, sim_queries(workload, &options.estimates, &machine)?);
            }
        }
        let asks_machines = axes.replicas.len() > 1 && !axes.rates_qps.is_empty();
        Ok(Self { options, queries, asks_machines })
    }

    /// Whether the point's policy can run on its machine.
    #[must_use]
    pub fn is_possible(&self, point: &Point) -> bool {
        point.cpus + point.gpus > 0 && self.model(point).is_some_and(|model| point.policy.build(&model).is_ok())
    }

    fn model(&self, point: &Point) -> Option<MachineModel> {
        let workload = &self.options.workloads.get(&point.mode)?.workload;
        Some(self.options.machine(counts(point)).model(workload, &self.options.estimates))
    }

    /// The point's policy, configured with the lengths of its queries.
    fn policy(&self, point: &Point, queries: &[SimQuery], model: &MachineModel) -> BuiltIn {
        let estimates: Vec<PerClass<Cost>> = queries.iter().map(|query| query.estimate).collect();
        let of = |SweepWorkload { workload, .. }: &SweepWorkload| QueryLengths::of(workload, &estimates, model);
        let lengths = self.options.workloads.get(&point.mode).map(of).unwrap_or_default();
        let mut policy = point.policy.clone().with_lengths(lengths.blocks);
        policy.options.length_threshold = self.options.length_threshold.unwrap_or(lengths.best_threshold);
        policy
    }

    /// The result of a point. It is equal on any machine and with any number of threads.
    ///
    /// # Errors
    /// If the policy does not fit the machine or breaks its contract, or all costs are 0.
    pub fn play(&self, point: &Point) -> Result<SweepRow, StudyError> {
        let (fleet, policy) = self.prepare(point)?;
        let (experiment, _) = fleet.of(point.replicas, 1.0);
        let region_qps = experiment.region().ok_or(StudyError::NothingToSchedule)?.rate_qps;
        let asked = self.asked(point, region_qps);
        let Some(rate_qps) = point.rate_qps else { return self.capacity(&fleet, &experiment, &policy, asked) };
        let mut row = self.delays(experiment, &policy, rate_qps, asked)?;
        row.utilisation = Some(Digits(fleet.utilisation(&policy, point.replicas, rate_qps)));
        if self.asks_machines {
            let (sustained, on_slow) = fleet.sustains(&policy, point.replicas, rate_qps)?;
            (row.sustained, row.sustained_with_spread) = (Some(sustained), Some(on_slow));
        }
        Ok(row)
    }

    /// The machines and the policy of a point, with only the arrivals that bounds need.
    fn prepare(&self, point: &Point) -> Result<(Fleet, BuiltIn), StudyError> {
        let (Some(model), Some(queries)) = (self.model(point), self.queries.get(&kinds(point))) else {
            return Err(StudyError::NothingToSchedule);
        };
        let mut queries = queries.to_vec();
        blur(&mut queries, point.noise);
        let policy = self.policy(point, &queries, &model);
        let shape = ClusterShape {
            shards: point.shards,
            replicas: 1,
            routing: self.options.routing,
            costs: self.options.shard_costs,
        };
        let arrivals = draw_all(&self.options.process, &self.options.seeds, 1, queries.len());
        let machine = Experiment { arrivals, queries, model, deadline: deadline(point), cluster: None };
        let objective = self.options.objective;
        Ok((Fleet { machine, shape, objective, length: self.options.length, scale: 1.0 }, policy))
    }

    /// The row of a point without its results.
    fn asked(&self, point: &Point, region_qps: f64) -> SweepRow {
        let measured = self.options.machine(counts(point)).measured_cpus();
        SweepRow {
            point: point.number,
            workload: self.options.workloads.get(&point.mode).map(|of| of.name.clone()).unwrap_or_default(),
            mode: point.mode.to_string(),
            policy: point.policy.name().to_owned(),
            cpus: point.cpus,
            gpus: point.gpus,
            streams: point.streams,
            deadline_ms: Digits(point.deadline_ms),
            noise: Digits(point.noise),
            shards: point.shards,
            replicas: point.replicas,
            routing: self.options.routing.name().to_owned(),
            objective: self.options.objective.within(deadline(point)).to_string(),
            seeds: self.options.seeds.len(),
            queries: 0,
            region_qps: Digits(region_qps),
            capacity_qps: None,
            low_qps: None,
            high_qps: None,
            failing_qps: None,
            rate_qps: None,
            mean_ms: None,
            mean_low_ms: None,
            mean_high_ms: None,
            p50_ms: None,
            p95_ms: None,
            p99_ms: None,
            p999_ms: None,
            max_ms: None,
            missed_share: None,
            held: None,
            utilisation: None,
            sustained: None,
            sustained_with_spread: None,
            seeds_error: None,
            query_error: None,
            measured_queries: self.options.workloads.get(&point.mode).map_or(0, |of| of.workload.rows.len()),
            measured_cpus: measured,
            extrapolated: point.cpus > measured,
            covered_share: None,
        }
    }

    fn capacity(
        &self,
        fleet: &Fleet,
        experiment: &Experiment,
        policy: &BuiltIn,
        asked: SweepRow,
    ) -> Result<SweepRow, StudyError> {
        let search = CapacitySearch::new(experiment, self.options.objective, self.options.length)?;
        let found = search.of_sampled_queries().of(policy)?;
        let interval = found.known_interval();
        Ok(SweepRow {
            queries: found.queries,
            capacity_qps: Some(Digits(found.qps)),
            utilisation: Some(Digits(fleet.utilisation(policy, asked.replicas, found.qps))),
            low_qps: interval.map(|interval| Digits(interval.low)),
            high_qps: interval.map(|interval| Digits(interval.high)),
            seeds_error: found.seeds_error().map(Digits),
            query_error: found.query_error.map(|error| Digits(error.share)),
            failing_qps: found.failing_qps.map(Digits),
            covered_share: Some(Digits(found.covered_share)),
            ..asked
        })
    }

    fn delays(
        &self,
        mut experiment: Experiment,
        policy: &BuiltIn,
        rate_qps: f64,
        asked: SweepRow,
    ) -> Result<SweepRow, StudyError> {
        let criterion = self.options.objective.within(experiment.deadline);
        let count = self.options.length.searched(&criterion, rate_qps);
        let covering = |arrivals: &Arrivals| arrivals.first(count).covering(rate_qps, COVERED_QUERIES);
        experiment.arrivals = experiment.arrivals.iter().map(covering).collect();
        let count = experiment.arrivals.first().map_or(count, Arrivals::len);
        let covered_share =
            experiment.arrivals.iter().map(|arrivals| arrivals.covered_share(rate_qps)).fold(1.0, f64::min);
        let mut summaries = Vec::new();
        let (mut held, mut missed) = (0, 0);
        for arrivals in &experiment.arrivals {
            let sinks = (Tally::new(&Machine::default(), count), Judge::new(criterion, count, rate_qps));
            let (tally, judge) = experiment.play(policy, rate_qps, arrivals, sinks, |_| false)?;
            held += usize::from(judge.verdict().holds());
            let summary = tally.summary();
            // A dropped query counts as late. If no query was answered, all count.
            missed += summary.as_ref().map_or(count, |summary| summary.missed + summary.shed);
            summaries.extend(summary);
        }
        let means: Vec<f64> = summaries.iter().map(|summary| summary.mean_ms).collect();
        let interval = mean_interval(&means, CONFIDENCE).filter(|_| covered_share >= 1.0);
        let middle = |of: fn(&Summary) -> f64| {
            let mut values: Vec<f64> = summaries.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            nearest_rank(&values, 0.5).map(Digits)
        };
        Ok(SweepRow {
            queries: count,
            rate_qps: Some(Digits(rate_qps)),
            mean_ms: Some(Digits(means.iter().sum::<f64>() / means.len().max(1) as f64)),
            mean_low_ms: interval.map(|interval| Digits(interval.low)),
            mean_high_ms: interval.map(|interval| Digits(interval.high)),
            p50_ms: middle(|summary| summary.p50_ms),
            p95_ms: middle(|summary| summary.p95_ms),
            p99_ms: middle(|summary| summary.p99_ms),
            p999_ms: middle(|summary| summary.p999_ms),
            max_ms: middle(|summary| summary.max_ms),
            missed_share: Some(Digits(missed as f64 / (count * self.options.seeds.len()).max(1) as f64)),
            held: Some(held),
            covered_share: Some(Digits(covered_share)),
            ..asked
        })
    }
}

fn deadline(point: &Point) -> Nanos {
    Nanos::from_ms(point.deadline_ms)
}

fn counts(point: &Point) -> (usize, usize, usize) {
    (point.cpus, point.gpus, point.streams)
}

/// The key of a point's costs.
fn kinds(point: &Point) -> CostKey {
    (point.mode, point.cpus > 0, point.gpus > 0)
}

/// Multiplies estimates by lognormal factors of mean 1. All noise levels scale the same draws.
fn blur(queries: &mut [SimQuery], noise: f64) {
    if noise == 0.0 {
        return;
    }
    let mut random = Purpose::EstimateErrors.stream(ERROR_SEED);
    for query in queries {
        let factors: PerClass<f64> = PerClass::from_fn(|_| exp(noise * random.normal() - noise * noise / 2.0));
        for class in Class::ALL {
            query.estimate[class] = query.estimate[class].scaled(factors[class]);
        }
    }
}
