//! The highest rate of a ladder that one seed's arrivals sustain.
//!
//! Rates stand on a ladder whose top is the limit of what is stable for the policy, each 0.5 % below the one before: no
//! rate above is ever tried. From a rung to begin with the search climbs or descends by 1, 2, 4... rungs until the verdict changes, and
//! halves what lies between. Whatever was tried is remembered, for the other aim too.

use std::collections::BTreeMap;

use super::length::RunLength;
use super::probe::{Aim, Told, probe};
use crate::lab::Criterion;
use crate::sched::PolicyFactory;
use crate::sim::certificate;
use crate::sim::{Arrivals, Experiment, SimError};
use crate::time::Nanos;

/// From one rung of the ladder to the next.
const STEP: f64 = 1.005;
/// Rates below this share of the top count as none.
const LOWEST: f64 = 1e-6;

/// The rates that are tried, from the top down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ladder {
    pub(super) top_qps: f64,
}

impl Ladder {
    pub(super) fn rate_qps(self, rung: u32) -> f64 {
        self.top_qps * STEP.powi(-(rung as i32))
    }

    pub(super) fn lowest(self) -> u32 {
        (LOWEST.recip().ln() / STEP.ln()) as u32
    }
}

/// What a search stands on, whatever the seed.
#[derive(Clone, Copy)]
pub(super) struct Grounds<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) policy: &'a dyn PolicyFactory,
    pub(super) criterion: Criterion,
    pub(super) length: RunLength,
    pub(super) ladder: Ladder,
    /// The most that each query can take under this policy, where it promises something.
    pub(super) dearest: Option<&'a [Nanos]>,
}

/// The search with one seed's arrivals, and what it has tried.
pub(super) struct SeedSearch<'a> {
    grounds: Grounds<'a>,
    arrivals: &'a Arrivals,
    tried: BTreeMap<u32, Told>,
}

impl<'a> SeedSearch<'a> {
    pub(super) fn new(grounds: Grounds<'a>, arrivals: &'a Arrivals) -> Self {
        Self { grounds, arrivals, tried: BTreeMap::new() }
    }

    /// The rung at and below which every rate that was tried meets `aim`, one above it not; `None` if none does. It is
    /// looked for from `begin` on; `look_below` is how many rungs below what was found one more is tried.
    ///
    /// # Errors
    /// If the policy can't be made for this machine, or breaks its contract.
    pub(super) fn highest(&mut self, aim: Aim, begin: u32, look_below: Option<u32>) -> Result<Option<u32>, SimError> {
        let mut begin = begin;
        loop {
            let Some(found) = self.descend_or_climb(aim, begin)? else { return Ok(None) };
            let below = found + look_below.unwrap_or(0);
            if below > self.grounds.ladder.lowest() || self.meets(aim, below)? {
                // What was tried from another beginning may have failed further below.
                match self.lowest_failure(aim).filter(|&failed| failed > found) {
                    Some(failed) => begin = failed + 1,
                    None => return Ok(Some(found)),
                }
            } else {
                begin = below + 1;
            }
        }
    }

    /// The lowest rate tried that does not meet `aim`.
    pub(super) fn lowest_failure_qps(&self, aim: Aim) -> Option<f64> {
        self.lowest_failure(aim).map(|rung| self.grounds.ladder.rate_qps(rung))
    }

    /// How often a rate meets `aim` though a lower one did not.
    pub(super) fn flips(&self, aim: Aim) -> usize {
        let told: Vec<bool> = self.tried.values().filter_map(|told| told.of(aim)).collect();
        told.windows(2).filter(|pair| pair[0] && !pair[1]).count()
    }

    fn lowest_failure(&self, aim: Aim) -> Option<u32> {
        self.tried.iter().rev().find(|(_, told)| told.of(aim) == Some(false)).map(|(&rung, _)| rung)
    }

    fn descend_or_climb(&mut self, aim: Aim, begin: u32) -> Result<Option<u32>, SimError> {
        let lowest = self.grounds.ladder.lowest();
        limit_from(begin, lowest, |rung| self.meets(aim, rung))
    }

    fn meets(&mut self, aim: Aim, rung: u32) -> Result<bool, SimError> {
        let known = self.tried.get(&rung).copied().unwrap_or_default();
        if let Some(met) = known.of(aim) {
            return Ok(met);
        }
        let Grounds { experiment, policy, criterion, length, ladder, dearest } = self.grounds;
        let rate_qps = ladder.rate_qps(rung);
        let arrivals = self.arrivals.first(length.searched(&criterion, rate_qps));
        let least = criterion.limit.min(criterion.deadline);
        let is_certain = |dearest| certificate::nobody_misses(dearest, &arrivals, rate_qps, least);
        let told = if dearest.is_some_and(is_certain) {
            Told { objective: Some(true), no_miss: Some(true) }
        } else {
            probe(experiment, policy, criterion, aim, &arrivals, rate_qps)?
        };
        let told = known.and(told);
        self.tried.insert(rung, told);
        Ok(told.of(aim) == Some(true))
    }
}

/// The rung that meets what is asked and above which one does not, or the top: from `begin` on by 1, 2, 4... rungs, up while
/// they do and down while they don't; then what lies between is halved. `None` if none down to `lowest` does.
///
/// # Errors
/// The first that `meets` gives.
pub(super) fn limit_from<E>(
    begin: u32,
    lowest: u32,
    mut meets: impl FnMut(u32) -> Result<bool, E>,
) -> Result<Option<u32>, E> {
    let (mut failed, mut passed, mut step) = (None, None, 1);
    let mut rung = begin.min(lowest);
    loop {
        if meets(rung)? {
            passed = Some(rung);
            if rung == 0 || failed.is_some() {
                break;
            }
            rung = rung.saturating_sub(step);
        } else {
            failed = Some(rung);
            if rung == lowest || passed.is_some() {
                break;
            }
            rung = (rung + step).min(lowest);
        }
        step *= 2;
    }
    let Some(mut passed) = passed else { return Ok(None) };
    let Some(mut failed) = failed else { return Ok(Some(passed)) };
    while passed - failed > 1 {
        let middle = failed + (passed - failed) / 2;
        if meets(middle)? {
            passed = middle;
        } else {
            failed = middle;
        }
    }
    Ok(Some(passed))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_limit_is_found_from_wherever_one_begins(begin in 0u32..400, limit in 0u32..300, lowest in 300u32..350) {
            let found = limit_from(begin, lowest, |rung| Ok::<_, ()>(rung >= limit));
            prop_assert_eq!(found, Ok(Some(limit)));
            prop_assert_eq!(limit_from(begin, lowest, |_| Ok::<_, ()>(false)), Ok(None));
        }
    }
}
