//! Capacities of machine types in simulation.
//!
//! Multiplying all service times by `f` scales time itself: the capacity within deadline `D` is that of the original service
//! times within `D / f`, divided by `f`. One experiment per type therefore answers for all factors on service times.

use std::sync::Arc;

use rayon::prelude::*;

use super::{Candidate, Draw, MachineType, Question};
use crate::base::machine::PerClass;
use crate::base::stats::{Interval, mean_interval};
use crate::base::time::Nanos;
use crate::cost::Workload;
use crate::lab::estimates::estimated_queries;
use crate::lab::{
    CapacitySearch, DELAY_QUERIES, Estimates, NamedMachine, Objective, RunLength, SimulatedMachine, StudyError,
    draw_all, play_all,
};
use crate::query::ArrivalProcess;
use crate::sched::{BuiltIn, PolicyFactory};
use crate::sim::{Cluster, ClusterShape, Experiment, Routing, ShardCosts};

/// Factors on service times between which every curve is simulated. Nearer to 1 the noise of short runs would count for more
/// than the difference.
const FACTORS: (f64, f64) = (0.7, 1.4);
/// Largest ratio between neighbouring factors; a curve is interpolated between them.
const FACTOR_STEP: f64 = 1.5;
/// Capacities of short runs that [decide](CapacitySearch::decides) are wrong by at most this factor.
const COARSE_ERROR: f64 = 1.1;
/// Confidence of the interval of a plan's p99.
const CONFIDENCE: f64 = 0.9;
/// The share of a machine's memory that an index may fill.
const MEMORY_SHARE: f64 = 0.9;
/// Service times of a shard are those of the index, divided by the number of shards to this power: without and with GPUs. A
/// shard holds an equal part of every list, but bounds skip less of a short list, and the beginning of a query and of a kernel
/// takes as long. Between synthetic indexes of 0.86 to 25.2 million documents it was 0.75 to 0.90 in five pairs on CPUs, and
/// 0.42 for the throughput of batches on a GPU.
const SHARD_POWERS: (f64, f64) = (0.8, 0.4);
/// Standard deviation of the logarithm of a query's service time over shards.
const SHARDS_DIFFER: f64 = 0.1;

/// A group of machines of a type, ready to be simulated.
pub(super) struct Group<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) shards: usize,
    /// The factor from the workload's service times to those of one shard on this type.
    pub(super) scale: f64,
    /// The experiment with the workload's service times.
    experiment: Experiment,
}

/// The capacity of one group by factor on service times, under its best policy.
pub(super) struct Curve<'a> {
    pub(super) group: &'a Group<'a>,
    pub(super) policy: BuiltIn,
    /// Logarithms of factor and capacity, by ascending factor; the list ends before a capacity of 0.
    points: Vec<(f64, f64)>,
}

impl Curve<'_> {
    /// The capacity of a group whose service times are `factor` times those of the type.
    pub(super) fn qps(&self, factor: f64) -> f64 {
        let x = factor.ln();
        let Some(&(first_x, first_y)) = self.points.first() else { return 0.0 };
        if self.points.len() == 1 || x <= first_x {
            // Below the smallest factor, the capacity grows at least as fast as costs shrink.
            return (first_y - (x - first_x)).exp();
        }
        let after = self.points.iter().position(|&(at, _)| at >= x);
        let Some(after) = after else { return 0.0 };
        let ((x0, y0), (x1, y1)) = (self.points[after - 1], self.points[after]);
        (y0 + (y1 - y0) * (x - x0) / (x1 - x0)).exp()
    }

    pub(super) fn price_per_hour(&self, groups: usize) -> f64 {
        self.group.candidate.machine.price_per_hour * (groups * self.group.shards) as f64
    }

    /// Whether the draw needs the same number of groups if the capacity is a little lower or higher.
    fn is_clear(&self, draw: &Draw) -> bool {
        let at = |ratio: f64| self.groups(draw.rate_qps * ratio, draw.factor);
        at(COARSE_ERROR) == at(1.0 / COARSE_ERROR)
    }

    /// Number of groups that serve the rate, without spare ones; `None` if it is infinite.
    pub(super) fn groups(&self, rate_qps: f64, factor: f64) -> Option<usize> {
        let qps = self.qps(factor);
        (qps > 0.0).then(|| (rate_qps / qps).ceil().max(1.0) as usize)
    }
}

