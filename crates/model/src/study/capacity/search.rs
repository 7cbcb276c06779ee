//! The highest rate of a grid that one seed's arrivals sustain.
//!
//! The limit of the grid is the policy's stability limit, which no rate reaches. Near it, steps are finer than the distance to
//! the limit; further below, each rate is below the previous one by the same share. The search climbs or descends by 1, 2,
//! 4... steps until the verdict changes, then bisects. It stores all results.

use std::collections::BTreeMap;

use super::probe::{Probe, ProbeRun, probe};
use super::{Candidate, CapacitySearch, Found};
use crate::sim::{Arrivals, SimError};

/// Lowest rate of the grid, as a share of the top; lower rates count as 0.
const LOWEST: f64 = 1e-6;
/// The highest rate of the grid, as a share of the limit of stability.
const MOST_LOAD: f64 = 0.996;
/// Near the limit, the distance to it grows by this factor from rate to rate.
const WIDER: f64 = 1.5;

/// The grid of rates, from the top down.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateGrid {
    /// The limit of stability. At this rate the load is 1.
    limit_qps: f64,
    pub(super) top_qps: f64,
    /// Ratio between neighbouring rates, except near the limit.
    ratio: f64,
}

impl RateGrid {
    /// The grid below a limit of stability. Rates above `known_qps` cannot be decided.
    pub(super) fn new(limit_qps: f64, known_qps: f64, ratio: f64) -> Self {
        Self { limit_qps, top_qps: (MOST_LOAD * limit_qps).min(known_qps), ratio }
    }

    /// The next rate below `rate_qps` if it is near the limit.
    fn next_near_limit(self, rate_qps: f64) -> Option<f64> {
        let next = self.limit_qps - WIDER * (self.limit_qps - rate_qps);
        (next > rate_qps / self.ratio).then_some(next)
    }

    pub(super) fn rate_qps(self, step: u32) -> f64 {
        let mut rate_qps = self.top_qps;
        for passed in 0..step {
            match self.next_near_limit(rate_qps) {
                Some(next) => rate_qps = next,
                None => return rate_qps * self.ratio.powi(-((step - passed) as i32)),
            }
        }
        rate_qps
    }

    pub(super) fn lowest(self) -> u32 {
        (LOWEST.recip().ln() / self.ratio.ln()) as u32
    }

    /// The first step whose rate is at most `rate_qps`.
    pub(super) fn step_at(self, rate_qps: f64) -> u32 {
        let (mut passed, mut at_qps) = (0, self.top_qps);
        // A rate of the grid is its own step in spite of rounding.
        while at_qps * (1.0 - 1e-9) > rate_qps
            && let Some(next) = self.next_near_limit(at_qps)
        {
            (passed, at_qps) = (passed + 1, next);
        }
        let steps = ((at_qps / rate_qps).ln() / self.ratio.ln() - 1e-6).ceil();
        (passed + steps.max(0.0) as u32).min(self.lowest())
    }
}

/// Search parameters that all seeds share.
#[derive(Clone, Copy)]
pub(super) struct SearchContext<'a> {
    pub(super) search: &'a CapacitySearch<'a>,
    pub(super) candidate: &'a Candidate<'a>,
    /// Number of queries in a run at a rate.
    pub(super) queries: &'a (dyn Fn(f64) -> usize + Sync),
}

/// The search with one seed's arrivals, and all its results.
pub(super) struct SeedSearch<'a> {
    context: SearchContext<'a>,
    arrivals: &'a Arrivals,
    tried: BTreeMap<u32, bool>,
}

impl<'a> SeedSearch<'a> {
    pub(super) fn new(context: SearchContext<'a>, arrivals: &'a Arrivals) -> Self {
        Self { context, arrivals, tried: BTreeMap::new() }
    }

    /// The lowest step, and thus highest rate, that meets the objective; `None` if none does.
    ///
    /// All tried rates below it meet the objective, and the next rate above does not. The search starts at `begin`.
    /// `look_below` adds a check at this share of the result.
    ///
    /// # Errors
    /// If the policy does not fit the machine or breaks its contract.
    pub(super) fn highest(&mut self, begin: u32, look_below: Option<f64>) -> Result<Option<u32>, SimError> {
        let mut begin = begin;
        let grid = self.context.candidate.grid;
        loop {
            let Some(found) = self.descend_or_climb(begin)? else { return Ok(None) };
            let below = look_below.map_or(found, |share| grid.step_at(share * grid.rate_qps(found)));
            if self.meets(below)? || below == grid.lowest() {
                // Runs from another starting point may have failed at a lower rate.
                match self.lowest_failure().filter(|&failed| failed > found) {
                    Some(failed) => begin = failed + 1,
                    None => return Ok(Some(found)),
                }
            } else {
                begin = below + 1;
            }
        }
    }

