//! The live search between a rate that held and a higher rate that failed.
//!
//! ```text
//!   start ── held ──▶ up 5, 10, 20 % ...  until one misses ─┐
//!        └─ missed ─▶ down 5, 10, 20 % ... until one holds ─┴─▶ bisect to the width asked for ─▶ repeat each side
//! ```
//!
//! The majority of the runs at a rate decides its side; of as many that held and missed, the misses. A side is settled once
//! enough runs agree. If a rate turns out to be on the other side, the search continues there.
//!
//! A run that missed only because the machine [paused](crate::lab::is_paused) is driven again, up to five times: three of
//! them decide. A run that misses otherwise ends this. If pauses decide at the start, the next rate is a fifth of it. If they
//! decide there, too, no rate holds, whatever its load: the policy is *pause-limited*.
//!
//! With a [precision](Effort::precision) the search is sequential. All runs together say where the capacity may be: a run
//! holds with a probability that falls from 1 to 0 around it, over a width that is not known either. The next run is at the
//! median of the capacity, where it says most. The search ends when the 90 % interval is as narrow as asked for.

use super::Effort;

/// Lowest rate that is tried, as a share of the starting rate.
const LOWEST: f64 = 0.02;

/// Most runs at a rate of which one was paused; the majority decides.
const MOST_PAUSED: u32 = 5;
/// The share of the starting rate at which pauses decide about all rates.
const PAUSED_SHARE: f64 = 0.2;

/// Scale of the prior: half of all predictions are wrong by less than this, as a logarithm. Large errors stay possible.
const PRIOR: f64 = 0.3;
/// Widths over which runs hold or miss by chance, as scales of a logistic curve.
const WIDTHS: [f64; 5] = [0.005, 0.015, 0.03, 0.06, 0.12];
/// The share of the runs that say nothing of their rate.
const STRAY: f64 = 0.04;
/// Capacities that are looked at: up to this factor from the start, as a logarithm, in steps.
const REACH: f64 = 4.0;
const STEP: f64 = 0.0025;

/// The vote of a run on its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// It met the objective.
    Held,
    /// It did not.
    Missed,
    /// It did not, because the machine paused.
    Paused,
}

/// The live runs at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Arrival rate, in queries per second.
    pub qps: f64,
    /// Number of runs that held.
    pub held: u32,
    /// Number of runs that failed, paused ones included.
    pub missed: u32,
    /// Number of runs that failed because the machine paused.
    pub paused: u32,
}

impl Side {
    /// Number of runs at this rate.
    #[must_use]
    pub fn runs(&self) -> u32 {
        self.held + self.missed
    }

    /// Whether pauses leave open on which side it is.
    fn is_open(&self) -> bool {
        let majority = MOST_PAUSED / 2 + 1;
        self.paused > 0 && self.paused == self.missed && self.held.max(self.paused) < majority
    }

    fn has_held(&self) -> bool {
        self.held > self.missed && !self.is_open()
    }

    fn has_missed(&self) -> bool {
        self.missed > 0 && self.missed >= self.held && !self.is_open()
    }

    /// Whether it is on the side of misses by pauses alone.
    fn is_paused(&self) -> bool {
        self.has_missed() && self.paused == self.missed
    }
}