/// The candidates as groups, with arrivals of these seeds. Estimates are made once per workload.
pub(super) fn groups<'a>(
    question: &Question,
    candidates: &[&'a Candidate],
    seeds: &[u64],
) -> Result<Vec<Group<'a>>, StudyError> {
    let mut known: Vec<(&Arc<Workload>, Estimated)> = Vec::new();
    let mut groups = Vec::new();
    for candidate in candidates {
        let workload = &candidate.workload;
        let estimated = match known.iter().position(|(of, _)| Arc::ptr_eq(of, workload)) {
            Some(at) => &known[at].1,
            None => {
                let (estimates, _) = question.estimates.clone().suited_to(workload);
                let alone_us = estimates.alone_us(workload)?;
                known.push((workload, Estimated { estimates, alone_us }));
                &known[known.len() - 1].1
            }
        };
        groups.push(Group::new(question, candidate, estimated, seeds)?);
    }
    Ok(groups)
}

/// The estimates of a workload that policies see, and the times of its rows by them.
struct Estimated {
    estimates: Estimates,
    alone_us: Vec<PerClass<Option<f64>>>,
}

/// Number of machines of this type that hold the index together.
pub(super) fn shards(question: &Question, of: &MachineType) -> usize {
    question.index_gb.map_or(1, |gb| (gb / (MEMORY_SHARE * of.memory_gb)).ceil().max(1.0) as usize)
}

impl<'a> Group<'a> {
    fn new(
        question: &Question,
        candidate: &'a Candidate,
        Estimated { estimates, alone_us }: &Estimated,
        seeds: &[u64],
    ) -> Result<Self, StudyError> {
        let Candidate { machine: of, workload, profile } = candidate;
        let profile = profile.as_ref().map(|(name, profile)| NamedMachine { name, profile });
        let machine = SimulatedMachine { profile, ..SimulatedMachine::new(of.workers(), of.gpus) };
        let model = machine.model(workload, estimates);
        let queries = estimated_queries(workload, estimates, &model.machine, || Ok(alone_us.clone()))?;
        let shards = shards(question, of);
        let shape =
            ClusterShape { shards, replicas: 1, routing: Routing::default(), costs: ShardCosts::Alike(SHARDS_DIFFER) };
        let experiment = Experiment {
            cluster: (shards > 1).then(|| Cluster::new(shape, &queries)),
            arrivals: draw_all(&ArrivalProcess::Poisson, seeds, DELAY_QUERIES, queries.len()),
            deadline: question.deadline,
            queries,
            model,
        };
        let power = if of.gpus > 0 { SHARD_POWERS.1 } else { SHARD_POWERS.0 };
        Ok(Self { candidate, shards, scale: of.scale * (shards as f64).powf(-power), experiment })
    }

    /// The experiment and the objective of a group whose service times are `factor` times those of the type. Rates are those
    /// of the group times the factor and the [scale](Self::scale).
    pub(super) fn within(&self, question: &Question, factor: f64) -> (Experiment, Objective) {
        let stretched = |time: Nanos| time.scaled(1.0 / (self.scale * factor));
        let objective = question.objective.with_times(stretched);
        (Experiment { deadline: stretched(question.deadline), ..self.experiment.clone() }, objective)
    }

