//! Which machines serve a demand within a deadline at the least cost?
//!
//! ```text
//!  catalogue ─▶ machine types ─┐
//!  workload  ─▶ service times ─┴─▶ a fleet per type ─┐
//!  rate, interval or day ─▶ 512 draws ─▶ their load ─┴─▶ fewest machines ─▶ price ─▶ ranking
//! ```
//!
//! A plan is a number of equal groups of machines of one type, a [`Fleet`]. A group holds the whole index: it is one machine,
//! or as many shards as the index needs. `spare` of the groups may fail.
//!
//! **Margin.** Each draw has a rate, a factor on query costs (the measured queries are a sample) and a factor on machine
//! speed. Their product is its load. A plan sustains nine of ten loads by default. A rate that is not served costs
//! [`shortage`](Question::shortage) times as much as the machines that serve it, so that the share of `1 - 1 / shortage`
//! costs least (the critical ratio of the newsvendor). A known rate on machines of equal speed has no margin.

mod catalogue;
mod demand;

use std::sync::Arc;

use rayon::prelude::*;

pub use self::catalogue::{MachineType, read_catalogue, shipped_catalogue};
pub use self::demand::Demand;
use super::estimates::estimated_queries;
use super::{
    DELAY_QUERIES, Estimates, Fewest, Fleet, NamedMachine, Objective, RunLength, SimulatedMachine, StudyError, Summary,
    draw_all, needs_dispatcher, usual_policies, workers,
};
use crate::base::machine::{Class, PerClass};
use crate::base::quantile::nearest_rank;
use crate::base::random::{Random, exp};
use crate::base::stats::{Interval, mean_interval};
use crate::base::time::Nanos;
use crate::cost::{MachineProfile, Workload};
use crate::sched::{BuiltIn, PolicyFactory, PolicyKind, PolicyOptions};
use crate::sim::{ClusterShape, Experiment, Routing, ShardCosts};
use crate::traffic::ArrivalProcess;

/// Number of draws of demand, query costs and machine speed.
pub const NUM_DRAWS: usize = 512;
/// Hours of a mean month: 365.25 days of 24 hours in 12 months.
pub const HOURS_PER_MONTH: f64 = 730.5;
/// Seeds of the runs, as in `simulate` and `sweep`.
const SEEDS: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
/// Numbers of groups beside the chosen one that are shown: fewer and more.
const NEIGHBOURS: (usize, usize) = (2, 1);
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
    /// The policies to choose from; if empty, the [usual ones](usual_policies) of each machine.
    pub policies: Vec<BuiltIn>,
    /// The choice of a group for a query.
    pub routing: Routing,
    /// The cost estimates that policies see.
    pub estimates: Estimates,
    /// The standard deviation of the logarithm of machine speed, over machines and days. If it is 0, all machines are as fast
    /// as their types and the queries are no sample, as in `simulate` and `sweep`.
    pub speed_spread: f64,
    /// The cost of a rate that is not served, as a multiple of the cost of serving it.
    pub shortage: f64,
    /// The seed of all draws.
    pub seed: u64,
}

/// A number of machines of one type at the typical rate.
#[derive(Clone, Debug)]
pub struct Row {
    /// Number of machines, including the spare ones.
    pub machines: usize,
    /// The share of the work they can do that the rate offers.
    pub utilisation: f64,
    /// p99 in milliseconds, with its interval over seeds; `None` if the machines are overloaded.
    pub p99_ms: Option<(f64, Option<Interval>)>,
    /// p99.9 in milliseconds; `None` if the machines are overloaded.
    pub p999_ms: Option<f64>,
    /// The share of draws that they serve after the loss of the spare groups.
    pub served_share: f64,
    /// Price per hour.
    pub price_per_hour: f64,
}

/// A plan: a number of machines of one type, with its properties.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The machine type.
    pub machine: MachineType,
    /// CPU workers of each machine.
    pub workers: usize,
    /// The name of the policy.
    pub policy: String,
    /// Number of machines per group: the shards of the index.
    pub shards: usize,
    /// Number of groups, including the spare ones.
    pub groups: usize,
    /// The fewest groups that sustain the typical rate at the measured costs, without spare ones.
    pub groups_without_margin: usize,
    /// The capacity of one of these groups at the measured costs, in queries per second.
    pub group_qps: f64,
    /// The plan at the typical rate with all groups.
    pub row: Row,
    /// The best plan only: its row among those with fewer and more groups.
    pub rows: Vec<Row>,
    /// The best plan only: other policies, with their gain in capacity on one group over the plan's.
    pub gains: Vec<(String, f64)>,
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
    /// The best plan of each feasible machine type, by price.
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
#[derive(Clone, Copy, Debug)]
struct Draw {
    rate_qps: f64,
    /// The product of the factors on query costs and machine speed.
    factor: f64,
}

