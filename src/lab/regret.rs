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

use super::{Capacity, CapacitySearch, Estimates, LabError, Objective, RunLength, draw_all, play_all, sim_queries};
use crate::cost::batches::BatchModels;
use crate::cost::{MachineModel, Workload};
use crate::machine::Machine;
use crate::query::ArrivalProcess;
use crate::sched::{BuiltIn, PolicyFactory};
use crate::sim::Experiment;
use crate::time::Nanos;

/// Queries of a run whose delays are compared.
const DELAY_QUERIES: usize = 50_000;
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
}

/// The regret of each of these policies on `machine`; `done` hears of each policy's end.
///
/// # Errors
/// If estimates can't be made, a cost was not measured, or a policy can't be made for this machine.
pub fn regret(
    workload: &Workload,
    estimates: &Estimates,
    machine: &Machine,
    policies: &[BuiltIn],
    deadline: Nanos,
    seeds: &[u64],
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Regret>, LabError> {
    let mut found = Vec::new();
    for batches in [false, true] {
        let of_sort: Vec<BuiltIn> =
            policies.iter().filter(|policy| policy.kind.batches() == batches).cloned().collect();
        if of_sort.is_empty() {
            continue;
        }
        let workload = match batches {
            true => workload.clone(),
            false => Workload { batches: BatchModels::default(), ..workload.clone() },
        };
        let exact = experiment(&workload, &Estimates::Oracle, machine, deadline, seeds)?;
        let estimated = experiment(&workload, estimates, machine, deadline, seeds)?;
        let search =
            |experiment| CapacitySearch::new(experiment, Objective::default(), RunLength::Enough { at_least: 0 });
        let (of_exact, of_estimated) = (search(&exact)?, search(&estimated)?);
        for policy in &of_sort {
            let (exact_found, estimated_found) = (of_exact.of(policy)?.objective, of_estimated.of(policy)?.objective);
            let p99_ms = |experiment: &Experiment| {
                let rate_qps = LOAD * exact_found.qps;
                let played = play_all(experiment, &[policy as &dyn PolicyFactory], &[rate_qps], |_, _| true, &|| ())?;
                Ok::<f64, LabError>(crate::quantile::median(played.iter().map(|run| run.summary.p99_ms).collect()))
            };
            let (exact_p99_ms, estimated_p99_ms) =
                if exact_found.qps > 0.0 { (p99_ms(&exact)?, p99_ms(&estimated)?) } else { (f64::NAN, f64::NAN) };
            found.push(Regret {
                policy: policy.name().to_owned(),
                exact: exact_found,
                estimated: estimated_found,
                exact_p99_ms,
                estimated_p99_ms,
            });
            done();
        }
    }
    // In the order in which they were asked for.
    found.sort_by_key(|regret| policies.iter().position(|policy| policy.name() == regret.policy));
    Ok(found)
}

fn experiment(
    workload: &Workload,
    estimates: &Estimates,
    machine: &Machine,
    deadline: Nanos,
    seeds: &[u64],
) -> Result<Experiment, LabError> {
    Ok(Experiment {
        model: MachineModel { batches: workload.batches.batch_costs(), ..machine.clone().into() },
        queries: sim_queries(workload, estimates, machine)?,
        deadline,
        arrivals: draw_all(&ArrivalProcess::Poisson, seeds, DELAY_QUERIES, workload.rows.len()),
        cluster: None,
    })
}
