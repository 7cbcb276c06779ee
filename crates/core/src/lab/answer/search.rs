//! The live search between a rate that held and a higher rate that failed.
//!
//! ```text
//!   start ── held ──▶ up 5, 10, 20 % ...  until one misses ─┐
//!        └─ missed ─▶ down 5, 10, 20 % ... until one holds ─┴─▶ bisect to the width asked for ─▶ repeat each side
//! ```
//!
//! The majority of the runs at a rate decides its side. A side is settled once enough runs agree. If a rate turns out
//! to be on the other side, the search continues there.

use super::Effort;

/// Lowest rate that is tried, as a share of the starting rate.
const LOWEST: f64 = 0.02;

/// The live runs at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Arrival rate, in queries per second.
    pub qps: f64,
    /// Number of runs that held.
    pub held: u32,
    /// Number of runs that failed.
    pub missed: u32,
}

impl Side {
    /// Number of runs at this rate.
    #[must_use]
    pub fn runs(&self) -> u32 {
        self.held + self.missed
    }
}

/// The state of the search: all driven rates.
#[derive(Clone, Debug)]
pub struct LiveSearch {
    start_qps: f64,
    effort: Effort,
    /// Largest relative distance between the sides: the requested one, or the drift of the machine.
    apart: f64,
    /// The driven rates in ascending order.
    rates: Vec<Side>,
}

impl LiveSearch {
    /// A search from this rate.
    #[must_use]
    pub fn new(start_qps: f64, effort: Effort) -> Self {
        Self { start_qps, effort, apart: effort.apart, rates: Vec::new() }
    }

    /// Sets the drift of the machine's speed; the sides need not be closer than this share.
    pub fn drifts(&mut self, share: f64) {
        self.apart = share.max(self.effort.apart);
    }

    /// Notes whether a run at a rate held.
    pub fn note(&mut self, qps: f64, holds: bool) {
        let at = self.rates.partition_point(|rate| rate.qps < qps);
        if self.rates.get(at).is_none_or(|rate| rate.qps != qps) {
            self.rates.insert(at, Side { qps, ..Side::default() });
        }
        let rate = &mut self.rates[at];
        if holds { rate.held += 1 } else { rate.missed += 1 }
    }

    /// The lowest rate at which most runs failed.
    fn missed(&self) -> Option<Side> {
        self.rates.iter().find(|rate| rate.missed > rate.held).copied()
    }

    /// The highest rate below [`missed`](Self::missed) at which most runs held.
    fn held(&self) -> Option<Side> {
        let below = self.missed().map_or(f64::INFINITY, |missed| missed.qps);
        self.rates.iter().rev().find(|rate| rate.held > rate.missed && rate.qps < below).copied()
    }

    /// Whether enough runs at this rate agree.
    fn is_settled(&self, side: &Side) -> bool {
        side.held.max(side.missed) >= self.effort.needed && (!self.effort.all || side.runs() >= self.effort.of)
    }

    /// The settled sides: a rate that held, and a higher rate that failed.
    #[must_use]
    pub fn sides(&self) -> (Option<Side>, Option<Side>) {
        let settled = |side: Option<Side>| side.filter(|side| self.is_settled(side));
        (settled(self.held()), settled(self.missed()))
    }

    /// The next rate to drive with `left` runs to go; `None` if both sides are settled, or no rate is low enough.
    #[must_use]
    pub fn next(&self, left: u32) -> Option<f64> {
        if left == 0 {
            return None;
        }
        // A tie between the runs at a rate needs one more run.
        if let Some(open) = self.rates.iter().find(|rate| rate.held == rate.missed && rate.runs() < self.effort.of) {
            return Some(open.qps);
        }
        let (held, missed) = match (self.held(), self.missed()) {
            (None, None) => return Some(self.start_qps),
            (Some(held), None) => {
                let above = self.rates.iter().filter(|rate| rate.qps > self.start_qps).count();
                return Some(held.qps * (1.0 + self.step(above)));
            }
            (None, Some(missed)) => {
                let below = self.rates.iter().filter(|rate| rate.qps < self.start_qps).count();
                let lower = missed.qps / (1.0 + self.step(below));
                return (lower >= LOWEST * self.start_qps).then_some(lower);
            }
            (Some(held), Some(missed)) => (held, missed),
        };
        let lacks = |side: &Side| {
            let agree = self.effort.needed.saturating_sub(side.held.max(side.missed));
            if self.effort.all { self.effort.of.saturating_sub(side.runs()).max(agree) } else { agree }
        };
        if missed.qps > held.qps * (1.0 + self.apart) * (1.0 + 1e-9) && left > lacks(&held) + lacks(&missed) {
            return Some((held.qps * missed.qps).sqrt());
        }
        [held, missed].iter().find(|side| lacks(side) > 0).map(|side| side.qps)
    }

