//! Comparison of a plan with all other plans of the catalogue, by simulations with other seeds.

use rayon::prelude::*;

use super::curve::{Group, groups};
use super::{Candidate, Plan, Question};
use crate::lab::{Judge, RunLength, StudyError};
use crate::sched::{BuiltIn, PolicyFactory};
use crate::sim::Arrivals;

/// Plans of more groups are not tried.
const MOST_GROUPS: usize = 1 << 16;

/// Results of simulations of a plan.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Whether the objective holds with the plan's policy, after the loss of the spare groups.
    pub holds: bool,
    /// The machine type, number of machines and price per hour of the cheapest plan that holds, with the spare groups.
    pub cheapest: Option<(String, usize, f64)>,
}

/// Plays the plan at the typical rate, and every number of groups of every type under every policy that may be cheaper.
///
/// # Errors
/// If estimates cannot be made, or a policy breaks its contract.
pub fn verify(
    question: &Question,
    candidates: &[Candidate],
    plan: &Plan,
    seeds: &[u64],
) -> Result<Verified, StudyError> {
    let groups = groups(question, &candidates.iter().collect::<Vec<_>>(), seeds)?;
    let mut holds = false;
    let mut cheapest: Option<(String, usize, f64)> = None;
    for group in &groups {
        let machine = &group.candidate.machine;
        if machine.name == plan.machine.name {
            let policy = question.policies.iter().find(|policy| policy.name() == plan.policy);
            holds = match policy {
                Some(policy) => serves(question, group, policy, plan.groups - question.spare)?,
                None => false,
            };
        }
        let Some(fewest) = fewest(question, group)? else { continue };
        let machines = (fewest + question.spare) * group.shards;
        let price = machine.price_per_hour * machines as f64;
        if cheapest.as_ref().is_none_or(|(_, _, least)| price < *least) {
            cheapest = Some((machine.name.clone(), machines, price));
        }
    }
    Ok(Verified { holds, cheapest })
}

/// The least number of groups that serve the typical rate under some policy, without spare ones.
fn fewest(question: &Question, group: &Group<'_>) -> Result<Option<usize>, StudyError> {
    let mut fewest = None;
    for policy in group.policies(question).into_iter().rev() {
        let mut fails = 0;
        let mut holds = match fewest {
            // Another policy matters only if it needs fewer groups.
            Some(known) if known > 1 && serves(question, group, policy, known - 1)? => known - 1,
            Some(_) => continue,
            None => {
                let mut tried = 1;
                while tried <= MOST_GROUPS && !serves(question, group, policy, tried)? {
                    (fails, tried) = (tried, 2 * tried);
                }
                if tried > MOST_GROUPS {
                    continue;
                }
                tried
            }
        };
        while holds - fails > 1 {
            let middle = fails + (holds - fails) / 2;
            if serves(question, group, policy, middle)? { holds = middle } else { fails = middle }
        }
        fewest = Some(holds);
    }
    Ok(fewest)
}

/// Whether this number of groups serves the typical rate in most of the runs.
fn serves(question: &Question, group: &Group<'_>, policy: &BuiltIn, groups: usize) -> Result<bool, StudyError> {
    let (experiment, objective) = group.within(question, 1.0);
    let criterion = objective.within(experiment.deadline);
    let rate_qps = question.demand.typical_qps() * question.growth / groups as f64 * group.scale;
    // Shorter runs do not distinguish a load of 1 from one below it.
    let count = RunLength::default().confirmed(&criterion, rate_qps).div_ceil(experiment.arrivals.len());
    let holds = |arrivals: &Arrivals| {
        let judge = Judge::new(criterion, count, rate_qps);
        let judge = experiment.play(policy, rate_qps, &arrivals.first(count), judge, |judge| judge.is_lost(0))?;
        Ok(!judge.is_lost(0) && judge.verdict().holds())
    };
    let held = experiment.arrivals.par_iter().map(holds).collect::<Result<Vec<bool>, StudyError>>()?;
    Ok(2 * held.iter().filter(|&&held| held).count() > held.len())
}
