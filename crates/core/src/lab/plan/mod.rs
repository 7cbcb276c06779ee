//! Which machines serve a demand within a deadline at the least cost?
//!
//! ```text
//!  catalogue ─▶ machine types ─┬─▶ one capacity curve per type ─┐
//!  workload  ─▶ service times ─┘                                 ├─▶ expected regret of each plan ─▶ ranking
//!  rate, interval or day ──────────────▶ 512 draws ──────────────┘
//! ```
//!
//! A plan is a number of equal groups of machines of one type. A group holds the whole index: it is one machine, or as
//! many shards as the index needs. Every group receives an equal share of the queries. `spare` of the groups may fail.
//!
//! **One curve per type.** Multiplying all service times by `f` scales time itself: the capacity within deadline `D` is
//! that of the original service times within `D / f`, divided by `f`. Capacities at a few deadlines thus suffice for
//! all draws of query costs and machine speed.
//!
//! **Regret.** Each draw has a rate, a factor on query costs (the measured queries are a sample) and a factor on machine
//! speed. A plan that serves the draw costs its price. A plan that does not serve it is charged
//! [`shortage`](Question::shortage) times the lowest price that does: beyond the capacity the objective is lost for all
//! queries, not only for those in excess. The regret is the excess over the
//! cheapest plan that serves the draw. The best plan has the least expected regret, as in Netflix's capacity planning
//! ("Provisioning Service Resources under Uncertainty", service-capacity-modeling, 2021).

mod catalogue;
mod demand;

use rayon::prelude::*;

pub use self::catalogue::{MachineType, read_catalogue, shipped_catalogue};
pub use self::demand::Demand;
use super::{
    CapacitySearch, Estimates, LabError, NamedMachine, Objective, RunLength, SimulatedMachine, experiment, play_all,
};
use crate::base::machine::{Class, PerClass};
use crate::base::random::{Random, exp};
use crate::base::stats::{Interval, mean_interval};
use crate::base::time::Nanos;
use crate::cost::{MachineProfile, Workload};
use crate::sched::{BuiltIn, PolicyFactory};
use crate::sim::{Cluster, ClusterShape, Experiment, Routing, ShardCosts};

/// Number of draws of demand, query costs and machine speed.
pub const NUM_DRAWS: usize = 512;
/// Hours of a mean month: 365.25 days of 24 hours in 12 months.
pub const HOURS_PER_MONTH: f64 = 730.5;
/// Factors on service times at which a curve is simulated; it is interpolated between them.
const FACTORS: [f64; 4] = [0.7, 1.0, 1.4, 2.0];
/// Seeds of each simulated capacity and latency.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Confidence of the interval of a plan's p99.
const CONFIDENCE: f64 = 0.9;
/// Deadlines to try if no plan is feasible, as multiples of the requested one.
const RELAXED: [f64; 8] = [1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0];
/// The share of a machine's memory that an index may fill.
const MEMORY_SHARE: f64 = 0.9;
/// Standard deviation of the logarithm of a query's service time over shards.
const SHARDS_DIFFER: f64 = 0.1;
/// The random stream of a plan.
const STREAM: u64 = 0x504C_414E;

/// The question that a plan answers.
#[derive(Clone, Debug)]
pub struct Question {
    /// Demand today, in queries per second.
    pub demand: Demand,
    /// The factor by which demand grows until the plan ends.
    pub growth: f64,
    /// The time from a query's arrival to its deadline.
    pub deadline: Nanos,
    /// The objective that the plan must meet.
    pub objective: Objective,
    /// Number of groups that may fail while the objective still holds.
    pub spare: usize,
    /// The size of the index in gigabytes, if it may exceed the memory of a machine.
    pub index_gb: Option<f64>,
    /// The policies to choose from.
    pub policies: Vec<BuiltIn>,
    /// The cost estimates that policies see.
    pub estimates: Estimates,
    /// The standard deviation of the logarithm of machine speed, over machines and days.
    pub speed_spread: f64,
    /// The charge for a draw that is not served, as a multiple of the lowest price that serves it.
    pub shortage: f64,
    /// The seed of all draws.
    pub seed: u64,
}

