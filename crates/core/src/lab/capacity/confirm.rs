//! Confirmation of a found rate by long runs of several seeds.
//!
//! ```text
//!   searched   ─────            seed 1 held at step 40
//!   confirmed  ──────────────   seed 1 ┐ at 40: together they hold ─▶ at 39, 37, 33... until they do not
//!              ──────────────   seed 2 │        together they fail ─▶ at 41, 43, 47... until they hold
//!              ──────────────   …      ┘
//! ```
//!
//! The runs at a rate form one sample. They hold if their total of late queries is allowed, and at most half of them
//! still grow at their end, so that one unlucky seed decides nothing. The limit is then between two neighbouring rates
//! of the grid. Between these the logarithm of the late share p is nearly linear in the logarithm of the rate r:
//!
//! ```text
//!   ln c  =  ln r + (ln x − ln p(r)) / β  ±  t e / β,      β = Δ ln p / Δ ln r
//!   ln p  =  m + s² / 2,      e² = s² / n + s⁴ / 2 (n − 1)
//! ```
//!
//! x is the share that may be late; m and s are the mean and the standard deviation of ln p_i over the n seeds, and t is
//! Student's. Near saturation p_i is skewed, as a lognormal number is: of few seeds, a mean that is too low comes with too
//! low a deviation, and the plain interval of a mean misses the truth twice as often as it says (Cox's method does not).
//! If s is above 1.5, e is 1. The interval contains the highest rate that held. Where nothing was late before runs began to grow, the step of the
//! grid is all that is uncertain, and is the interval.
//! Source: Zhou and Gao, "Confidence intervals for the log-normal mean", Statistics in Medicine 16, 1997.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rayon::prelude::*;

use super::probe::{Probe, probe};
use super::search::{RateGrid, limit_from};
use super::{CONFIDENCE, Candidate, CapacitySearch};
use crate::base::stats::{Interval, students_t};
use crate::lab::{Criterion, RunLength};
use crate::sim::SimError;

/// Long runs last at least this share of a run that would suffice alone, for any number of seeds.
const LEAST_SHARE: f64 = 0.2;
/// Least number of queries at each rate, in runs of all seeds together.
const LEAST_QUERIES: usize = 2_000_000;
/// Shares of late queries whose logarithms deviate by more, from seed to seed, are not taken for lognormal.
const MOST_LOGNORMAL: f64 = 1.5;
/// Least number of seeds that play long runs, if there are as many.
const LEAST_SEEDS: usize = 3;

/// The length of the long runs, and their number of seeds.
pub(super) struct LongRuns<'s, 'a> {
    search: &'s CapacitySearch<'a>,
    candidate: &'s Candidate<'s>,
    pub(super) seeds: usize,
}

impl<'s, 'a> LongRuns<'s, 'a> {
    /// The long runs for rates around `rate_qps`.
    pub(super) fn around(search: &'s CapacitySearch<'a>, candidate: &'s Candidate<'s>, rate_qps: f64) -> Self {
        let all = search.seeds();
        let mut long = Self { search, candidate, seeds: all };
        let each = long.queries(rate_qps);
        // Runs that can be no longer than those of the search are played with all seeds.
        if each > search.length.searched(&search.criterion, rate_qps) || search.length.covers(rate_qps) {
            long.seeds = LEAST_QUERIES.div_ceil(each).clamp(LEAST_SEEDS.min(all), all);
        }
        long
    }

    /// Number of queries per run at a rate.
    pub(super) fn queries(&self, rate_qps: f64) -> usize {
        let CapacitySearch { criterion, length, .. } = self.search;
        let total = length.confirmed(criterion, rate_qps);
        let enough = (LEAST_SHARE * RunLength::full(criterion, rate_qps).min(total) as f64) as usize;
        let least = length.searched(criterion, rate_qps);
        total.div_ceil(self.search.seeds()).max(enough).max(least)
    }

