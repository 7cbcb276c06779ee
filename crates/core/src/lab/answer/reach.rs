//! Which policies may turn out to be the best.

use super::{Question, Steps};
use crate::lab::{Calibration, CapacitySearch, LabError, Node, Progress, RunLength, draw_all};
use crate::sched::PolicyFactory;

/// A policy is near the best if it sustains this share of what that does, with what queries cost alone: serving others
/// makes them dearer for all policies alike, to a tenth or so.
const NEAR: f64 = 0.8;
/// No more policies than this are looked at closely.
const MOST: usize = 3;

/// By policy, what it sustains with what queries cost alone, by the first seed.
pub(super) fn quick_capacities(
    node: &Node,
    policies: &[&dyn PolicyFactory],
    question: &Question,
    progress: &dyn Progress,
) -> Result<Vec<f64>, LabError> {
    let steps = Steps::new(progress, "simulating every policy", policies.len());
    let found = quick_capacity(node, policies, None, question, &|| steps.done())?;
    progress.end();
    Ok(found)
}

/// By policy, what it sustains with what queries cost by a calibration, by the first seed. `done` is called for each.
pub(super) fn quick_capacity(
    node: &Node,
    policies: &[&dyn PolicyFactory],
    calibration: Option<&Calibration>,
    question: &Question,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<f64>, LabError> {
    let Some(first) = question.seeds.get(..1) else { return Err(LabError::NothingToSchedule) };
    let arrivals = draw_all(&question.process, first, 0, node.workload().rows.len());
    let experiment = node.experiment(calibration, arrivals, question.deadline);
    let search = CapacitySearch::new(&experiment, question.objective, RunLength::default())?;
    Ok(search.estimate_capacity_coarse(policies, done)?)
}

/// Positions of those near the best, the best first, and of the others.
pub(super) fn within_reach(coarse_qps: &[f64]) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..coarse_qps.len()).collect();
    order.sort_by(|&a, &b| coarse_qps[b].total_cmp(&coarse_qps[a]));
    let best = order.first().map_or(0.0, |&best| coarse_qps[best]);
    let near = order.iter().take_while(|&&one| coarse_qps[one] >= NEAR * best).count().min(MOST);
    let others = order.split_off(near);
    (order, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_three_that_come_near_the_best_are_looked_at_closely() {
        assert_eq!(within_reach(&[50.0, 100.0, 79.0, 80.0]), (vec![1, 3], vec![2, 0]));
        assert_eq!(within_reach(&[97.0, 100.0, 98.0, 99.0]), (vec![1, 3, 2], vec![0]));
        // Where no rate is low enough for any, all are equal.
        assert_eq!(within_reach(&[0.0, 0.0]).0, [0, 1]);
        assert_eq!(within_reach(&[]), (vec![], vec![]));
    }
}