/// A plan: a number of machines of one type, with its properties.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The machine type.
    pub machine: MachineType,
    /// The name of the policy.
    pub policy: String,
    /// Number of machines per group: the shards of the index.
    pub shards: usize,
    /// Number of groups, including the spare ones.
    pub groups: usize,
    /// The capacity of one group at the measured costs, in queries per second.
    pub group_qps: f64,
    /// The share of draws that the plan serves after it lost the spare groups.
    pub served_share: f64,
    /// Price per hour.
    pub price_per_hour: f64,
    /// Expected regret per hour.
    pub regret_per_hour: f64,
    /// The p99 in milliseconds at the typical rate with all groups, with its interval over seeds.
    pub p99_ms: Option<(f64, Option<Interval>)>,
    /// Power of all machines at the typical rate, in watts, if the catalogue knows it.
    pub watts: Option<f64>,
}

impl Plan {
    /// Number of machines, including the spare ones.
    #[must_use]
    pub fn machines(&self) -> usize {
        self.groups * self.shards
    }
}

/// The plans that answer the question.
#[derive(Clone, Debug)]
pub struct Plans {
    /// The best plan of each feasible machine type, by expected regret.
    pub ranking: Vec<Plan>,
    /// Excluded machine types with the reasons.
    pub left_out: Vec<(String, String)>,
    /// The median rate, with growth.
    pub typical_qps: f64,
    /// From this rate on, a type with GPUs is cheaper than every type without; `None` if that never happens.
    pub gpu_pays_from_qps: Option<f64>,
    /// Price per hour by rate for each machine type, for the figure.
    pub prices: Vec<(String, Vec<(f64, f64)>)>,
    /// If no plan exists: the smallest tried deadline with a plan, and its type.
    pub nearest: Option<(Nanos, String)>,
}

/// A machine type with the workload that represents it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The machine type.
    pub machine: MachineType,
    /// Its measured service times, before [`MachineType::scale`].
    pub workload: Workload,
    /// The name and content of its machine profile, if it has one.
    pub profile: Option<(String, MachineProfile)>,
}

/// The capacity of one group by factor on service times, under its best policy.
struct Curve<'a> {
    candidate: &'a Candidate,
    policy: BuiltIn,
    shards: usize,
    /// The factor from the workload's service times to those of one shard on this type.
    scale: f64,
    experiment: Experiment,
    /// Logarithms of factor and capacity, by ascending factor; the list ends before a capacity of 0.
    points: Vec<(f64, f64)>,
}

impl Curve<'_> {
    /// The capacity of a group whose service times are `factor` times those of the type.
    fn qps(&self, factor: f64) -> f64 {
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

    fn price_per_hour(&self, groups: usize) -> f64 {
        self.candidate.machine.price_per_hour * (groups * self.shards) as f64
    }

    /// Number of groups that serve the rate, without spare ones; `None` if it is infinite.
    fn groups(&self, rate_qps: f64, factor: f64) -> Option<usize> {
        let qps = self.qps(factor);
        (qps > 0.0).then(|| (rate_qps / qps).ceil().max(1.0) as usize)
    }
}

/// One possible future: a draw of the uncertain quantities.
struct Draw {
    rate_qps: f64,
    /// The product of the factors on query costs and machine speed.
    factor: f64,
}