impl Draw {
    fn load(&self) -> f64 {
        self.rate_qps * self.factor
    }
}

/// The estimates of a workload that policies see, and the times of its rows by them.
struct Estimated<'a> {
    workload: &'a Arc<Workload>,
    estimates: Estimates,
    alone_us: Vec<PerClass<Option<f64>>>,
}

/// A machine type that may serve the demand.
struct Kind<'a> {
    candidate: &'a Candidate,
    workers: usize,
    fleet: Fleet,
    /// The policies to choose from, and those that are only compared.
    policies: Vec<BuiltIn>,
    compared: Vec<BuiltIn>,
}

/// A machine type with its policy and the machines that it needs.
struct Served<'a> {
    kind: &'a Kind<'a>,
    fleet: Fleet,
    policy: &'a BuiltIn,
    /// The capacity of one group.
    one_qps: f64,
    /// The fewest groups for the typical rate.
    plain: Fewest,
    /// The fewest groups for the load that a plan must sustain, that load, and the highest one that they sustain.
    needed: usize,
    load: f64,
    holds: f64,
}

/// The draws of a question, by ascending load, and the one that a plan must sustain.
struct Draws {
    ascending: Vec<Draw>,
    typical_qps: f64,
    target: Draw,
}

/// Finds the best plan of each machine type. `done` is called after each type.
///
/// # Errors
/// If a machine has too few cores, estimates cannot be made for a workload, or a policy breaks its contract.
pub fn plan(question: &Question, candidates: &[Candidate], done: &(dyn Fn() + Sync)) -> Result<Plans, StudyError> {
    plan_by(question, candidates, (&SEEDS, RunLength::default()), done)
}

/// A [`plan`] by runs of these seeds and of this length.
///
/// # Errors
/// As for [`plan`].
pub fn plan_by(
    question: &Question,
    candidates: &[Candidate],
    runs: (&[u64], RunLength),
    done: &(dyn Fn() + Sync),
) -> Result<Plans, StudyError> {
    let mut left_out = Vec::new();
    let mut possible = Vec::new();
    for of in candidates {
        match impossible(question, of) {
            Some(why) => left_out.push((of.machine.name.clone(), why)),
            None => possible.push(of),
        }
    }
    let kinds = kinds(question, &possible, runs)?;
    let draws = draws(question, &possible);
    let mut served = Vec::new();
    for (kind, found) in kinds.iter().zip(all_served(&kinds, question.deadline, &draws, done)) {
        let why = match found? {
            Some(found) => {
                served.push(found);
                continue;
            }
            None if kind.policies.is_empty() => "none of the policies can run on it",
            None => "no policy sustains any rate within the deadline",
        };
        left_out.push((kind.candidate.machine.name.clone(), why.to_owned()));
    }
    let ranking = ranking(question, &served, &draws)?;
    let nearest = if ranking.is_empty() { nearest(question, &kinds, &draws)? } else { None };
    let typical_qps = draws.typical_qps;
    let rates: Vec<f64> = (0..=60).map(|step| typical_qps * 10_f64.powf(f64::from(step - 30) / 15.0)).collect();
    let priced = |of: &Served<'_>| {
        let prices = rates.iter().map(|&rate_qps| (rate_qps, of.price_at(question, &draws, rate_qps)));
        (of.kind.candidate.machine.name.clone(), prices.collect())
    };
    let prices = served.iter().map(priced).collect();
    let gpu_pays_from_qps = gpu_pays_from(question, &served, &draws);
    Ok(Plans { ranking, left_out, typical_qps, gpu_pays_from_qps, prices, nearest })
}

