//! The dispatcher's time in a run.

use std::sync::Arc;

use super::lanes::interpolated;
use super::{DispatcherProfile, PauseClock, Pauses, RoundCost};
use crate::base::random::NodeSeed;
use crate::base::time::Nanos;
use crate::cost::Decisions;

/// All costs of the dispatcher under a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DispatcherTime {
    /// Costs of its rounds.
    pub decisions: Decisions,
    /// Pauses of its core.
    pauses: Option<Arc<Pauses>>,
}

impl From<Decisions> for DispatcherTime {
    /// Costs without variation.
    fn from(decisions: Decisions) -> Self {
        Self { decisions, ..Self::default() }
    }
}

impl DispatcherTime {
    /// Whether rounds with equal events take equal times.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.pauses.is_none()
    }

    /// Adds pauses of the core that the dispatcher runs on.
    #[must_use]
    pub fn with_pauses(self, pauses: Option<Arc<Pauses>>) -> Self {
        Self { pauses, ..self }
    }

    /// The times of the rounds of a node in a run.
    #[must_use]
    pub fn clock(&self, seed: NodeSeed) -> DispatcherClock {
        let pauses = self.pauses.as_ref().map(|pauses| PauseClock::new(pauses, 0, seed));
        DispatcherClock { decisions: self.decisions, pauses }
    }
}

/// The times of consecutive rounds.
#[derive(Clone, Debug)]
pub struct DispatcherClock {
    decisions: Decisions,
    pauses: Option<PauseClock>,
}

impl DispatcherClock {
    /// The end of the round that begins at `now`, with these numbers of arrivals or wake-ups, ended batches, and answered
    /// queries.
    #[inline(always)]
    pub fn end_of_round(&mut self, now: Nanos, arrivals: u32, batches: u32, answers: u32) -> Nanos {
        let time = self.decisions.of(arrivals, batches, answers);
        self.pauses.as_mut().map_or(now + time, |pauses| pauses.end_of(now, time))
    }
}

impl DispatcherProfile {
    /// The costs on a machine with this number of lanes, under a policy of this name.
    #[must_use]
    pub fn time(&self, lanes: usize, policy: &str) -> DispatcherTime {
        let at = |value: fn(&RoundCost) -> f64| {
            let cost = |point: &super::DispatcherCosts| value(point.policies.get(policy).unwrap_or(&point.any));
            let points = self.costs.iter().map(|point| (f64::from(point.lanes), cost(point)));
            Nanos(interpolated(points, lanes as f64).unwrap_or(0.0).round() as u64)
        };
        let decisions = Decisions {
            round: at(|cost| cost.round_ns),
            arrival: at(|cost| cost.arrival_ns),
            batch: at(|cost| cost.batch_ns),
            answer: at(|cost| cost.answer_ns),
        };
        decisions.into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::DispatcherCosts;
    use super::*;

    #[test]
    fn costs_are_interpolated_by_lanes() {
        let cost = |ns| RoundCost { round_ns: ns, arrival_ns: ns / 2.0, batch_ns: ns, answer_ns: ns / 4.0 };
        let at = |lanes, any, slow| DispatcherCosts {
            lanes,
            any: cost(any),
            policies: BTreeMap::from([(String::from("slow"), cost(slow))]),
        };
        let costs = vec![at(1, 100.0, 400.0), at(3, 200.0, 800.0)];
        let profile = DispatcherProfile { costs, ..DispatcherProfile::default() };
        let decisions =
            |ns| Decisions { round: Nanos(ns), arrival: Nanos(ns / 2), batch: Nanos(ns), answer: Nanos(ns / 4) };
        assert_eq!(profile.time(2, "any").decisions, Decisions { answer: Nanos(38), ..decisions(150) });
        assert_eq!(profile.time(2, "slow").decisions, decisions(600));
        let seed = NodeSeed::default();
        assert_eq!(
            profile.time(2, "slow").clock(seed).end_of_round(Nanos::ZERO, 2, 1, 3),
            Nanos(600 + 600 + 600 + 450)
        );
    }
}
