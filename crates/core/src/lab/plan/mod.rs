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
//! **One curve per type.** Capacities at a few factors on service times suffice for all draws of query costs and machine
//! speed.
//!
//! **Regret.** Each draw has a rate, a factor on query costs (the measured queries are a sample) and a factor on machine
//! speed. A plan that serves the draw costs its price. A plan that does not serve it is charged
//! [`shortage`](Question::shortage) times the lowest price that does: beyond the capacity the objective is lost for all
//! queries, not only for those in excess. The regret is the excess over the
//! cheapest plan that serves the draw. The best plan has the least expected regret, as in Netflix's capacity planning
//! ("Provisioning Service Resources under Uncertainty", service-capacity-modeling, 2021).

mod catalogue;
mod curve;
mod demand;
mod verify;

use std::sync::Arc;

use rayon::prelude::*;

pub use self::catalogue::{MachineType, read_catalogue, shipped_catalogue};
use self::curve::{AtRate, Curve, Group, groups, played, shards};
pub use self::demand::Demand;
pub use self::verify::{Verified, verify};
use super::{Estimates, Objective, StudyError};
use crate::base::machine::{Class, PerClass};
use crate::base::random::{Random, exp};
use crate::base::stats::Interval;
use crate::base::time::Nanos;
use crate::cost::{MachineProfile, Workload};
use crate::sched::{BuiltIn, PolicyFactory};

/// Number of draws of demand, query costs and machine speed.
pub const NUM_DRAWS: usize = 512;
/// Hours of a mean month: 365.25 days of 24 hours in 12 months.
pub const HOURS_PER_MONTH: f64 = 730.5;
/// Seeds of each simulated capacity and latency.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Deadlines to try if no plan is feasible, as multiples of the requested one.
const RELAXED: [f64; 9] = [1.5, 2.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e5, 1e7];
/// Ratio of deadlines of which one is feasible and the other is not.
const NEAR: f64 = 1.1;
/// Most shards of an index: the time of a simulation grows with them.
const MOST_SHARDS: usize = 64;
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
    /// Energy of the GPUs per query at the typical rate, in millijoules, if the machine profile knows their power.
    pub gpu_mj_per_query: Option<f64>,
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
    /// If no plan exists: the smallest tried deadline with a plan, and its best plan.
    pub nearest: Option<(Nanos, Plan)>,
}

/// A machine type with the workload that represents it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The machine type.
    pub machine: MachineType,
    /// The measured service times, before [`MachineType::scale`]. Types that share them are planned faster.
    pub workload: Arc<Workload>,
    /// The name and content of its machine profile, if it has one.
    pub profile: Option<(String, MachineProfile)>,
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
pub fn plan(question: &Question, candidates: &[Candidate], done: &(dyn Fn() + Sync)) -> Result<Plans, StudyError> {
    let mut left_out = Vec::new();
    let mut possible = Vec::new();
    for of in candidates {
        match impossible(question, of) {
            Some(why) => left_out.push((of.machine.name.clone(), why)),
            None => possible.push(of),
        }
    }
    let groups = groups(question, &possible, &SEEDS)?;
    let draws = draws(question, &possible);
    let mut served = Vec::new();
    for (group, curve) in groups.iter().zip(curves(question, &groups, &draws, done)) {
        let why = match curve? {
            Some(curve) => {
                served.push(curve);
                continue;
            }
            None if group.policies(question).is_empty() => "none of the policies can run on it",
            None => "no policy sustains any rate within the deadline",
        };
        left_out.push((group.candidate.machine.name.clone(), why.to_owned()));
    }
    let typical_qps = question.demand.typical_qps() * question.growth;
    let ranking = ranking(question, &served, &draws)?;
    let nearest = if ranking.is_empty() { nearest(question, &groups, &draws)? } else { None };
    let rates: Vec<f64> = (0..=60).map(|step| typical_qps * 10_f64.powf(f64::from(step - 30) / 15.0)).collect();
    let named = |curve: &Curve<'_>| (curve.group.candidate.machine.name.clone(), prices(question, curve, &rates));
    let prices = served.iter().map(named).collect();
    Ok(Plans { ranking, left_out, typical_qps, gpu_pays_from_qps: gpu_pays_from(question, &served), prices, nearest })
}

fn curves<'a>(
    question: &Question,
    groups: &'a [Group<'a>],
    draws: &[Draw],
    done: &(dyn Fn() + Sync),
) -> Vec<Result<Option<Curve<'a>>, StudyError>> {
    let of = |group: &'a Group<'a>| {
        let curve = group.curve(question, draws);
        done();
        curve
    };
    groups.par_iter().map(of).collect()
}

