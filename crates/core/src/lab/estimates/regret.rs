//! Regret: what a policy loses because it is told estimates and not the true costs.
//!
//! An error of estimates means nothing by itself: a policy that only asks which processor is the better one shrugs off what
//! makes another misplace a long query. So each policy plays the same arrivals twice, and capacities are compared:
//!
//! ```text
//! exact costs    |=================================|  96 % of what no scheduler exceeds
//! estimates      |==============================|     90 %
//!                                                ^^^  regret 6 %
//! ```
//!
//! Policies that make no batches are played on a machine without them, and beside its bound: what a batch would gain is not
//! theirs to lose.

use crate::base::time::Nanos;
use crate::cost::Workload;
use crate::cost::batches::BatchModels;
use crate::lab::{
    Capacity, CapacitySearch, Estimates, LabError, Objective, RunLength, SimulatedMachine, draw_all, in_stream,
    play_all, sim_queries,
};
use crate::query::ArrivalProcess;
use crate::sched::{BuiltIn, PolicyFactory};
use crate::sim::Experiment;

/// Queries of a run whose delays are compared, where nothing else is asked for.
pub const DELAY_QUERIES: usize = 50_000;
/// The load at which they are: a share of the capacity with exact costs.
const LOAD: f64 = 0.95;

/// A policy's capacity with exact costs and with estimates.
#[derive(Clone, Debug, PartialEq)]
pub struct Regret {
    /// The policy.
    pub policy: String,
    /// With exact costs.
    pub exact: Capacity,
    /// With estimates.
    pub estimated: Capacity,
    /// The median over seeds of the 99th percentile of delays at 95 % of the capacity with exact costs: with those, in ms.
    pub exact_p99_ms: f64,
    /// The same with estimates.
    pub estimated_p99_ms: f64,
}

impl Regret {
    /// The share of the capacity that estimates cost; below 0 where they happen to help.
    #[must_use]
    pub fn share(&self) -> f64 {
        1.0 - self.estimated.qps / self.exact.qps
    }

    /// How far the capacity with estimates is from what no scheduler exceeds, clairvoyant ones among them, as a share of that.
    #[must_use]
    pub fn short_of_bound(&self) -> f64 {
        1.0 - self.estimated.qps / self.exact.bound_qps
    }

    /// How many times as long the 99th percentile of delays is with estimates.
    #[must_use]
    pub fn p99_ratio(&self) -> f64 {
        self.estimated_p99_ms / self.exact_p99_ms
    }
}

/// The regret of each of these policies on `machine`, which has batches for those that make them. `done` hears of each of [so many](regret_pieces) pieces of work.
///
/// # Errors
/// If estimates can't be made, a cost was not measured, or a policy can't be made for this machine.
pub fn regret(
    workload: &Workload,
    estimates: &Estimates,
    machine: &SimulatedMachine<'_>,
    policies: &[BuiltIn],
    deadline: Nanos,
    seeds: &[u64],
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Regret>, LabError> {
    let mut found = Vec::new();
    for batches in [false, true] {
        let of_sort: Vec<&dyn PolicyFactory> = policies
            .iter()
            .filter(|policy| policy.makes_batches() == batches)
            .map(|policy| policy as &dyn PolicyFactory)
            .collect();
        if of_sort.is_empty() {
            continue;
        }
        let workload = match batches {
            true => workload.clone(),
            false => Workload { batches: BatchModels::default(), ..workload.clone() },
        };
        let exact = experiment(&workload, &Estimates::Oracle, machine, deadline, seeds)?;
        let estimated = experiment(&workload, estimates, machine, deadline, seeds)?;
        let capacities = |experiment| {
            let search = CapacitySearch::new(experiment, Objective::default(), RunLength::Enough { at_least: 0 })?;
            Ok::<_, LabError>(search.of_all(&of_sort, done)?)
        };
        let (with_exact, with_estimates) = (capacities(&exact)?, capacities(&estimated)?);
        let pairs =
            with_exact.into_iter().zip(with_estimates).map(|(exact, estimated)| (exact.objective, estimated.objective));
        let with_p99 = |(&policy, (of_exact, of_estimates)): (&&dyn PolicyFactory, (Capacity, Capacity))| {
            let p99_ms = |experiment: &Experiment| {
                let rate_qps = LOAD * of_exact.qps;
                let played = if rate_qps > 0.0 {
                    play_all(experiment, &[policy], &[rate_qps], 0.0, |_, _| true, &|| ())?
                } else {
                    Vec::new()
                };
                done();
                Ok::<f64, LabError>(match &played[..] {
                    [] => f64::NAN,
                    played => crate::base::quantile::median(played.iter().map(|run| run.summary.p99_ms).collect()),
                })
            };
            Ok::<Regret, LabError>(Regret {
                policy: policy.name().to_owned(),
                exact_p99_ms: p99_ms(&exact)?,
                estimated_p99_ms: p99_ms(&estimated)?,
                exact: of_exact,
                estimated: of_estimates,
            })
        };
        found.extend(of_sort.iter().zip(pairs).map(with_p99).collect::<Result<Vec<Regret>, LabError>>()?);
    }
    // In the order in which they were asked for.
    found.sort_by_key(|regret| policies.iter().position(|policy| policy.name() == regret.policy));
    Ok(found)
}

/// Of how many pieces of work [`regret`] tells: each search with each seed, and delays, both with exact costs and with estimates.
#[must_use]
pub fn regret_pieces(policies: usize, seeds: usize) -> usize {
    2 * policies * (seeds + 1)
}

/// A machine that serves a workload: [`DELAY_QUERIES`] Poisson arrivals a seed, batches at their measured costs.
///
/// # Errors
/// If estimates can't be made, or a cost was not measured.
pub fn experiment(
    workload: &Workload,
    estimates: &Estimates,
    machine: &SimulatedMachine<'_>,
    deadline: Nanos,
    seeds: &[u64],
) -> Result<Experiment, LabError> {
    let model = machine.model(workload, estimates);
    Ok(Experiment {
        queries: in_stream(&sim_queries(workload, estimates, &model.machine)?, &model),
        model,
        deadline,
        arrivals: draw_all(&ArrivalProcess::Poisson, seeds, DELAY_QUERIES, workload.rows.len()),
        cluster: None,
    })
}