/// Finds the best plan of each machine type. `done` is called after each type.
///
/// # Errors
/// If estimates cannot be made for a workload, or a policy breaks its contract.
pub fn plan(question: &Question, candidates: &[Candidate], done: &(dyn Fn() + Sync)) -> Result<Plans, LabError> {
    let mut left_out = Vec::new();
    let (possible, without_times): (Vec<&Candidate>, Vec<&Candidate>) =
        candidates.iter().partition(|of| of.machine.gpus == 0 || has_times(&of.workload, Class::GPU));
    for of in without_times {
        left_out.push((of.machine.name.clone(), String::from("its workload has no GPU times")));
    }
    let curves: Vec<Result<Option<Curve<'_>>, LabError>> = possible
        .par_iter()
        .map(|of| {
            let curve = curve(question, of, question.deadline);
            done();
            curve
        })
        .collect();
    let mut served = Vec::new();
    for (of, curve) in possible.iter().zip(curves) {
        match curve? {
            Some(curve) => served.push(curve),
            None => left_out
                .push((of.machine.name.clone(), String::from("no policy sustains any rate within the deadline"))),
        }
    }
    let typical_qps = question.demand.typical_qps() * question.growth;
    let draws = draws(question, &served);
    let mut ranking = served
        .iter()
        .map(|curve| best_plan(question, curve, &served, &draws, typical_qps))
        .collect::<Result<Vec<Plan>, LabError>>()?;
    ranking.sort_by(|a, b| a.regret_per_hour.total_cmp(&b.regret_per_hour));
    let nearest = if ranking.is_empty() { nearest(question, &possible)? } else { None };
    let rates: Vec<f64> = (0..=60).map(|step| typical_qps * 10_f64.powf(f64::from(step - 30) / 15.0)).collect();
    let prices =
        served.iter().map(|curve| (curve.candidate.machine.name.clone(), prices(question, curve, &rates))).collect();
    Ok(Plans { ranking, left_out, typical_qps, gpu_pays_from_qps: gpu_pays_from(question, &served), prices, nearest })
}

fn has_times(workload: &Workload, class: Class) -> bool {
    workload.rows.iter().all(|row| row.measured[class].is_some())
}

fn shards(question: &Question, machine: &MachineType) -> usize {
    question.index_gb.map_or(1, |gb| (gb / (MEMORY_SHARE * machine.memory_gb)).ceil().max(1.0) as usize)
}

/// The curve of the policy with the highest capacity at the measured costs; `None` if all capacities are 0.
fn curve<'a>(question: &Question, candidate: &'a Candidate, deadline: Nanos) -> Result<Option<Curve<'a>>, LabError> {
    let of = &candidate.machine;
    let profile = candidate.profile.as_ref().map(|(name, profile)| NamedMachine { name, profile });
    let machine = SimulatedMachine { profile, ..SimulatedMachine::new(of.workers(), of.gpus) };
    let shards = shards(question, of);
    // A shard holds an equal part of every list, so that service times shrink in proportion.
    let scale = of.scale / shards as f64;
    let mut experiment = experiment(&candidate.workload, &question.estimates, &machine, deadline, &SEEDS)?;
    if shards > 1 {
        let costs = ShardCosts::Alike(SHARDS_DIFFER);
        let shape = ClusterShape { shards, replicas: 1, routing: Routing::default(), costs };
        experiment.cluster = Some(Cluster::new(shape, &experiment.queries));
    }
    let stretched = |time: Nanos, factor: f64| time.scaled(1.0 / (scale * factor));
    let within = |factor: f64| Experiment { deadline: stretched(deadline, factor), ..experiment.clone() };
    let objective = |factor: f64| match question.objective {
        Objective::Percentile { share, within: Some(within) } => {
            Objective::Percentile { share, within: Some(stretched(within, factor)) }
        }
        objective => objective,
    };
    let policies: Vec<&BuiltIn> =
        question.policies.iter().filter(|policy| policy.build(&experiment.model).is_ok()).collect();
    let at_measured = within(1.0);
    let search = CapacitySearch::new(&at_measured, objective(1.0), RunLength::Enough { at_least: 0 })?;
    let as_factories: Vec<&dyn PolicyFactory> = policies.iter().map(|&policy| policy as &dyn PolicyFactory).collect();
    let coarse = search.estimate_capacity_coarse(&as_factories, &|| ())?;
    let best = policies.iter().zip(coarse).filter(|(_, qps)| *qps > 0.0).max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((&policy, _)) = best else { return Ok(None) };
    let mut points = Vec::new();
    for factor in FACTORS {
        let experiment = within(factor);
        let search = CapacitySearch::new(&experiment, objective(factor), RunLength::Enough { at_least: 0 })?;
        let qps = search.of(policy)?.qps / (scale * factor);
        if qps <= 0.0 {
            break;
        }
        points.push((factor.ln(), qps.ln()));
    }
    let policy = policy.clone();
    let experiment = within(1.0);
    Ok((!points.is_empty()).then_some(Curve { candidate, policy, shards, scale, experiment, points }))
}