/// The machine types as fleets. Estimates are made once per workload.
fn kinds<'a>(
    question: &Question,
    candidates: &[&'a Candidate],
    (seeds, length): (&[u64], RunLength),
) -> Result<Vec<Kind<'a>>, StudyError> {
    let mut known: Vec<Estimated<'_>> = Vec::new();
    let mut kinds = Vec::new();
    for &candidate in candidates {
        let Candidate { machine: of, workload, profile } = candidate;
        let at = match known.iter().position(|known| Arc::ptr_eq(known.workload, workload)) {
            Some(at) => at,
            None => {
                let (estimates, _) = question.estimates.clone().suited_to(workload);
                let alone_us = estimates.alone_us(workload)?;
                known.push(Estimated { workload, estimates, alone_us });
                known.len() - 1
            }
        };
        let Estimated { estimates, alone_us, .. } = &known[at];
        let workers = candidate.workers().map_err(StudyError::TooFewCores)?;
        let profile = profile.as_ref().map(|(name, profile)| NamedMachine { name, profile });
        let machine = SimulatedMachine { profile, ..SimulatedMachine::new(workers, of.gpus) };
        let model = machine.model(workload, estimates);
        let queries = estimated_queries(workload, estimates, &model.machine, || Ok(alone_us.clone()))?;
        let built = |policies: Vec<BuiltIn>| -> Vec<BuiltIn> {
            policies.into_iter().filter(|policy| policy.build(&model).is_ok()).collect()
        };
        let (policies, compared) = match question.policies.as_slice() {
            [] => {
                let (answering, compared) = usual_policies(of.gpus > 0);
                let usual = |kinds: &[PolicyKind]| {
                    built(kinds.iter().map(|kind| kind.with(PolicyOptions::default())).collect())
                };
                (usual(answering), usual(compared))
            }
            named => (built(named.to_vec()), Vec::new()),
        };
        let shards = shards(question, of);
        let power = if of.gpus > 0 { SHARD_POWERS.1 } else { SHARD_POWERS.0 };
        let arrivals = draw_all(&ArrivalProcess::Poisson, seeds, DELAY_QUERIES, queries.len());
        let fleet = Fleet {
            machine: Experiment { model, queries, deadline: question.deadline, arrivals, cluster: None },
            shape: ClusterShape {
                shards,
                replicas: 1,
                routing: question.routing,
                costs: ShardCosts::Alike(SHARDS_DIFFER),
            },
            objective: question.objective,
            length,
            scale: of.scale * (shards as f64).powf(-power),
        };
        kinds.push(Kind { candidate, workers, fleet, policies, compared });
    }
    Ok(kinds)
}

impl Candidate {
    /// CPU workers of the machine.
    ///
    /// # Errors
    /// A text, if its cores do not suffice.
    pub fn workers(&self) -> Result<usize, String> {
        let MachineType { name, cores, gpus, workers: asked, .. } = &self.machine;
        let profile = self.profile.as_ref().map(|(_, profile)| profile);
        let needs_dispatcher = needs_dispatcher(&self.workload, profile);
        asked
            .or(profile.and_then(MachineProfile::server_lanes))
            .map_or_else(|| workers(*cores, *gpus, needs_dispatcher), Ok)
            .map_err(|why| format!("machine type {name}: {why}"))
    }
}

/// Number of machines of this type that hold the index together.
fn shards(question: &Question, of: &MachineType) -> usize {
    question.index_gb.map_or(1, |gb| (gb / (MEMORY_SHARE * of.memory_gb)).ceil().max(1.0) as usize)
}

impl Kind<'_> {
    /// The fleet within another deadline.
    fn within(&self, deadline: Nanos) -> Fleet {
        let machine = Experiment { deadline, ..self.fleet.machine.clone() };
        Fleet { machine, ..self.fleet.clone() }
    }

    /// The machines that the demand needs under the best policy; `None` if no rate holds. Policies are compared on one group.
    fn served(&self, deadline: Nanos, draws: &Draws) -> Result<Option<Served<'_>>, StudyError> {
        let fleet = self.within(deadline);
        let each = self.policies.par_iter().map(|policy| Ok((policy, fleet.capacity_qps(policy, 1, 1.0)?)));
        let each = each.collect::<Result<Vec<_>, StudyError>>()?;
        let Some((policy, one_qps)) = each.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Ok(None) };
        let Some(plain) = fleet.fewest(policy, (draws.typical_qps, 1.0), one_qps)? else { return Ok(None) };
        let Draw { rate_qps, factor } = draws.target;
        let needed = match (rate_qps, factor) == (draws.typical_qps, 1.0) {
            true => Some(plain),
            false => fleet.fewest(policy, (rate_qps, factor), plain.qps / plain.groups as f64 / factor)?,
        };
        let load = draws.target.load();
        let served = |needed: Fewest| {
            let holds = (needed.qps * factor).max(load);
            Served { kind: self, fleet, policy, one_qps, plain, needed: needed.groups, load, holds }
        };
        Ok(needed.map(served))
    }
}

