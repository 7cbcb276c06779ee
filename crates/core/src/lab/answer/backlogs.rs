//! What queries cost while others are served, and how sure that is.

use super::reach::quick_capacity;
use super::{Question, Steps};
use crate::base::machine::{Class, Machine};
use crate::lab::{Calibration, LabError, Node, Progress};
use crate::live;
use crate::sched::PolicyFactory;

/// Backlogs of each policy.
const BACKLOGS: u64 = 5;
/// Backlogs disagree if the second slowest is this many times as slow as the second fastest: the median is then no surer.
const AGREEMENT: f64 = 1.1;

/// How far apart backlogs are, on one class of processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disagreement {
    /// The class.
    pub class: Class,
    /// What queries cost in the fastest backlog, over what they cost alone,
    pub least: f64,
    /// and in the slowest.
    pub most: f64,
}

/// Serves backlogs under each policy, in turns, so that a machine whose speed drifts is as slow to one as to another. A first
/// one, of more queries than any policy can serve, tells roughly what it sustains; the others, which count, come a tenth
/// faster than that.
pub(super) fn serve(
    node: &mut Node,
    policies: &[&dyn PolicyFactory],
    question: &Question,
    progress: &dyn Progress,
) -> Result<Vec<Vec<Calibration>>, LabError> {
    let seed = question.seeds.last().map_or(0, |seed| seed.wrapping_add(1));
    let rounds = BACKLOGS as usize + 1;
    let steps = Steps::new(progress, "what queries cost while others are served", policies.len() * rounds);
    let mut sustained_qps: Vec<Option<f64>> = Vec::with_capacity(policies.len());
    for &policy in policies {
        let flooded = node.calibrate(policy, None, seed.wrapping_add(BACKLOGS))?;
        let known = node.model().is_exact().then_some(&flooded);
        let roughly_qps = quick_capacity(node, &[policy], known, question, &|| ())?;
        sustained_qps.push(roughly_qps.first().copied().filter(|&qps| qps > 0.0));
        steps.done();
    }
    let mut served: Vec<Vec<Calibration>> = vec![Vec::new(); policies.len()];
    for round in 0..BACKLOGS {
        for ((&policy, served), &sustained_qps) in policies.iter().zip(&mut served).zip(&sustained_qps) {
            if !live::interrupted() {
                served.push(node.calibrate(policy, sustained_qps, seed.wrapping_add(round))?);
            }
            steps.done();
        }
    }
    progress.end();
    Ok(served)
}

/// The classes on which they disagree.
pub(super) fn disagreements(machine: &Machine, backlogs: &[Calibration]) -> Vec<Disagreement> {
    let of = |class: Class| {
        let mut slowdowns: Vec<f64> = backlogs.iter().map(|one| one.slowest(class)).collect();
        slowdowns.sort_by(f64::total_cmp);
        let [least, second, .., before_last, most] = slowdowns[..] else { return None };
        (before_last > AGREEMENT * second).then_some(Disagreement { class, least, most })
    };
    machine.classes().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::machine::PerClass;
    use crate::base::time::Nanos;

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
