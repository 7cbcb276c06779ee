//! The dispatcher's costs from a machine file, ready for use.

use std::collections::BTreeSet;

use super::draws::interpolated;
use super::stalls::DispatcherStalls;
use super::{DispatcherFile, DispatcherRounds, RoundCost};
use crate::base::time::Nanos;
use crate::cost::Decisions;

/// The dispatcher's costs on a machine with a given number of lanes, from a [`DispatcherFile`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DispatcherCosts {
    any: Decisions,
    policies: Vec<(String, Decisions)>,
    stalls: DispatcherStalls,
}

impl DispatcherCosts {
    pub(super) fn new(file: &DispatcherFile, lanes: usize) -> Self {
        let between = |of: &dyn Fn(&DispatcherRounds) -> Option<RoundCost>| {
            let at = |value: fn(&RoundCost) -> f64| {
                let points = file.rounds.iter().filter_map(|point| Some((f64::from(point.lanes), value(&of(point)?))));
                Nanos(interpolated(points, lanes as f64).unwrap_or(0.0).round() as u64)
            };
            Decisions {
                round: at(|cost| cost.round_ns),
                arrival: at(|cost| cost.arrival_ns),
                batch: at(|cost| cost.batch_ns),
                answer: at(|cost| cost.answer_ns),
            }
        };
        let names: BTreeSet<&String> = file.rounds.iter().flat_map(|point| point.policies.keys()).collect();
        let policies =
            names.into_iter().map(|name| (name.clone(), between(&|point| point.policies.get(name).copied())));
        Self {
            any: between(&|point| Some(point.any)),
            policies: policies.collect(),
            stalls: DispatcherStalls::new(&file.stalls),
        }
    }

    /// Stalls of the dispatcher's core.
    #[must_use]
    pub fn stalls(&self) -> &DispatcherStalls {
        &self.stalls
    }

    /// The costs of decisions under a policy of this name.
    #[must_use]
    pub fn of(&self, policy: &str) -> Decisions {
        self.policies.iter().find(|(name, _)| name == policy).map_or(self.any, |&(_, costs)| costs)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_policy_that_is_not_named_costs_the_dispatcher_what_any_does() {
        let cost = |ns| RoundCost { round_ns: ns, arrival_ns: ns / 2.0, batch_ns: ns, answer_ns: ns / 4.0 };
        let at = |lanes, any, slow| DispatcherRounds {
            lanes,
            any: cost(any),
            policies: BTreeMap::from([(String::from("slow"), cost(slow))]),
        };
        let rounds = vec![at(1, 100.0, 400.0), at(3, 200.0, 800.0)];
        let file = DispatcherFile { rounds, ..DispatcherFile::default() };
        let costs = DispatcherCosts::new(&file, 2);
        let decisions =
            |ns| Decisions { round: Nanos(ns), arrival: Nanos(ns / 2), batch: Nanos(ns), answer: Nanos(ns / 4) };
        assert_eq!(costs.of("any"), Decisions { answer: Nanos(38), ..decisions(150) });
        assert_eq!(costs.of("slow"), decisions(600));
        assert_eq!(costs.of("slow").finish(3), Nanos(600 + 3 * 150));
    }
}