/// What runs say of a capacity, in queries per second: the median and the 90 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median.
    pub qps: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// The half-width of the interval, as a share of the median.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high / self.qps).max(self.qps / self.low) - 1.0
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

    /// Notes the vote of a run at a rate.
    pub fn note(&mut self, qps: f64, vote: Vote) {
        let at = self.rates.partition_point(|rate| rate.qps < qps);
        if self.rates.get(at).is_none_or(|rate| rate.qps != qps) {
            self.rates.insert(at, Side { qps, ..Side::default() });
        }
        let rate = &mut self.rates[at];
        rate.held += u32::from(vote == Vote::Held);
        rate.missed += u32::from(vote != Vote::Held);
        rate.paused += u32::from(vote == Vote::Paused);
    }

    /// The lowest rate at which most runs failed.
    fn missed(&self) -> Option<Side> {
        self.rates.iter().find(|rate| rate.has_missed()).copied()
    }

    /// The highest rate below [`missed`](Self::missed) at which most runs held.
    fn held(&self) -> Option<Side> {
        let below = self.missed().map_or(f64::INFINITY, |missed| missed.qps);
        self.rates.iter().rev().find(|rate| rate.has_held() && rate.qps < below).copied()
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

    /// What is known of the sides, by however few runs: the highest rate at which at least half of the runs held, with no more
    /// misses than that below it, and the lowest higher rate that failed.
    #[must_use]
    pub fn bounds(&self) -> [Option<Side>; 2] {
        let good = self.rates.iter().take_while(|rate| rate.held >= rate.missed);
        let held = good.filter(|rate| rate.held > 0).last().copied();
        let above = |rate: &&Side| rate.missed > 0 && held.is_none_or(|held| rate.qps > held.qps);
        [held, self.rates.iter().find(above).copied()]
    }

    /// Whether pauses of the machine miss the objective at a fifth of the start, too.
    #[must_use]
    pub fn is_pause_limited(&self) -> bool {
        self.held().is_none()
            && self
                .missed()
                .is_some_and(|low| low.is_paused() && low.qps <= PAUSED_SHARE * self.start_qps * (1.0 + 1e-9))
    }

    /// The next rate to drive with `left` runs to go; `None` if both sides are settled, or no rate is low enough.
    #[must_use]
    pub fn next(&self, left: u32) -> Option<f64> {
        if left == 0 || self.is_pause_limited() {
            return None;
        }
        if let Some(open) = self.rates.iter().find(|rate| rate.is_open()) {
            return Some(open.qps);
        }
        if let (Some(precision), false) = (self.effort.precision, self.pauses_decide()) {
            return self.most_telling(precision);
        }
        let (held, missed) = match (self.held(), self.missed()) {
            (None, None) => return Some(self.start_qps),
            (Some(held), None) => {
                let above = self.rates.iter().filter(|rate| rate.qps > self.start_qps).count();
                return Some(held.qps * (1.0 + self.step(above)));
            }
            (None, Some(missed)) if missed.is_paused() => return Some(PAUSED_SHARE * self.start_qps),
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

    /// Whether no rate held, and the lowest one only missed because of pauses.
    fn pauses_decide(&self) -> bool {
        self.held().is_none() && self.missed().is_some_and(|low| low.is_paused())
    }

    /// The rate, of a grid, at the median of the capacity; `None` once the interval is narrow enough, or far below the start.
    fn most_telling(&self, precision: f64) -> Option<f64> {
        let estimate = self.estimate();
        if self.has_both() && estimate.half_width() <= precision {
            return None;
        }
        // Several runs at a rate are easier to read than as many at rates next to each other.
        let grid = precision.ln_1p() / 3.0;
        let qps = self.start_qps * (((estimate.qps / self.start_qps).ln() / grid).round() * grid).exp();
        (qps >= LOWEST * self.start_qps).then_some(qps)
    }

    /// Whether some run held and some missed without a pause.
    #[must_use]
    pub fn has_both(&self) -> bool {
        self.rates.iter().any(|rate| rate.held > 0) && self.rates.iter().any(|rate| rate.missed > rate.paused)
    }

    /// What all runs say of the capacity. Paused runs do not count, unless they decide their rate.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let votes = |rate: &Side| (rate.qps / self.start_qps).ln();
        let rates: Vec<(f64, i32, i32)> = self
            .rates
            .iter()
            .map(|rate| {
                let paused = if rate.is_paused() { 0 } else { rate.paused };
                (votes(rate), rate.held as i32, (rate.missed - paused) as i32)
            })
            .collect();
        let steps = (REACH / STEP) as i32;
        let at = |step: i32| f64::from(step) * STEP;
        let weight = |step: i32| {
            let likelihood = |width: f64| {
                let holds = |rate: f64| 0.5 * STRAY + (1.0 - STRAY) / (1.0 + ((rate - at(step)) / width).exp());
                rates
                    .iter()
                    .map(|&(rate, held, missed)| holds(rate).powi(held) * (1.0 - holds(rate)).powi(missed))
                    .product::<f64>()
            };
            WIDTHS.map(likelihood).iter().sum::<f64>() / (1.0 + (at(step) / PRIOR).powi(2))
        };
        let weights: Vec<f64> = (-steps..=steps).map(weight).collect();
        let all: f64 = weights.iter().sum();
        let quantile = |share: f64| {
            let mut below = 0.0;
            let place = weights.iter().position(|weight| {
                below += weight;
                below >= share * all
            });
            self.start_qps * at(place.unwrap_or(0) as i32 - steps).exp()
        };
        Estimate { qps: quantile(0.5), low: quantile(0.05), high: quantile(0.95) }
    }

    /// The relative distance to the next rate after `before` rates on that side.
    fn step(&self, before: usize) -> f64 {
        self.effort.apart * 2_f64.powi(before.min(4) as i32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use tandem_model::base::random::Random;

    /// Searches a machine on which a run holds as `holds` says; returns the sides and the number of runs.
    fn searched(start_qps: f64, most: u32, mut holds: impl FnMut(f64) -> bool) -> (Option<Side>, Option<Side>, u32) {
        let mut search = LiveSearch::new(start_qps, Effort::usual());
        let mut runs = 0;
        while let Some(qps) = search.next(most - runs) {
            search.note(qps, if holds(qps) { Vote::Held } else { Vote::Missed });
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
    fn both_bounds_are_known_before_enough_runs_agree() {
        let of = |runs: &[(f64, Vote)]| {
            let mut search = LiveSearch::new(1000.0, Effort::usual());
            runs.iter().for_each(|&(qps, vote)| search.note(qps, vote));
            search.bounds().map(|side| side.map(|side| side.qps))
        };
        let (held, missed) = (Vote::Held, Vote::Missed);
        assert_eq!(of(&[]), [None, None]);
        assert_eq!(of(&[(9.0, missed), (3.0, held)]), [Some(3.0), Some(9.0)]);
        // A rate that both held and missed.
        assert_eq!(of(&[(9.0, missed), (6.0, held), (6.0, missed)]), [Some(6.0), Some(9.0)]);
        assert_eq!(of(&[(6.0, missed), (6.0, held), (6.0, missed), (9.0, held)]), [None, Some(6.0)]);
        assert_eq!(of(&[(6.0, held)]), [Some(6.0), None]);
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
    fn only_paused_runs_are_repeated_and_their_majority_decides() {
        let mut search = LiveSearch::new(1000.0, Effort::usual());
        let mut rates = Vec::new();
        for vote in [Vote::Paused, Vote::Held, Vote::Paused, Vote::Held] {
            rates.push(search.next(99).unwrap());
            search.note(1000.0, vote);
        }
        assert_eq!(rates, [1000.0; 4]);
        let mut other = search.clone();
        search.note(1000.0, Vote::Held);
        assert!(search.next(99).unwrap() > 1000.0, "3 of 5 held");
        // Pauses decide at the start, and then at a fifth of it.
        other.note(1000.0, Vote::Paused);
        assert_eq!(other.sides().1.map(|missed| (missed.missed, missed.runs())), Some((3, 5)));
        for _ in 0..3 {
            assert_eq!((other.next(99), other.is_pause_limited()), (Some(200.0), false));
            other.note(200.0, Vote::Paused);
        }
        assert_eq!((other.next(99), other.is_pause_limited()), (None, true));
        // A miss without a pause ends the repetition.
        let mut search = LiveSearch::new(1000.0, Effort::usual());
        search.note(1000.0, Vote::Paused);
        search.note(1000.0, Vote::Missed);
        assert!(search.next(99).unwrap() < 1000.0 && !search.is_pause_limited());
    }

    #[test]
    fn a_search_on_a_noisy_machine_ends_with_majorities() {
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
    fn the_last_time_goes_to_repeats() {
        let (held, missed, runs) = searched(2000.0, 9, |qps| qps <= 1000.0);
        assert!(held.is_some() && missed.is_some() && runs <= 9, "{held:?} {missed:?} {runs}");
        assert_eq!(searched(1000.0, 99, |_| false).0, None);
        assert_eq!(searched(1000.0, 0, |_| true), (None, None, 0));
    }

    #[test]
    fn proof_takes_all_runs_and_drift_widens_the_sides() {
        let mut search = LiveSearch::new(1000.0, Effort::proof());
        while let Some(qps) = search.next(99) {
            search.note(qps, if qps <= 1000.0 { Vote::Held } else { Vote::Missed });
        }
        let (held, missed) = search.sides();
        assert_eq!((held.unwrap().runs(), missed.unwrap().runs()), (5, 5));
        assert!(missed.unwrap().qps <= 1.02501 * held.unwrap().qps);
        let mut search = LiveSearch::new(1000.0, Effort::usual());
        search.note(1000.0, Vote::Held);
        search.note(1100.0, Vote::Missed);
        assert!(search.next(99).is_some_and(|qps| qps > 1000.0 && qps < 1100.0));
        search.drifts(0.12);
        assert_eq!(search.next(99), Some(1000.0));
    }
    proptest! {
        /// Runs hold below the capacity times some noise. A few are disturbed, and say anything.
        #[test]
        fn a_sequential_search_ends_with_both_bounds_and_mostly_with_the_precision(
            (factor, noise, precision, seed) in (0.2..4.0_f64, 0.0..0.08_f64, 0.05..0.2_f64, any::<u64>()),
        ) {
            let (capacity, mut random) = (1000.0 * factor, Random::new(seed, 0));
            let mut search = LiveSearch::new(1000.0, Effort::usual().precise(precision));
            let mut runs = 0;
            while let Some(qps) = search.next(200 - runs) {
                let speed = 1.0 + noise * (12.0_f64).sqrt() * (random.unit() - 0.5);
                let holds = if random.unit() < 0.02 { random.unit() < 0.5 } else { qps <= capacity * speed };
                search.note(qps, if holds { Vote::Held } else { Vote::Missed });
                runs += 1;
            }
            let estimate = search.estimate();
            prop_assert!(search.has_both() && estimate.low <= estimate.qps && estimate.qps <= estimate.high);
            prop_assert!(runs == 200 || estimate.half_width() <= precision, "{runs}: {estimate:?}");
            prop_assert!(runs < 120, "{runs} runs: {estimate:?}");
            // The interval is of 90 %; twice as wide, it nearly always contains the capacity.
            let off = (estimate.qps / capacity).ln().abs();
            prop_assert!(off <= 3.0 * precision.ln_1p() + 0.01, "{capacity}: {estimate:?} after {runs}");
        }
    }

    #[test]
    fn intervals_of_sequential_searches_contain_the_capacity_as_often_as_they_say() {
        let mut random = Random::new(3, 0);
        let (mut within, mut all_runs) = (0, 0);
        for _ in 0..200 {
            let capacity = 1000.0 * (1.2 * (random.unit() - 0.5)).exp();
            let mut search = LiveSearch::new(1000.0, Effort::usual().precise(0.1));
            while let Some(qps) = search.next(99) {
                let noise = (0..4).map(|_| random.unit() - 0.5).sum::<f64>() * 0.05 * 3.0_f64.sqrt();
                search.note(qps, if qps <= capacity * noise.exp() { Vote::Held } else { Vote::Missed });
                all_runs += 1;
            }
            let Estimate { low, high, .. } = search.estimate();
            within += usize::from(low <= capacity && capacity <= high);
        }
        assert!((165..=200).contains(&within) && all_runs < 200 * 15, "{within} of 200, {all_runs} runs");
    }

    #[test]
    fn pauses_say_nothing_to_a_sequential_search() {
        let mut search = LiveSearch::new(1000.0, Effort::usual().precise(0.1));
        let before = search.estimate();
        search.note(1000.0, Vote::Paused);
        assert_eq!((search.estimate(), search.next(99)), (before, Some(1000.0)));
        (0..2).for_each(|_| search.note(1000.0, Vote::Paused));
        assert_eq!(search.next(99), Some(200.0));
        (0..3).for_each(|_| search.note(200.0, Vote::Paused));
        assert!(search.next(99).is_none() && search.is_pause_limited());
    }
}