impl Served<'_> {
    /// The price per hour of this many groups.
    fn price(&self, groups: usize) -> f64 {
        self.kind.candidate.machine.price_per_hour * (groups * self.fleet.shape.shards) as f64
    }

    /// The price per hour of the machines for another typical rate with the same margin.
    fn price_at(&self, question: &Question, draws: &Draws, rate_qps: f64) -> f64 {
        let load = rate_qps * self.load / draws.typical_qps;
        let groups = (load * self.needed as f64 / self.holds).ceil().max(1.0);
        self.price(groups as usize + question.spare)
    }

    /// The share of draws that this many groups serve.
    fn served_share(&self, groups: usize, draws: &Draws) -> f64 {
        let most = self.holds * groups as f64 / self.needed as f64;
        let is_served = |draw: &&Draw| draw.load() <= most && (groups >= self.needed || draw.load() < self.load);
        draws.ascending.iter().filter(is_served).count() as f64 / draws.ascending.len() as f64
    }

    /// This many groups, including the spare ones, at the typical rate.
    fn row(&self, question: &Question, draws: &Draws, groups: usize) -> Result<Row, StudyError> {
        let Self { fleet, policy, .. } = self;
        let utilisation = fleet.utilisation(*policy, groups, draws.typical_qps);
        let runs = if utilisation < 1.0 { fleet.at_rate(*policy, groups, draws.typical_qps)? } else { Vec::new() };
        let values =
            |of: fn(&Summary) -> f64| runs.iter().map(|run| of(&run.summary) * fleet.scale).collect::<Vec<_>>();
        let mean = |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let p99s_ms = values(|summary| summary.p99_ms);
        Ok(Row {
            machines: groups * fleet.shape.shards,
            utilisation,
            p99_ms: mean(&p99s_ms).map(|mean| (mean, mean_interval(&p99s_ms, CONFIDENCE))),
            p999_ms: mean(&values(|summary| summary.p999_ms)),
            served_share: self.served_share(groups.saturating_sub(question.spare), draws),
            price_per_hour: self.price(groups),
        })
    }

    fn plan(&self, question: &Question, draws: &Draws) -> Result<Plan, StudyError> {
        let groups = self.needed + question.spare;
        let machine = self.kind.candidate.machine.clone();
        let row = self.row(question, draws, groups)?;
        let watts = machine.idle_watts.zip(machine.busy_watts);
        let watts = watts.map(|(idle, busy)| row.machines as f64 * (idle + row.utilisation.min(1.0) * (busy - idle)));
        let energy = match machine.gpus {
            0 => Vec::new(),
            _ => self.fleet.at_rate(self.policy, 1, draws.typical_qps / groups as f64)?,
        };
        let energy = energy.iter().filter_map(|run| Some(run.summary.gpu_mj_per_query()? * self.fleet.scale));
        let (sum, count) = energy.fold((0.0, 0.0), |(sum, count), mj| (sum + mj, count + 1.0));
        Ok(Plan {
            workers: self.kind.workers,
            policy: self.policy.name().to_owned(),
            shards: self.fleet.shape.shards,
            groups,
            groups_without_margin: self.plain.groups,
            group_qps: self.plain.qps / self.plain.groups as f64,
            row,
            rows: Vec::new(),
            gains: Vec::new(),
            watts,
            gpu_mj_per_query: (count > 0.0).then(|| sum / count),
            machine,
        })
    }

    /// Adds the rows of other numbers of groups to the best plan, and the gains of other policies.
    fn explain(&self, question: &Question, draws: &Draws, plan: &mut Plan) -> Result<(), StudyError> {
        let (fewer, more) = NEIGHBOURS;
        let numbers = plan.groups.saturating_sub(fewer).max(question.spare + 1)..=plan.groups + more;
        let row = |groups: usize| match groups == plan.groups {
            true => Ok(plan.row.clone()),
            false => self.row(question, draws, groups),
        };
        plan.rows = numbers.into_par_iter().map(row).collect::<Result<_, StudyError>>()?;
        let gain = |policy: &BuiltIn| {
            let gain = self.fleet.capacity_qps(policy, 1, 1.0)? / self.one_qps - 1.0;
            Ok((policy.name().to_owned(), gain))
        };
        plan.gains = self.kind.compared.par_iter().map(gain).collect::<Result<_, StudyError>>()?;
        Ok(())
    }
}