    /// The policies that this machine can run.
    pub(super) fn policies<'q>(&self, question: &'q Question) -> Vec<&'q BuiltIn> {
        question.policies.iter().filter(|policy| policy.build(&self.experiment.model).is_ok()).collect()
    }

    /// Whether some policy serves at least a low rate.
    pub(super) fn serves(&self, question: &Question) -> Result<bool, StudyError> {
        let (experiment, objective) = self.within(question, 1.0);
        Ok(self.search(&experiment, objective)?.serves(&self.policies(question))?)
    }

    /// A search whose rates are 1 % apart, which is less than the deviation of machine speed.
    fn search<'e>(&self, experiment: &'e Experiment, objective: Objective) -> Result<CapacitySearch<'e>, StudyError> {
        Ok(CapacitySearch::new(experiment, objective, RunLength::Brief { shards: self.shards })?.coarser())
    }

    /// The curve of the policy with the highest capacity at the measured costs; `None` if all capacities are 0. Short runs
    /// give the capacities at other factors relative to that one. Long runs then confirm it, unless no draw needs another
    /// number of groups at a capacity near it.
    pub(super) fn curve(&'a self, question: &Question, draws: &[Draw]) -> Result<Option<Curve<'a>>, StudyError> {
        let (experiment, objective) = self.within(question, 1.0);
        let search = self.search(&experiment, objective)?;
        let Some((policy, coarse_qps)) = search.best_of(&self.policies(question))? else { return Ok(None) };
        let coarse = |&factor: &f64| {
            if factor == 1.0 {
                return Ok((factor, coarse_qps));
            }
            let (experiment, objective) = self.within(question, factor);
            Ok((factor, self.search(&experiment, objective)?.coarse(policy, coarse_qps)?))
        };
        let factors = factors(draws.iter().map(|draw| draw.factor));
        let found: Vec<Result<(f64, f64), StudyError>> = factors.par_iter().map(coarse).collect();
        let found: Vec<(f64, f64)> = found.into_iter().collect::<Result<_, _>>()?;
        let of_qps = |qps: f64| {
            // Where short runs overlook an overload, they do so at every factor.
            let overlooked = coarse_qps > COARSE_ERROR * qps;
            let relative = |found_qps: f64| if overlooked { found_qps.min(qps) } else { found_qps * qps / coarse_qps };
            let points = found.iter().map(|&(factor, found_qps)| (factor, relative(found_qps) / factor / self.scale));
            let points = points.take_while(|&(_, qps)| qps > 0.0).map(|(factor, qps)| (factor.ln(), qps.ln()));
            Curve { group: self, policy: policy.clone(), points: points.collect() }
        };
        let mut curve = of_qps(coarse_qps);
        if !(search.decides(coarse_qps) && draws.iter().all(|draw| curve.is_clear(draw))) {
            curve = of_qps(search.confirmed_from(policy, coarse_qps)?.qps);
        }
        Ok((!curve.points.is_empty()).then_some(curve))
    }
}

/// The factors at which curves are simulated, from the lowest of `all` or below it to the highest or above it, with 1.
fn factors(all: impl Iterator<Item = f64>) -> Vec<f64> {
    let (low, high) = all.fold(FACTORS, |(low, high), factor| (factor.min(low), factor.max(high)));
    let side = |end: f64| {
        let steps = (end.ln().abs() / FACTOR_STEP.ln()).ceil();
        (1..=steps as u32).map(move |step| end.powf(f64::from(step) / steps))
    };
    let mut factors: Vec<f64> = side(low).chain([1.0]).chain(side(high)).collect();
    factors.sort_by(f64::total_cmp);
    factors
}

/// Results of simulations of a group at a rate.
pub(super) struct AtRate {
    /// The p99 in milliseconds, and its interval over seeds.
    pub(super) p99_ms: Option<(f64, Option<Interval>)>,
    /// Energy of the GPUs per query in millijoules, if their power is known.
    pub(super) gpu_mj_per_query: Option<f64>,
}

/// Plays a group at a rate.
pub(super) fn played(question: &Question, curve: &Curve<'_>, rate_qps: f64) -> Result<AtRate, StudyError> {
    let scale = curve.group.scale;
    let (experiment, _) = curve.group.within(question, 1.0);
    let played = play_all(&experiment, &[&curve.policy], &[rate_qps * scale], 0.0, |_, _| true, &|| ())?;
    let mean = |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let p99s_ms: Vec<f64> = played.iter().map(|run| run.summary.p99_ms * scale).collect();
    let energy: Vec<f64> = played.iter().filter_map(|run| Some(run.summary.gpu_mj_per_query()? * scale)).collect();
    let p99_ms = mean(&p99s_ms).map(|mean| (mean, mean_interval(&p99s_ms, CONFIDENCE)));
    Ok(AtRate { p99_ms, gpu_mj_per_query: mean(&energy) })
}
