//! Predictions before the live runs: the policies near the best, query costs under load, and the resulting capacities.

use rayon::prelude::*;
use tandem_model::base::machine::{Class, Machine};
use tandem_model::sched::PolicyFactory;
use tandem_model::sim::Experiment;
use tandem_model::study::forecast::Forecast;
use tandem_model::study::forecast::{forecast, simulated};
use tandem_model::study::interval::scatter;
use tandem_model::study::{Capacity, CapacitySearch, Progress, RunLength, StudyError, Summary, draw_all};

use super::drive::{Driven, DrivenRun};
use super::{Answer, Prediction, Question, Scope, Steps, go_on};
use crate::lab::{Calibration, LabError, Node, ServiceRow, ServiceRun};

/// Number of backlogs per policy.
const BACKLOGS: u64 = 5;
/// Backlogs disagree if the second slowest exceeds the second fastest by this factor. The median is then uncertain.
const AGREEMENT: f64 = 1.1;
/// A policy is near the best if it sustains this share of the best capacity, with query costs alone. Load raises the
/// costs of all policies by about the same factor, to a tenth.
const NEAR: f64 = 0.8;
/// Most policies that are simulated in detail.
const MOST: usize = 3;

/// The range of backlogs on one class of processors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disagreement {
    /// The class.
    pub class: Class,
    /// The slowdown in the fastest backlog, relative to query costs alone.
    pub least: f64,
    /// The slowdown in the slowest backlog, relative to query costs alone.
    pub most: f64,
}

pub(super) struct Predicted<'p> {
    pub(super) policy: &'p dyn PolicyFactory,
    pub(super) prediction: Prediction,
}

/// The policies to drive, the best first.
pub(super) fn predict<'p>(
    node: &mut Node,
    policies: &[&'p dyn PolicyFactory],
    question: &Question,
    scope: Scope,
    progress: &dyn Progress,
    answer: &mut Answer,
) -> Result<Vec<Predicted<'p>>, LabError> {
    let near: Vec<&dyn PolicyFactory> = match scope {
        Scope::All => policies.to_vec(),
        Scope::Best => {
            let coarse_qps = quick_capacities(node, policies, question, progress)?;
            let (near, out_of_reach) = within_reach(&coarse_qps);
            answer.out_of_reach =
                out_of_reach.into_iter().map(|i| (policies[i].name().to_owned(), coarse_qps[i])).collect();
            near.into_iter().map(|i| policies[i]).collect()
        }
    };
    go_on()?;
    let backlogs = serve_backlogs(node, &near, question, progress, &mut answer.service)?;
    for (policy, backlogs) in near.iter().zip(&backlogs) {
        let found = disagreements(node.machine(), backlogs);
        answer.disagreements.extend(found.into_iter().map(|one| (policy.name().to_owned(), one)));
    }
    let calibrations: Vec<Calibration> = if one_service(node) {
        // All backlogs measure equal costs, and a common median weakens interference with a few of them.
        vec![Calibration::median(&backlogs.concat()); near.len()]
    } else {
        backlogs.iter().map(|several| Calibration::median(several)).collect()
    };
    let has_machine_profile = !node.model().is_exact();
    let arrivals = draw_all(&question.process, &question.seeds, 0, node.predicted_rows().len());
    let rehearsal = |one| node.simulated().rehearsal(one, arrivals.clone(), question.deadline);
    let rehearsals = calibrations.iter().map(rehearsal);
    let rehearsed = simulate(&near, rehearsals.collect(), question, progress)?;
    let found = match has_machine_profile {
        true => {
            let adapted = calibrations.iter().map(|one| experiment(node, Some(one), question, &question.seeds));
            simulate(&near, adapted.collect(), question, progress)?
        }
        false => rehearsed.clone(),
    };
    let speed_sds = backlogs.iter().map(|several| {
        let speeds: Vec<f64> = several.iter().map(Calibration::slowest_of_all).collect();
        scatter(&speeds)
    });
    let costs = calibrations.iter().zip(speed_sds);
    let mut predicted: Vec<Predicted<'_>> = near
        .into_iter()
        .zip(costs)
        .zip(found.into_iter().zip(&rehearsed))
        .map(|((policy, (&backlogs, speed_sd)), (capacity, rehearsal))| {
            let (rehearsal_qps, linear_qps) = (Some(rehearsal.qps), node.simulated().linear_qps(policy));
            let prediction =
                Prediction { capacity, backlogs, has_machine_profile, speed_sd, rehearsal_qps, linear_qps };
            Predicted { policy, prediction }
        })
        .collect();
    if scope == Scope::Best {
        predicted.sort_by(|a, b| b.prediction.qps().total_cmp(&a.prediction.qps()));
    }
    answer.capacities = predicted.iter().map(|one| one.prediction.capacity.clone()).collect();
    Ok(predicted)
}