fn all_served<'a>(
    kinds: &'a [Kind<'a>],
    deadline: Nanos,
    draws: &Draws,
    done: &(dyn Fn() + Sync),
) -> Vec<Result<Option<Served<'a>>, StudyError>> {
    let of = |kind: &'a Kind<'a>| {
        let served = kind.served(deadline, draws);
        done();
        served
    };
    kinds.par_iter().map(of).collect()
}

/// The best plan of each type, by price, then by the share of draws that is served.
fn ranking(question: &Question, served: &[Served<'_>], draws: &Draws) -> Result<Vec<Plan>, StudyError> {
    let plans = served.par_iter().map(|of| Ok((of, of.plan(question, draws)?)));
    let mut ranking = plans.collect::<Result<Vec<_>, StudyError>>()?;
    ranking.sort_by(|(_, a), (_, b)| {
        let by_price = a.row.price_per_hour.total_cmp(&b.row.price_per_hour);
        by_price.then(b.row.served_share.total_cmp(&a.row.served_share))
    });
    if let Some((of, best)) = ranking.first_mut() {
        of.explain(question, draws, best)?;
    }
    Ok(ranking.into_iter().map(|(_, plan)| plan).collect())
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

fn draws(question: &Question, candidates: &[&Candidate]) -> Draws {
    let mut random = Random::new(question.seed, STREAM);
    // The mean cost of a sample of queries has a standard error.
    let query_error = candidates.iter().map(|of| standard_error(&of.workload)).fold(0.0, f64::max);
    let spread = question.speed_spread;
    let mut draw = || {
        let rate_qps = question.growth * question.demand.draw(&mut random);
        let errors = exp(query_error * random.normal()) * exp(spread * random.normal());
        Draw { rate_qps, factor: if spread > 0.0 { errors } else { 1.0 } }
    };
    let mut ascending: Vec<Draw> = (0..NUM_DRAWS).map(|_| draw()).collect();
    ascending.sort_by(|a, b| a.load().total_cmp(&b.load()));
    let typical_qps = question.demand.typical_qps() * question.growth;
    let target = nearest_rank(&ascending, 1.0 - 1.0 / question.shortage);
    Draws { target: target.unwrap_or(Draw { rate_qps: typical_qps, factor: 1.0 }), ascending, typical_qps }
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

/// The lowest rate from which on the cheapest plan with GPUs never costs more than the cheapest without.
fn gpu_pays_from(question: &Question, served: &[Served<'_>], draws: &Draws) -> Option<f64> {
    let cheapest = |rate_qps: f64, with_gpus: bool| {
        let of_kind = served.iter().filter(|of| (of.kind.candidate.machine.gpus > 0) == with_gpus);
        of_kind.map(|of| of.price_at(question, draws, rate_qps)).fold(f64::INFINITY, f64::min)
    };
    // Far beyond the largest group, prices are proportional to rates, so that their order is fixed.
    let most = served.iter().map(|of| of.holds / of.needed as f64).fold(0.0, f64::max) * 1000.0;
    let rates = std::iter::successors(Some(most), |rate| Some(rate / 1.01)).take_while(|rate| *rate >= 1.0);
    let pays =
        rates.take_while(|&rate| cheapest(rate, true).is_finite() && cheapest(rate, true) <= cheapest(rate, false));
    pays.last()
}

/// The best plan for the shortest longer deadline that some type meets, with that deadline.
fn nearest(question: &Question, kinds: &[Kind<'_>], draws: &Draws) -> Result<Option<(Nanos, Plan)>, StudyError> {
    let relaxed = |factor: f64| question.deadline.scaled(factor);
    let serves = |factor: f64| {
        let found =
            kinds.par_iter().map(|kind| kind.within(relaxed(factor)).serves(&kind.policies, draws.target.factor));
        Ok::<bool, StudyError>(found.collect::<Result<Vec<bool>, StudyError>>()?.contains(&true))
    };
    let mut fails = 1.0;
    for factor in RELAXED {
        if serves(factor)? {
            let mut holds = factor;
            while holds / fails > NEAR {
                let middle = f64::sqrt(holds * fails);
                if serves(middle)? { holds = middle } else { fails = middle }
            }
            let found = all_served(kinds, relaxed(holds), draws, &|| ()).into_iter().collect::<Result<Vec<_>, _>>()?;
            let served: Vec<Served<'_>> = found.into_iter().flatten().collect();
            if let Some(best) = ranking(question, &served, draws)?.into_iter().next() {
                return Ok(Some((relaxed(holds), best)));
            }
        }
        // Long runs may fail where a short one held.
        fails = factor;
    }
    Ok(None)
}