    /// The runs of all seeds at a step of the grid.
    fn at(&self, step: u32) -> Result<Together, SimError> {
        let CapacitySearch { experiment, criterion, .. } = *self.search;
        let rate_qps = self.candidate.grid.rate_qps(step);
        let queries = self.queries(rate_qps);
        let runs = experiment.arrivals[..self.seeds].par_iter().map(|arrivals| {
            let arrivals = arrivals.first(queries);
            // A run stops once it alone exceeds the late queries allowed for all seeds.
            let allowed = criterion.allowed(self.seeds * arrivals.len());
            let played = probe(experiment, self.candidate.policy, criterion, allowed, &arrivals, rate_qps);
            Probe::or_lost(played, rate_qps, self.candidate.grid.top_qps, arrivals.len())
        });
        let runs: Vec<Result<Probe, SimError>> = runs.collect();
        Ok(Together { runs: runs.into_iter().collect::<Result<_, _>>()? })
    }

    /// Searches the limit from `begin` on. It also checks `suspects`: lower rates at which a short run of a seed
    /// failed.
    pub(super) fn limit(&self, begin: u32, suspects: &[u32]) -> Result<Confirmed, SimError> {
        let criterion = self.search.criterion;
        let grid = self.candidate.grid;
        let mut played: BTreeMap<u32, Together> = BTreeMap::new();
        let mut holds = |step: u32| -> Result<bool, SimError> {
            let together = match played.entry(step) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(self.at(step)?),
            };
            Ok(together.holds(&criterion))
        };
        let mut begin = begin;
        let held = loop {
            let Some(found) = limit_from(begin, grid.lowest(), &mut holds)? else { break None };
            let mut fails_at = None;
            for &suspect in suspects.iter().filter(|&&suspect| suspect > found) {
                if !holds(suspect)? {
                    fails_at = fails_at.max(Some(suspect));
                }
            }
            match fails_at {
                Some(failed) if failed < grid.lowest() => begin = failed + 1,
                Some(_) => break None,
                None => break Some(found),
            }
        };
        let verdicts: Vec<bool> = played.values().map(|runs| runs.holds(&criterion)).collect();
        let flips = verdicts.windows(2).filter(|pair| pair[0] && !pair[1]).count();
        let above = held.and_then(|held| held.checked_sub(1));
        let mut of = |step: Option<u32>| step.and_then(|step| Some((step, played.remove(&step)?)));
        Ok(Confirmed { grid, criterion, failed: of(above), held: of(held), flips })
    }
}

/// The runs of several seeds at one rate.
pub(super) struct Together {
    runs: Vec<Probe>,
}

impl Together {
    fn queries(&self) -> usize {
        self.runs.iter().map(|run| run.queries).sum()
    }

    fn late(&self) -> usize {
        self.runs.iter().map(|run| run.late).sum()
    }

    fn holds(&self, criterion: &Criterion) -> bool {
        let growing = self.runs.iter().filter(|run| run.grows).count();
        self.late() <= criterion.allowed(self.queries()) && 2 * growing <= self.runs.len()
    }

    /// The share of late queries; it is above 0 even if none was late.
    fn share(&self) -> f64 {
        (self.late() as f64 + 0.5) / (self.queries() as f64 + 1.0)
    }
}

/// The limit found by long runs.
pub(super) struct Confirmed {
    grid: RateGrid,
    criterion: Criterion,
    /// The highest step that held, with its runs; `None` if none held.
    held: Option<(u32, Together)>,
    /// The next higher step, with its runs; `None` at the top.
    failed: Option<(u32, Together)>,
    /// Number of rates that held although a lower rate failed.
    pub(super) flips: usize,
}

/// The late share of runs near the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sensitivity {
    /// Slope of the logarithm of the late share over the logarithm of the rate.
    pub(super) slope: f64,
    /// The late share at the highest rate that held.
    pub(super) held_share: f64,
    /// Variance over seeds of the logarithm of a run's late share, times the queries of a run.
    pub(super) variance_by_query: f64,
    /// Mean and standard deviation over seeds of the logarithm of the late share at the limit.
    mean: f64,
    deviation: f64,
}