fn draws(question: &Question, curves: &[Curve<'_>]) -> Vec<Draw> {
    let mut random = Random::new(question.seed, STREAM);
    // The mean cost of a sample of queries has a standard error.
    let query_error = curves.iter().map(|curve| standard_error(&curve.candidate.workload)).fold(0.0, f64::max);
    (0..NUM_DRAWS)
        .map(|_| Draw {
            rate_qps: question.growth * question.demand.draw(&mut random),
            factor: exp(query_error * random.normal()) * exp(question.speed_spread * random.normal()),
        })
        .collect()
}

/// The standard error of the mean query cost, as a share of the mean. A query counts with its faster processor.
fn standard_error(workload: &Workload) -> f64 {
    let cheapest = |measured: &PerClass<Option<crate::cost::Measured>>| {
        let times = measured.iter().filter_map(|(_, time)| time.map(|time| time.median_us));
        times.fold(f64::INFINITY, f64::min)
    };
    let costs: Vec<f64> =
        workload.rows.iter().map(|row| cheapest(&row.measured)).filter(|cost| cost.is_finite()).collect();
    let n = costs.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = costs.iter().sum::<f64>() / n;
    let variance = costs.iter().map(|cost| (cost - mean).powi(2)).sum::<f64>() / (n - 1.0);
    if mean > 0.0 { (variance / n).sqrt() / mean } else { 0.0 }
}

/// The number of groups with the least expected regret.
fn best_plan(
    question: &Question,
    curve: &Curve<'_>,
    all: &[Curve<'_>],
    draws: &[Draw],
    typical_qps: f64,
) -> Result<Plan, LabError> {
    // Only numbers that some draw needs matter; those between them serve no more draws.
    let mut numbers: Vec<usize> = draws.iter().filter_map(|draw| curve.groups(draw.rate_qps, draw.factor)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let regret = |groups: usize| draws.iter().map(|draw| regret(question, curve, groups, all, draw)).sum::<f64>();
    let groups = numbers.into_iter().map(|groups| (groups, regret(groups))).min_by(|a, b| a.1.total_cmp(&b.1));
    let (needed, regret) = groups.unwrap_or((1, regret(1)));
    let served = draws.iter().filter(|draw| needed as f64 * curve.qps(draw.factor) >= draw.rate_qps).count();
    let groups = needed + question.spare;
    let machine = curve.candidate.machine.clone();
    let watts = match (machine.idle_watts, machine.busy_watts) {
        (Some(idle), Some(busy)) => {
            let load = (typical_qps / (groups as f64 * curve.qps(1.0))).min(1.0);
            Some((groups * curve.shards) as f64 * (idle + load * (busy - idle)))
        }
        _ => None,
    };
    Ok(Plan {
        policy: curve.policy.name().to_owned(),
        shards: curve.shards,
        groups,
        group_qps: curve.qps(1.0),
        served_share: served as f64 / draws.len() as f64,
        price_per_hour: curve.price_per_hour(groups),
        regret_per_hour: regret / draws.len() as f64,
        p99_ms: p99_ms(curve, typical_qps / groups as f64)?,
        watts,
        machine,
    })
}

/// The regret per hour of a plan with `needed` groups plus spare ones, in one draw.
fn regret(question: &Question, curve: &Curve<'_>, needed: usize, all: &[Curve<'_>], draw: &Draw) -> f64 {
    let price = curve.price_per_hour(needed + question.spare);
    let cheapest = all
        .iter()
        .filter_map(|of| Some(of.price_per_hour(of.groups(draw.rate_qps, draw.factor)? + question.spare)))
        .fold(f64::INFINITY, f64::min);
    if !cheapest.is_finite() {
        // If no plan serves this draw, no plan regrets it.
        return 0.0;
    }
    let is_served = needed as f64 * curve.qps(draw.factor) >= draw.rate_qps;
    price + if is_served { 0.0 } else { question.shortage * cheapest } - cheapest
}

/// The p99 of a group at a rate, and its interval over seeds.
fn p99_ms(curve: &Curve<'_>, rate_qps: f64) -> Result<Option<(f64, Option<Interval>)>, LabError> {
    let played = play_all(&curve.experiment, &[&curve.policy], &[rate_qps * curve.scale], 0.0, |_, _| true, &|| ())?;
    let values: Vec<f64> = played.iter().map(|run| run.summary.p99_ms * curve.scale).collect();
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    Ok((!values.is_empty()).then(|| (mean, mean_interval(&values, CONFIDENCE))))
}

/// Price per hour at each of the rates, at the measured costs.
fn prices(question: &Question, curve: &Curve<'_>, rates: &[f64]) -> Vec<(f64, f64)> {
    let at = |&rate_qps: &f64| {
        curve.groups(rate_qps, 1.0).map(|groups| (rate_qps, curve.price_per_hour(groups + question.spare)))
    };
    rates.iter().filter_map(at).collect()
}

/// The lowest rate from which on the cheapest plan with GPUs never costs more than the cheapest without.
fn gpu_pays_from(question: &Question, curves: &[Curve<'_>]) -> Option<f64> {
    let cheapest = |rate_qps: f64, with_gpus: bool| {
        let of_kind = curves.iter().filter(|curve| (curve.candidate.machine.gpus > 0) == with_gpus);
        let prices = of_kind.filter_map(|of| Some(of.price_per_hour(of.groups(rate_qps, 1.0)? + question.spare)));
        prices.fold(f64::INFINITY, f64::min)
    };
    // Far beyond the largest group, prices are proportional to rates, so that their order is fixed.
    let most = curves.iter().map(|curve| curve.qps(1.0)).fold(0.0, f64::max) * 1000.0;
    let rates = std::iter::successors(Some(most), |rate| Some(rate / 1.01)).take_while(|rate| *rate >= 1.0);
    let pays =
        rates.take_while(|&rate| cheapest(rate, true).is_finite() && cheapest(rate, true) <= cheapest(rate, false));
    pays.last()
}

/// The smallest of the longer deadlines within which some type sustains a rate, with that type.
fn nearest(question: &Question, candidates: &[&Candidate]) -> Result<Option<(Nanos, String)>, LabError> {
    for factor in RELAXED {
        let deadline = question.deadline.scaled(factor);
        for candidate in candidates {
            if curve(question, candidate, deadline)?.is_some() {
                return Ok(Some((deadline, candidate.machine.name.clone())));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::QueryId;
    use crate::cost::{Measured, WorkloadRow};
    use crate::query::{Features, Mode};
    use crate::sched::{PolicyKind, PolicyOptions};

    /// Queries of 1 or 3 ms on a CPU, and a tenth of that on a GPU.
    fn workload(has_gpu: bool) -> Workload {
        let time = |us| Some(Measured { median_us: us, spread_us: 0.0, device_us: None });
        let row = |id: u32| {
            let us = if id.is_multiple_of(2) { 1000.0 } else { 3000.0 };
            WorkloadRow {
                query_id: QueryId(id),
                log_id: id,
                mode: Mode::Or,
                features: Features::default(),
                index_features: None,
                measured: PerClass::two(time(us), if has_gpu { time(us / 10.0) } else { None }),
                results: 10,
            }
        };
        Workload { rows: (0..400).map(row).collect(), ..Workload::default() }
    }

    fn machine(name: &str, cores: usize, gpus: usize, price_per_hour: f64) -> MachineType {
        MachineType {
            name: name.to_owned(),
            cores,
            gpus,
            memory_gb: 10.0,
            price_per_hour,
            idle_watts: Some(100.0),
            busy_watts: Some(300.0),
            profile: None,
            workload: None,
            scale: 1.0,
        }
    }

    fn question(demand: Demand) -> Question {
        Question {
            demand,
            growth: 1.0,
            deadline: Nanos::from_ms(50.0),
            objective: Objective::default(),
            spare: 0,
            index_gb: None,
            policies: [PolicyKind::CpuOnly, PolicyKind::StealingAdaptive]
                .map(|kind| kind.with(PolicyOptions::default()))
                .to_vec(),
            estimates: Estimates::Oracle,
            speed_spread: 0.0,
            shortage: 10.0,
            seed: 1,
        }
    }

    fn plans(question: &Question, machines: Vec<MachineType>, has_gpu: bool) -> Plans {
        let workload = workload(has_gpu);
        let of = |machine| Candidate { machine, workload: workload.clone(), profile: None };
        plan(question, &machines.into_iter().map(of).collect::<Vec<_>>(), &|| ()).unwrap()
    }

    #[test]
    fn a_known_rate_takes_the_fewest_machines_that_carry_it() {
        let found = plans(
            &question(Demand::Rate(4000.0)),
            vec![machine("small", 3, 0, 1.0), machine("large", 9, 0, 5.0)],
            false,
        );
        let best = &found.ranking[0];
        // Two workers at 2 ms per query sustain at most 1,000 q/s, and the sample leaves some percent open.
        assert!((900.0..=1000.0).contains(&best.group_qps), "{best:?}");
        assert!((4..=5).contains(&best.groups) && best.machine.name == "small", "{best:?}");
        assert!(best.served_share > 0.9, "{best:?}");
        let load = 4000.0 / (best.groups as f64 * best.group_qps);
        let watts = best.groups as f64 * (100.0 + load.min(1.0) * 200.0);
        assert!((best.watts.unwrap() / watts - 1.0).abs() < 1e-9, "{best:?}");
        assert!(found.gpu_pays_from_qps.is_none());
    }

    #[test]
    fn more_spare_machines_and_larger_indexes_cost_more() {
        let machines = || vec![machine("small", 3, 0, 1.0)];
        let price = |question: &Question| plans(question, machines(), false).ranking[0].price_per_hour;
        let plain = question(Demand::Rate(4000.0));
        let spare = Question { spare: 2, ..plain.clone() };
        assert!((price(&spare) - price(&plain) - 2.0).abs() < 1e-9);
        let sharded = Question { index_gb: Some(20.0), ..plain };
        let found = plans(&sharded, machines(), false);
        assert_eq!(found.ranking[0].shards, 3);
        // Waiting for the slowest of three shards makes them slower than three separate machines.
        assert!(found.ranking[0].group_qps < 3.0 * 1000.0, "{:?}", found.ranking[0]);
    }

    #[test]
    fn no_other_number_of_machines_has_less_regret() {
        let question = Question { speed_spread: 0.2, ..question(Demand::Between(2000.0, 8000.0)) };
        let workload = workload(false);
        let candidates = [("a", 3, 1.0), ("b", 9, 3.5)].map(|(name, cores, price)| Candidate {
            machine: machine(name, cores, 0, price),
            workload: workload.clone(),
            profile: None,
        });
        let curves: Vec<Curve<'_>> =
            candidates.iter().map(|of| curve(&question, of, question.deadline).unwrap().unwrap()).collect();
        let draws = draws(&question, &curves);
        for curve in &curves {
            let best = best_plan(&question, curve, &curves, &draws, 4000.0).unwrap();
            let regret = |groups| draws.iter().map(|draw| regret(&question, curve, groups, &curves, draw)).sum::<f64>();
            let least = (1..40).map(regret).fold(f64::INFINITY, f64::min);
            assert!(best.regret_per_hour * draws.len() as f64 <= least + 1e-9, "{best:?}, {least}");
        }
    }

    #[test]
    fn a_gpu_pays_from_some_rate_on() {
        let machines = vec![machine("cpu", 3, 0, 1.0), machine("gpu", 3, 1, 3.0)];
        let found = plans(&question(Demand::Rate(500.0)), machines, true);
        assert_eq!(found.ranking[0].machine.name, "cpu");
        let pays = found.gpu_pays_from_qps.unwrap();
        assert!((1000.0..10_000.0).contains(&pays), "{pays}");
    }

    #[test]
    fn an_impossible_deadline_names_the_nearest_possible_one() {
        let question = Question { deadline: Nanos::from_ms(1.5), ..question(Demand::Rate(100.0)) };
        let found = plans(&question, vec![machine("cpu", 3, 0, 1.0), machine("gpu", 3, 1, 6.0)], false);
        assert!(found.ranking.is_empty());
        assert_eq!(found.left_out.len(), 2, "{:?}", found.left_out);
        let (deadline, name) = found.nearest.unwrap();
        assert!(deadline >= Nanos::from_ms(3.0) && name == "cpu", "{deadline:?}");
    }
}