/// The capacity of each policy with query costs alone, for the first seed.
fn quick_capacities(
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

/// The capacity of each policy with calibrated costs, for the first seed. `done` is called for each policy.
fn quick_capacity(
    node: &Node,
    policies: &[&dyn PolicyFactory],
    calibration: Option<&Calibration>,
    question: &Question,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<f64>, LabError> {
    let Some(first) = question.seeds.get(..1) else { return Err(StudyError::NothingToSchedule.into()) };
    let experiment = experiment(node, calibration, question, first);
    let search = CapacitySearch::new(&experiment, question.objective, RunLength::default())?;
    Ok(search.estimate_capacity_coarse(policies, done)?)
}

/// The simulated node with the queries that predictions may use.
fn experiment(node: &Node, calibration: Option<&Calibration>, question: &Question, seeds: &[u64]) -> Experiment {
    let arrivals = draw_all(&question.process, seeds, 0, node.predicted_rows().len());
    node.experiment(calibration, arrivals, question.deadline)
}

/// Indices of the policies near the best, the best first, and of the others.
fn within_reach(coarse_qps: &[f64]) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..coarse_qps.len()).collect();
    order.sort_by(|&a, &b| coarse_qps[b].total_cmp(&coarse_qps[a]));
    let best = order.first().map_or(0.0, |&best| coarse_qps[best]);
    let near = order.iter().take_while(|&&one| coarse_qps[one] >= NEAR * best).count().min(MOST);
    let others = order.split_off(near);
    (order, others)
}

/// Serves backlogs under each policy in turns, so that drift of the machine affects all policies. The first backlog
/// floods the node and yields a rough capacity. The others count, and arrive a tenth faster than this capacity.
fn serve_backlogs(
    node: &mut Node,
    policies: &[&dyn PolicyFactory],
    question: &Question,
    progress: &dyn Progress,
    service: &mut Vec<ServiceRow>,
) -> Result<Vec<Vec<Calibration>>, LabError> {
    let began = std::time::Instant::now();
    let seed = question.seeds.last().map_or(0, |seed| seed.wrapping_add(1));
    let rounds = BACKLOGS as usize + 1;
    let steps = Steps::new(progress, "query costs while others are served", policies.len() * rounds);
    let mut sustained_qps: Vec<Option<f64>> = Vec::with_capacity(policies.len());
    for &policy in policies {
        let (_, flooded) = node.serve_backlog(policy, None, seed.wrapping_add(BACKLOGS))?;
        go_on()?;
        let flooded = node.calibration(&flooded);
        let roughly_qps = quick_capacity(node, &[policy], Some(&flooded), question, &|| ())?;
        sustained_qps.push(roughly_qps.first().copied().filter(|&qps| qps > 0.0));
        steps.done();
    }
    let mut served: Vec<Vec<Calibration>> = vec![Vec::new(); policies.len()];
    for round in 0..BACKLOGS {
        for ((&policy, served), &sustained_qps) in policies.iter().zip(&mut served).zip(&sustained_qps) {
            let (rate_qps, outcome) = node.serve_backlog(policy, sustained_qps, seed.wrapping_add(round))?;
            // A partial backlog is useless.
            go_on()?;
            let found = node.calibration(&outcome);
            let run = (ServiceRun::Backlog, rate_qps);
            service.push(ServiceRow::of(policy.name(), began.elapsed(), run, outcome.log.rows.len(), &found));
            served.push(found);
            steps.done();
        }
    }
    progress.end();
    Ok(served)
}

/// The classes on which the backlogs disagree.
fn disagreements(machine: &Machine, backlogs: &[Calibration]) -> Vec<Disagreement> {
    let of = |class: Class| {
        let mut slowdowns: Vec<f64> = backlogs.iter().map(|one| one.slowest(class)).collect();
        slowdowns.sort_by(f64::total_cmp);
        let [least, second, .., before_last, most] = slowdowns[..] else { return None };
        (before_last > AGREEMENT * second).then_some(Disagreement { class, least, most })
    };
    machine.classes().filter_map(of).collect()
}

/// Whether query costs are equal under every policy: there is one class and no batches.
fn one_service(node: &Node) -> bool {
    node.machine().classes().count() == 1 && node.model().batches.iter().all(|(_, batches)| batches.is_none())
}