impl Confirmed {
    /// The highest rate that held, with the queries of each run; zeros if none held.
    pub(super) fn held(&self) -> (f64, usize) {
        let held = self.held.as_ref();
        held.map_or((0.0, 0), |(step, runs)| {
            (self.grid.rate_qps(*step), runs.runs.iter().map(|run| run.queries).min().unwrap_or(0))
        })
    }

    /// The next higher rate, which failed; `None` if the top rate held.
    pub(super) fn failing_qps(&self) -> Option<f64> {
        match (&self.held, &self.failed) {
            (None, _) => Some(self.grid.rate_qps(self.grid.lowest())),
            (Some(_), failed) => failed.as_ref().map(|(step, _)| self.grid.rate_qps(*step)),
        }
    }

    /// The late share near the limit; `None` if runs fail for another reason, or there is only one seed.
    pub(super) fn sensitivity(&self) -> Option<Sensitivity> {
        let (below, held, above, failed) = self.around()?;
        let (p, q) = (held.share(), failed.share());
        let n = held.runs.len() as f64;
        let is_told_by_late = failed.late() > self.criterion.allowed(failed.queries());
        if n < 2.0 || q <= p || !is_told_by_late {
            return None;
        }
        let place = self.place(p, q);
        // Half a late query is added, so that the logarithm always exists.
        let ln_share = |run: &Probe| ((run.late as f64 + 0.5) / (run.queries as f64 + 1.0)).ln();
        let runs = held.runs.iter().zip(&failed.runs);
        let at_limit = runs.map(|(held, failed)| ln_share(held) * (1.0 - place) + ln_share(failed) * place);
        let at_limit: Vec<f64> = at_limit.collect();
        let mean = at_limit.iter().sum::<f64>() / n;
        let variance = at_limit.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(Sensitivity {
            slope: (q / p).ln() / (above / below).ln(),
            held_share: p,
            variance_by_query: variance * held.queries() as f64 / n,
            mean,
            deviation: variance.sqrt(),
        })
    }

    /// The confidence interval of the limit.
    pub(super) fn interval(&self) -> Interval {
        let Some((step, runs)) = &self.held else {
            return Interval { low: 0.0, high: self.grid.rate_qps(self.grid.lowest()), confidence: 0.0 };
        };
        let seeds = runs.runs.len();
        let confidence = if seeds > 1 { CONFIDENCE } else { 0.0 };
        let Some((below, held, above, failed)) = self.around() else {
            return Interval { low: self.grid.rate_qps(step + 1), high: self.grid.rate_qps(*step), confidence };
        };
        let Some(Sensitivity { slope, mean, deviation: s, .. }) = self.sensitivity() else {
            return Interval { low: below, high: above, confidence };
        };
        let n = seeds as f64;
        let place = self.place(held.share(), failed.share());
        let (error, left) = if s <= MOST_LOGNORMAL {
            let error = (s.powi(2) / n + s.powi(4) / (2.0 * (n - 1.0))).sqrt();
            (error, (self.criterion.late_share().ln() - (mean + s.powi(2) / 2.0)) / slope)
        } else {
            // Of shares that differ by so much the mean is that of the largest one, and known to its own size.
            (1.0, 0.0)
        };
        let half = students_t(seeds - 1, CONFIDENCE) * error / slope;
        let centre = below.ln() + place * (above / below).ln() + left;
        Interval {
            low: (centre - half).exp().min(below),
            high: (centre + half).exp().min(self.grid.top_qps).max(below),
            confidence,
        }
    }

    /// Relative position between the two rates, from 0 to 1, at which the late share reaches the allowed one.
    fn place(&self, held: f64, failed: f64) -> f64 {
        ((self.criterion.late_share() / held).ln() / (failed / held).ln()).clamp(0.0, 1.0)
    }

    /// The two neighbouring rates with their runs: one held and one failed.
    fn around(&self) -> Option<(f64, &Together, f64, &Together)> {
        let ((below, held), (above, failed)) = (self.held.as_ref()?, self.failed.as_ref()?);
        Some((self.grid.rate_qps(*below), held, self.grid.rate_qps(*above), failed))
    }
}