    /// The relative distance to the next rate after `before` rates on that side.
    fn step(&self, before: usize) -> f64 {
        self.effort.apart * 2_f64.powi(before.min(4) as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    /// Searches a machine on which a run holds as `holds` says; returns the sides and the number of runs.
    fn searched(start_qps: f64, most: u32, mut holds: impl FnMut(f64) -> bool) -> (Option<Side>, Option<Side>, u32) {
        let mut search = LiveSearch::new(start_qps, Effort::usual());
        let mut runs = 0;
        while let Some(qps) = search.next(most - runs) {
            search.note(qps, holds(qps));
            runs += 1;
        }
        let (held, missed) = search.sides();
        (held, missed, runs)
    }

    #[test]
    fn both_sides_are_found_from_anywhere_and_each_by_two_runs() {
        for start_qps in [1000.0, 1040.0, 1300.0, 700.0, 3000.0] {
            let (held, missed, runs) = searched(start_qps, 99, |qps| qps <= 1000.0);
            let (held, missed) = (held.unwrap(), missed.unwrap());
            assert!(held.qps <= 1000.0 && 1000.0 < missed.qps, "{held:?} {missed:?}");
            assert!(missed.qps <= 1.05001 * held.qps, "{held:?} {missed:?}");
            assert_eq!((held.held, held.missed, missed.held, missed.missed), (2, 0, 0, 2));
            assert!(runs <= 14, "{runs} from {start_qps}");
        }
        // An accurate prediction needs four runs.
        assert_eq!(searched(990.0, 99, |qps| qps <= 1000.0).2, 4);
    }

    #[test]
    fn one_disturbed_run_changes_no_side() {
        for disturbed in 0..6 {
            let mut run = 0;
            let (held, missed, _) = searched(1000.0, 99, |qps| {
                run += 1;
                (qps <= 1000.0) != (run - 1 == disturbed)
            });
            let (held, missed) = (held.unwrap(), missed.unwrap());
            assert!(
                held.qps <= 1000.0 && missed.qps > 1000.0 && missed.qps < 1120.0,
                "{disturbed}: {held:?} {missed:?}"
            );
        }
    }

    #[test]
    fn a_noisy_machine_is_searched_to_an_end_and_its_sides_are_majorities() {
        let mut random = Random::new(7, 0);
        for _ in 0..200 {
            let (held, missed, runs) = searched(1200.0, 40, |qps| qps * (0.9 + 0.2 * random.unit()) <= 1000.0);
            assert!(runs <= 40);
            if let (Some(held), Some(missed)) = (held, missed) {
                assert!(held.qps < missed.qps && held.held >= 2 && missed.missed >= 2, "{held:?} {missed:?}");
            }
        }
    }

    #[test]
    fn time_that_runs_out_goes_to_repeats_and_no_rate_that_holds_is_no_answer() {
        let (held, missed, runs) = searched(2000.0, 9, |qps| qps <= 1000.0);
        assert!(held.is_some() && missed.is_some() && runs <= 9, "{held:?} {missed:?} {runs}");
        assert_eq!(searched(1000.0, 99, |_| false).0, None);
        assert_eq!(searched(1000.0, 0, |_| true), (None, None, 0));
    }

    #[test]
    fn proof_takes_all_runs_on_both_sides_and_drift_widens_the_sides() {
        let mut search = LiveSearch::new(1000.0, Effort::proof());
        while let Some(qps) = search.next(99) {
            search.note(qps, qps <= 1000.0);
        }
        let (held, missed) = search.sides();
        assert_eq!((held.unwrap().runs(), missed.unwrap().runs()), (5, 5));
        assert!(missed.unwrap().qps <= 1.02501 * held.unwrap().qps);
        let mut search = LiveSearch::new(1000.0, Effort::usual());
        search.note(1000.0, true);
        search.note(1100.0, false);
        assert!(search.next(99).is_some_and(|qps| qps > 1000.0 && qps < 1100.0));
        search.drifts(0.12);
        assert_eq!(search.next(99), Some(1000.0));
    }
}