/// The best plan of each type, by expected regret.
fn ranking(question: &Question, served: &[Curve<'_>], draws: &[Draw]) -> Result<Vec<Plan>, StudyError> {
    let plans = served.par_iter().map(|curve| best_plan(question, curve, served, draws));
    let mut ranking = plans.collect::<Result<Vec<Plan>, StudyError>>()?;
    ranking.sort_by(|a, b| a.regret_per_hour.total_cmp(&b.regret_per_hour));
    Ok(ranking)
}

/// Why no plan can have machines of this type.
fn impossible(question: &Question, of: &Candidate) -> Option<String> {
    let has_gpu_times = of.workload.rows.iter().all(|row| row.measured[Class::GPU].is_some());
    if of.machine.gpus > 0 && !has_gpu_times {
        return Some(String::from("its workload has no GPU times"));
    }
    let shards = shards(question, &of.machine);
    (shards > MOST_SHARDS)
        .then(|| format!("the index needs {shards} such machines for one copy, and at most {MOST_SHARDS} are planned"))
}

fn draws(question: &Question, candidates: &[&Candidate]) -> Vec<Draw> {
    let mut random = Random::new(question.seed, STREAM);
    // The mean cost of a sample of queries has a standard error.
    let query_error = candidates.iter().map(|of| standard_error(&of.workload)).fold(0.0, f64::max);
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
fn best_plan(question: &Question, curve: &Curve<'_>, all: &[Curve<'_>], draws: &[Draw]) -> Result<Plan, StudyError> {
    let typical_qps = question.demand.typical_qps() * question.growth;
    // Only numbers that some draw needs matter; those between them serve no more draws.
    let mut numbers: Vec<usize> = draws.iter().filter_map(|draw| curve.groups(draw.rate_qps, draw.factor)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let regret = |groups: usize| draws.iter().map(|draw| regret(question, curve, groups, all, draw)).sum::<f64>();
    let groups = numbers.into_iter().map(|groups| (groups, regret(groups))).min_by(|a, b| a.1.total_cmp(&b.1));
    let (needed, regret) = groups.unwrap_or((1, regret(1)));
    let served = draws.iter().filter(|draw| needed as f64 * curve.qps(draw.factor) >= draw.rate_qps).count();
    let groups = needed + question.spare;
    let machine = curve.group.candidate.machine.clone();
    let watts = match (machine.idle_watts, machine.busy_watts) {
        (Some(idle), Some(busy)) => {
            let load = (typical_qps / (groups as f64 * curve.qps(1.0))).min(1.0);
            Some((groups * curve.group.shards) as f64 * (idle + load * (busy - idle)))
        }
        _ => None,
    };
    let AtRate { p99_ms, gpu_mj_per_query } = played(question, curve, typical_qps / groups as f64)?;
    Ok(Plan {
        policy: curve.policy.name().to_owned(),
        shards: curve.group.shards,
        groups,
        group_qps: curve.qps(1.0),
        served_share: served as f64 / draws.len() as f64,
        price_per_hour: curve.price_per_hour(groups),
        regret_per_hour: regret / draws.len() as f64,
        p99_ms,
        watts,
        gpu_mj_per_query,
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
        let of_kind = curves.iter().filter(|curve| (curve.group.candidate.machine.gpus > 0) == with_gpus);
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

/// The best plan for the shortest longer deadline that some type meets, with that deadline.
fn nearest(question: &Question, groups: &[Group<'_>], draws: &[Draw]) -> Result<Option<(Nanos, Plan)>, StudyError> {
    let relaxed = |factor: f64| Question { deadline: question.deadline.scaled(factor), ..question.clone() };
    let serves = |factor: f64| {
        let question = relaxed(factor);
        let found: Result<Vec<bool>, StudyError> = groups.par_iter().map(|group| group.serves(&question)).collect();
        Ok::<bool, StudyError>(found?.contains(&true))
    };
    let mut fails = 1.0;
    for factor in RELAXED {
        if serves(factor)? {
            let mut holds = factor;
            while holds / fails > NEAR {
                let middle = f64::sqrt(holds * fails);
                if serves(middle)? { holds = middle } else { fails = middle }
            }
            let question = relaxed(holds);
            let found = curves(&question, groups, draws, &|| ()).into_iter().collect::<Result<Vec<_>, _>>()?;
            let served: Vec<Curve<'_>> = found.into_iter().flatten().collect();
            if let Some(best) = ranking(&question, &served, draws)?.into_iter().next() {
                return Ok(Some((question.deadline, best)));
            }
        }
        // Long runs may fail where a short one held.
        fails = factor;
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