    /// The step by [`highest`](Self::highest), with the number of non-monotone verdicts.
    ///
    /// # Errors
    /// The errors of [`highest`](Self::highest).
    pub(super) fn found(&mut self, begin: u32, look_below: Option<f64>) -> Result<Found, SimError> {
        let step = self.highest(begin, look_below)?;
        Ok(Found { step, flips: self.flips() })
    }

    /// Number of rates that meet the objective although a lower rate does not.
    fn flips(&self) -> usize {
        let result: Vec<bool> = self.tried.values().copied().collect();
        result.windows(2).filter(|pair| pair[0] && !pair[1]).count()
    }

    fn lowest_failure(&self) -> Option<u32> {
        self.tried.iter().rev().find(|&(_, &holds)| !holds).map(|(&step, _)| step)
    }

    fn descend_or_climb(&mut self, begin: u32) -> Result<Option<u32>, SimError> {
        let lowest = self.context.candidate.grid.lowest();
        limit_from(begin, lowest, |step| self.meets(step))
    }

    /// Whether the run at `step` meets the objective; each step is simulated once.
    ///
    /// # Errors
    /// The errors of [`highest`](Self::highest).
    pub(super) fn meets(&mut self, step: u32) -> Result<bool, SimError> {
        if let Some(&known) = self.tried.get(&step) {
            return Ok(known);
        }
        let SearchContext { search, candidate, queries } = self.context;
        let &Candidate { policy, grid, .. } = candidate;
        let rate_qps = grid.rate_qps(step);
        let criterion = search.criterion_at(candidate, rate_qps)?;
        let arrivals = self.arrivals.first(queries(rate_qps));
        let pass = search.length.pass_seconds(rate_qps);
        let run = ProbeRun { criterion, allowed_of: arrivals.len(), pass, must_settle: false };
        let played = probe(search.experiment, policy, run, &arrivals, rate_qps);
        let holds = Probe::or_lost(played, rate_qps, grid.top_qps, arrivals.len())?.holds();
        self.tried.insert(step, holds);
        Ok(holds)
    }
}

/// The step that meets the objective while the next higher rate does not, or the top; `None` if no step down to `lowest`
/// meets it.
///
/// From `begin` on the search doubles its stride, upwards after a success and downwards after a failure. It then
/// bisects.
///
/// # Errors
/// The first error of `meets`.
pub(super) fn limit_from<E>(
    begin: u32,
    lowest: u32,
    mut meets: impl FnMut(u32) -> Result<bool, E>,
) -> Result<Option<u32>, E> {
    let (mut failed, mut passed, mut stride) = (None, None, 1);
    let mut step = begin.min(lowest);
    loop {
        if meets(step)? {
            passed = Some(step);
            if step == 0 || failed.is_some() {
                break;
            }
            step = step.saturating_sub(stride);
        } else {
            failed = Some(step);
            if step == lowest || passed.is_some() {
                break;
            }
            step = (step + stride).min(lowest);
        }
        stride *= 2;
    }
    let Some(passed) = passed else { return Ok(None) };
    match failed {
        Some(failed) => between(failed, passed, meets).map(Some),
        None => Ok(Some(passed)),
    }
}

/// The step from `failed`, which does not meet the objective, to `passed`, which does, where the verdict changes.
///
/// # Errors
/// The first error of `meets`.
pub(super) fn between<E>(
    mut failed: u32,
    mut passed: u32,
    mut meets: impl FnMut(u32) -> Result<bool, E>,
) -> Result<u32, E> {
    while passed - failed > 1 {
        let middle = failed + (passed - failed) / 2;
        if meets(middle)? {
            passed = middle;
        } else {
            failed = middle;
        }
    }
    Ok(passed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_rate_of_a_grid_has_its_step() {
        for ratio in [1.005, 1.01] {
            let grid = RateGrid::new(12_345.0, f64::INFINITY, ratio);
            for step in [0, 1, 7, 300, grid.lowest()] {
                assert_eq!(grid.step_at(grid.rate_qps(step)), step);
                assert_eq!(grid.step_at(0.999 * grid.rate_qps(step)), (step + 1).min(grid.lowest()));
            }
            assert_eq!(grid.step_at(1e9), 0);
            for step in 0..300 {
                let [rate, next] = [step, step + 1].map(|step| grid.rate_qps(step));
                let distance = 12_345.0 - rate;
                assert!(rate < 12_345.0 && next < rate && rate - next <= distance && rate / next <= ratio + 1e-9);
            }
            assert!((RateGrid::new(100.0, 50.0, ratio).rate_qps(1) * ratio / 50.0 - 1.0).abs() < 1e-12);
        }
    }

    proptest! {
        #[test]
        fn the_limit_is_found_from_wherever_one_begins(begin in 0u32..400, limit in 0u32..300, lowest in 300u32..350) {
            let found = limit_from(begin, lowest, |step| Ok::<_, ()>(step >= limit));
            prop_assert_eq!(found, Ok(Some(limit)));
            prop_assert_eq!(limit_from(begin, lowest, |_| Ok::<_, ()>(false)), Ok(None));
        }
    }
}