/// The capacity of each policy in its experiment; policies run in parallel.
fn simulate(
    policies: &[&dyn PolicyFactory],
    experiments: Vec<Experiment>,
    question: &Question,
    progress: &dyn Progress,
) -> Result<Vec<Capacity>, LabError> {
    let steps = Steps::new(progress, "simulating policies", policies.len() * (question.seeds.len() + 1));
    let of = |(experiment, &policy): (&Experiment, &&dyn PolicyFactory)| {
        let search = CapacitySearch::new(experiment, question.objective, RunLength::default())?.of_sampled_queries();
        let mut found = search.of_all(&[policy], &|| steps.done())?;
        steps.done();
        Ok(found.remove(0))
    };
    let found: Vec<Result<Capacity, LabError>> = experiments.par_iter().zip(policies).map(of).collect();
    progress.end();
    found.into_iter().collect()
}

/// The forecast of a run, and its rehearsal.
type Simulated = (Option<Forecast>, Option<Summary>);

/// Forecasts each live run with the prediction's costs, other arrivals and the queries that predictions may use.
pub(super) fn forecast_runs(
    node: &Node,
    predicted: &Predicted<'_>,
    question: &Question,
    driven: &mut Driven,
) -> Result<(), LabError> {
    let Predicted { policy, prediction } = predicted;
    let known = node.experiment(Some(&prediction.backlogs), Vec::new(), question.deadline);
    let rehearsal = node.simulated().rehearsal(&prediction.backlogs, Vec::new(), question.deadline);
    let of = |run: &DrivenRun| {
        let planned = run.planned(&question.process, prediction.speed_sd);
        let found = forecast(&known, *policy, planned)?;
        let rehearsed = match (prediction.has_machine_profile, &found) {
            (true, _) => simulated(&rehearsal, *policy, planned)?,
            (false, found) => found.as_ref().map(|found| found.summary),
        };
        Ok((found, rehearsed))
    };
    let found: Vec<Result<Simulated, LabError>> = driven.runs.par_iter().map(of).collect();
    for (run, found) in driven.runs.iter_mut().zip(found) {
        (run.predicted, run.rehearsed) = found?;
    }
    Ok(())
}

/// The capacity with the query costs of the last run that held at the answer: its error belongs to the simulator.
pub(super) fn hindsight_qps(
    node: &Node,
    policy: &dyn PolicyFactory,
    question: &Question,
    driven: &Driven,
) -> Result<Option<f64>, LabError> {
    let at_answer = |run: &&DrivenRun| driven.held.is_some_and(|held| held.qps == run.qps) && run.verdict.holds();
    let run = driven.runs.iter().rev().find(at_answer);
    let Some((run, first)) = run.zip(question.seeds.get(..1)) else { return Ok(None) };
    let experiment = experiment(node, Some(&run.service), question, first);
    let search = CapacitySearch::new(&experiment, question.objective, RunLength::default())?;
    Ok(Some(search.of(policy)?.qps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::base::machine::PerClass;
    use tandem_model::base::time::Nanos;

    #[test]
    fn at_most_three_that_come_near_the_best_are_looked_at_closely() {
        assert_eq!(within_reach(&[50.0, 100.0, 79.0, 80.0]), (vec![1, 3], vec![2, 0]));
        assert_eq!(within_reach(&[97.0, 100.0, 98.0, 99.0]), (vec![1, 3, 2], vec![0]));
        // If no policy sustains any rate, all are equal.
        assert_eq!(within_reach(&[0.0, 0.0]).0, [0, 1]);
        assert_eq!(within_reach(&[]), (vec![], vec![]));
    }

    #[test]
    fn one_disturbed_backlog_of_five_is_no_disagreement_and_two_are() {
        let told = |cpu: [f64; 5]| {
            let one = |slowdown| Calibration {
                slowdown: PerClass::two(slowdown, 1.0),
                device: PerClass::two(1.0, 1.0),
                host: PerClass::two(1.0, 1.0),
                handoff: PerClass::default(),
                decision: Nanos::ZERO,
            };
            disagreements(&Machine::new(2, 1), &cpu.map(one))
        };
        assert_eq!(told([1.0, 1.05, 1.02, 3.0, 1.1]), []);
        let expected = Disagreement { class: Class::CPU, least: 1.0, most: 3.0 };
        assert_eq!(told([1.2, 3.0, 1.05, 1.0, 1.05]), [expected]);
    }
}
