//! Regret: the capacity that a policy loses because it sees estimates in place of true costs.
//!
//! The error of estimates alone says little. A policy that only compares processors tolerates an error that makes
//! another policy misplace a long query. Each policy therefore serves the same arrivals twice, and the capacities are
//! compared:
//!
//! ```text
//! exact costs    |=================================|  96 % of what no scheduler exceeds
//! estimates      |==============================|     90 %
//!                                                ^^^  regret 6 %
//! ```
//!
//! Policies without batches run on a machine without batches and are compared with the bound of that machine, because
//! they cannot lose the gain of batches.

use crate::base::time::Nanos;
use crate::cost::Workload;
use crate::cost::batches::BatchModels;
use crate::sched::{BuiltIn, PolicyFactory};
use crate::sim::Experiment;
use crate::study::{
    Capacity, CapacitySearch, Estimates, Objective, RunLength, SimulatedMachine, StudyError, draw_all, play_all,
    sim_queries,
};
use crate::traffic::ArrivalProcess;

/// Default number of queries in a run that compares delays.
pub const DELAY_QUERIES: usize = 50_000;
/// Load of these runs, as a share of the capacity with exact costs.
const LOAD: f64 = 0.95;

/// A policy's capacity with exact costs and with estimates.
#[derive(Clone, Debug, PartialEq)]
pub struct Regret {
    /// The name of the policy.
    pub policy: String,
    /// The capacity with exact costs.
    pub exact: Capacity,
    /// The capacity with estimates.
    pub estimated: Capacity,
    /// The p99 delay with exact costs at 95 % of the exact capacity, in ms: the median over seeds.
    pub exact_p99_ms: f64,
    /// The p99 delay with estimates at the same rate, in ms: the median over seeds.
    pub estimated_p99_ms: f64,
}

impl Regret {
    /// The share of the capacity lost to estimates; negative if they happen to help.
    #[must_use]
    pub fn share(&self) -> f64 {
        1.0 - self.estimated.qps / self.exact.qps
    }

    /// The gap between the capacity with estimates and the bound on all schedulers, as a share of the bound.
    #[must_use]
    pub fn short_of_bound(&self) -> f64 {
        1.0 - self.estimated.qps / self.exact.bound_qps
    }

    /// The p99 delay with estimates divided by that with exact costs.
    #[must_use]
    pub fn p99_ratio(&self) -> f64 {
        self.estimated_p99_ms / self.exact_p99_ms
    }
}

/// The regret of each policy on `machine`; policies that make batches get a machine with batches. `done` is called for
/// each of the [pieces of work](regret_pieces).
///
/// # Errors
/// If estimates cannot be made, a cost was not measured, or a policy does not fit the machine.
pub fn regret(
    workload: &Workload,
    estimates: &Estimates,
    machine: &SimulatedMachine<'_>,
    policies: &[BuiltIn],
    deadline: Nanos,
    seeds: &[u64],
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Regret>, StudyError> {
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
            Ok::<_, StudyError>(search.of_all(&of_sort, done)?)
        };
        let (with_exact, with_estimates) = (capacities(&exact)?, capacities(&estimated)?);
        let pairs = with_exact.into_iter().zip(with_estimates);
        let with_p99 = |(&policy, (of_exact, of_estimates)): (&&dyn PolicyFactory, (Capacity, Capacity))| {
            let p99_ms = |experiment: &Experiment| {
                let rate_qps = LOAD * of_exact.qps;
                let played = if rate_qps > 0.0 {
                    play_all(experiment, &[policy], &[rate_qps], 0.0, |_, _| true, &|| ())?
                } else {
                    Vec::new()
                };
                done();
                Ok::<f64, StudyError>(match &played[..] {
                    [] => f64::NAN,
                    played => crate::base::quantile::median(played.iter().map(|run| run.summary.p99_ms).collect()),
                })
            };
            Ok::<Regret, StudyError>(Regret {
                policy: policy.name().to_owned(),
                exact_p99_ms: p99_ms(&exact)?,
                estimated_p99_ms: p99_ms(&estimated)?,
                exact: of_exact,
                estimated: of_estimates,
            })
        };
        found.extend(of_sort.iter().zip(pairs).map(with_p99).collect::<Result<Vec<Regret>, StudyError>>()?);
    }
    // The results follow the order of `policies`.
    found.sort_by_key(|regret| policies.iter().position(|policy| policy.name() == regret.policy));
    Ok(found)
}

/// Pieces of work in [`regret`]: a search per seed and a delay run, with exact costs and with estimates.
#[must_use]
pub fn regret_pieces(policies: usize, seeds: usize) -> usize {
    2 * policies * (seeds + 1)
}

/// The experiment of a workload on a machine, with [`DELAY_QUERIES`] Poisson arrivals per seed.
///
/// # Errors
/// If estimates cannot be made, or a cost was not measured.
pub fn experiment(
    workload: &Workload,
    estimates: &Estimates,
    machine: &SimulatedMachine<'_>,
    deadline: Nanos,
    seeds: &[u64],
) -> Result<Experiment, StudyError> {
    let model = machine.model(workload, estimates);
    Ok(Experiment {
        queries: sim_queries(workload, estimates, &model.machine)?,
        model,
        deadline,
        arrivals: draw_all(&ArrivalProcess::Poisson, seeds, DELAY_QUERIES, workload.rows.len()),
        cluster: None,
    })
}
