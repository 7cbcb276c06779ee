//! Confirmation of a found rate by long runs of several seeds.
//!
//! ```text
//!   searched   ─────            seed 1 held at step 40
//!   nearer     ──────────────   a third of the seeds: they hold at 42, and fail at 41
//!   confirmed  ──────────────   seed 1 ┐ at 42: together they hold ─▶ at 41, 39, 35... until they do not
//!              ──────────────   seed 2 │        together they fail ─▶ at 43, 45, 49... until they hold
//!              ──────────────   …      ┘
//! ```
//!
//! The runs at a rate form one sample. They hold if their totals of late queries are allowed under every bound, and at most half
//! of them are not [stationary](super::stationary), so that one unlucky seed decides nothing; under policies with batches, whose
//! growth alone tells, at most a quarter. If they have not settled, a few are prolonged, up to eight million queries. The limit is
//! then between two neighbouring rates of the grid. Between these the logarithm of the late share p is nearly linear in the
//! logarithm of the rate r:
//!
//! ```text
//!   ln c  =  ln r + (ln x − ln p(r)) / β  ±  t e / β,      β = Δ ln p / Δ ln r
//!   ln p  =  m + s² / 2,      e² = s² / n + s⁴ / 2 (n − 1)
//! ```
//!
//! x is the share that may be late; m and s are the mean and the standard deviation of ln p_i over the n seeds, and t is
//! Student's. Near saturation p_i is skewed, as a lognormal number is: of few seeds, a mean that is too low comes with too
//! low a deviation, and the plain interval of a mean misses the truth twice as often as it says (Cox's method does not).
//! If s is above 1.5, e is 1. A queue that is seldom long is late in few stretches: by the
//! asymptotic variance of a reflected Brownian motion, the late share of T queries has e² = 4 τ / x T with the [relaxation]
//! time τ, and e is at least that. The interval contains the highest rate that held. Where nothing was
//! late before runs began to grow, it is a step of the grid to both sides.
//! Source: Zhou and Gao, "Confidence intervals for the log-normal mean", Statistics in Medicine 16, 1997.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rayon::prelude::*;

use super::length::relaxation;
use super::probe::{Probe, ProbeRun, probe};
use super::search::{RateGrid, limit_from};
use super::{CONFIDENCE, Candidate, CapacitySearch};
use crate::base::stats::{Interval, students_t};
use crate::base::time::Nanos;
use crate::sim::SimError;
use crate::study::objective::MOST_BOUNDS;
use crate::study::{Criterion, RunLength, Unsteady, Verdict};

/// Long runs last at least this share of a run that would suffice alone, for any number of seeds.
const LEAST_SHARE: f64 = 0.2;
/// Least number of queries at each rate, in runs of all seeds together.
const LEAST_QUERIES: usize = 2_000_000;
/// Least number of queries per run under a policy with batches, as far as a run that suffices alone has as many. Larger batches take a
/// small excess of load up for seconds: with a fifth of it, 0.99 of three rates failed in long runs.
const LEAST_BATCHED: usize = 3_000_000;
/// One run of so many may be unsteady at a rate that holds, if busy periods count and if growth alone tells.
const MOST_UNSTEADY: (usize, usize) = (2, 4);
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
        let batched = if self.candidate.policy.makes_batches() { LEAST_BATCHED.min(total) } else { 0 };
        let least = length.searched(criterion, rate_qps).max(batched);
        let relaxation = relaxation(rate_qps / self.candidate.stable_qps, self.candidate.variation);
        let relaxed = length.relaxed(relaxation, self.search.seeds() < LEAST_SEEDS);
        let queries = total.div_ceil(self.search.seeds()).max(enough).max(least).max(relaxed);
        length.in_passes(queries, rate_qps)
    }

    /// No runs at a rate, which `more` adds.
    fn none(&self, rate_qps: f64, each: usize) -> Result<Together, SimError> {
        let criterion = self.search.criterion_at(self.candidate, rate_qps)?;
        let utilisation = rate_qps / self.candidate.stable_qps;
        let most_unsteady = if self.must_settle() { MOST_UNSTEADY.0 } else { MOST_UNSTEADY.1 };
        Ok(Together { criterion, rate_qps, each, utilisation, most_unsteady, runs: Vec::new(), is_whole: false })
    }

    /// Whether busy periods must end. Lanes that take batches are busy at any rate, and rows of a cluster do not tell its lanes
    /// apart. Rates of both hold in long runs (results/simulated/replays.csv).
    fn must_settle(&self) -> bool {
        !self.candidate.policy.makes_batches() && self.search.experiment.cluster.is_none()
    }

    /// Plays further seeds, up to this number of a goal.
    fn more(&self, together: &mut Together, seeds: usize, of: usize) -> Result<(), SimError> {
        let CapacitySearch { experiment, length, .. } = self.search;
        let Candidate { policy, grid, .. } = *self.candidate;
        let Together { criterion, rate_qps, each, .. } = *together;
        let arrivals = experiment.arrivals.get(together.runs.len()..seeds).unwrap_or_default();
        let runs = arrivals.par_iter().map(|arrivals| {
            let arrivals = arrivals.first(each);
            let judged = ProbeRun {
                criterion,
                // A run stops once it alone exceeds the late queries allowed for all seeds.
                allowed_of: of * arrivals.len(),
                pass: length.pass_seconds(rate_qps),
                must_settle: self.must_settle(),
            };
            let played = probe(experiment, policy, judged, &arrivals, rate_qps);
            Probe::or_lost(played, rate_qps, grid.top_qps, arrivals.len())
        });
        let runs: Vec<Result<Probe, SimError>> = runs.collect();
        together.runs.extend(runs.into_iter().collect::<Result<Vec<_>, _>>()?);
        Ok(())
    }

    /// Plays this number of seeds, or as many that grow as decide alone.
    fn all(&self, together: &mut Together, seeds: usize) -> Result<(), SimError> {
        let enough = seeds / together.most_unsteady + 1;
        self.more(together, enough, seeds)?;
        if together.growing() < enough {
            self.more(together, seeds, seeds)?;
        }
        together.is_whole = true;
        Ok(())
    }

    /// Whether the runs of some or of all seeds hold at a step of the grid. If all have not settled, a few are played four times
    /// as long, and decide.
    fn holds(&self, played: &mut BTreeMap<u32, Together>, step: u32, seeds: usize) -> Result<bool, SimError> {
        let rate_qps = self.candidate.grid.rate_qps(step);
        let together = match played.entry(step) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(self.none(rate_qps, self.queries(rate_qps))?),
        };
        if together.is_whole {
            return Ok(together.holds());
        }
        if seeds < self.seeds {
            self.more(together, seeds, self.seeds)?;
            return Ok(together.holds());
        }
        self.all(together, seeds)?;
        let longer = self.search.length.settling(together.each);
        if together.is_unsettled() && longer > together.each {
            *together = self.none(rate_qps, longer)?;
            self.all(together, LEAST_SEEDS.min(seeds))?;
        }
        Ok(together.holds())
    }

    /// Searches the limit from `begin` on, below every gap from half of it on. A third of the seeds finds where to look, and
    /// all of them decide.
    pub(super) fn limit(&self, begin: u32) -> Result<Confirmed, SimError> {
        let grid = self.candidate.grid;
        let mut played: BTreeMap<u32, Together> = BTreeMap::new();
        let mut begin = begin;
        if !self.search.length.covers(grid.rate_qps(begin)) {
            let few = |step| self.holds(&mut played, step, self.seeds.div_ceil(3));
            begin = limit_from(begin, grid.lowest(), few)?.unwrap_or(grid.lowest());
        }
        let mut holds = |step| self.holds(&mut played, step, self.seeds);
        let held = loop {
            let Some(found) = limit_from(begin, grid.lowest(), &mut holds)? else { break None };
            let mut fails_at = None;
            for suspect in self.search.suspects(self.candidate, found)? {
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
        let whole = played.values().filter(|together| together.is_whole);
        let verdicts: Vec<bool> = whole.map(Together::holds).collect();
        let flips = verdicts.windows(2).filter(|pair| pair[0] && !pair[1]).count();
        let above = held.and_then(|held| held.checked_sub(1));
        let mut of = |step: Option<u32>| step.and_then(|step| Some((step, played.remove(&step)?)));
        Ok(Confirmed { grid, failed: of(above), held: of(held), flips })
    }
}

/// The runs of several seeds at one rate.
pub(super) struct Together {
    criterion: Criterion,
    rate_qps: f64,
    /// Number of queries in each run.
    each: usize,
    utilisation: f64,
    /// One run of so many may be unsteady.
    most_unsteady: usize,
    runs: Vec<Probe>,
    /// Whether further seeds change nothing.
    is_whole: bool,
}

impl Together {
    fn queries(&self) -> usize {
        self.runs.iter().map(|run| run.queries).sum()
    }

    /// Number of late queries under the bound at this place.
    fn late(&self, place: usize) -> usize {
        self.runs.iter().map(|run| run.late[place]).sum()
    }

    /// The first bound that has too many late queries.
    fn broken(&self) -> Option<usize> {
        let allowed = self.criterion.allowed_by_bound(self.queries());
        (0..MOST_BOUNDS).find(|&place| self.late(place) > allowed[place])
    }

    /// Number of runs that are not stationary.
    fn unsteady(&self, is_meant: impl Fn(Unsteady) -> bool) -> usize {
        let reasons = self.runs.iter().filter_map(|run| run.verdict?.unsteady);
        reasons.filter(|&reason| is_meant(reason)).count()
    }

    fn growing(&self) -> usize {
        self.unsteady(|reason| reason != Unsteady::NotSettled)
    }

    fn holds(&self) -> bool {
        self.broken().is_none() && self.most_unsteady * self.unsteady(|_| true) <= self.runs.len()
    }

    /// Whether longer runs may hold although these do not.
    fn is_unsettled(&self) -> bool {
        self.broken().is_none() && !self.holds() && self.most_unsteady * self.growing() <= self.runs.len()
    }

    /// The share of late queries under the bound at this place; it is above 0 even if none was late.
    fn share(&self, place: usize) -> f64 {
        (self.late(place) as f64 + 0.5) / (self.queries() as f64 + 1.0)
    }

    /// All runs in one verdict: sums of counts, means of percentiles. `None` if one was stopped.
    fn verdict(&self) -> Option<Verdict> {
        let all: Vec<Verdict> = self.runs.iter().map(|run| run.verdict).collect::<Option<_>>()?;
        let first = *all.first()?;
        let sum = |of: fn(&Verdict) -> usize| all.iter().map(of).sum::<usize>();
        let mean = |of: fn(&Verdict) -> Nanos| {
            Nanos((all.iter().map(|one| u128::from(of(one).0)).sum::<u128>() / all.len() as u128) as u64)
        };
        Some(Verdict {
            planned: self.queries(),
            sent: sum(|one| one.sent),
            late: self.late(0),
            allowed: self.criterion.allowed(self.queries()),
            bound: self.criterion.bounds().next().unwrap_or(first.bound),
            missed: sum(|one| one.missed),
            p99: mean(|one| one.p99),
            p999: mean(|one| one.p999),
            longest: all.iter().map(|one| one.longest).max().unwrap_or_default(),
            utilisation: Some(self.utilisation),
            unsteady: None,
            ..first
        })
    }
}

/// The limit found by long runs.
pub(super) struct Confirmed {
    grid: RateGrid,
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
    /// The criterion, and the place of the bound that limits the capacity.
    pub(super) criterion: Criterion,
    pub(super) place: usize,
    /// Slope of the logarithm of the late share over the logarithm of the rate.
    pub(super) slope: f64,
    /// The late share at the highest rate that held.
    pub(super) held_share: f64,
    /// Variance over seeds of the logarithm of a run's late share, times the queries of a run.
    pub(super) variance_by_query: f64,
    /// The late share that is allowed, and its relative position between those of the two rates, from 0 to 1.
    allowed: f64,
    part: f64,
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
        let (place, criterion) = (failed.broken()?, held.criterion);
        let (p, q) = (held.share(place), failed.share(place));
        let n = held.runs.len().min(failed.runs.len()) as f64;
        if n < 2.0 || q <= p {
            return None;
        }
        let allowed = criterion.objective.bounds().nth(place)?.late_share();
        let part = ((allowed / p).ln() / (q / p).ln()).clamp(0.0, 1.0);
        // Half a late query is added, so that the logarithm always exists.
        let ln_share = |run: &Probe| ((run.late[place] as f64 + 0.5) / (run.queries as f64 + 1.0)).ln();
        let runs = held.runs.iter().zip(&failed.runs);
        let at_limit = runs.map(|(held, failed)| ln_share(held) * (1.0 - part) + ln_share(failed) * part);
        let at_limit: Vec<f64> = at_limit.collect();
        let mean = at_limit.iter().sum::<f64>() / n;
        let variance = at_limit.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(Sensitivity {
            criterion,
            place,
            allowed,
            part,
            slope: (q / p).ln() / (above / below).ln(),
            held_share: p,
            variance_by_query: variance * held.queries() as f64 / held.runs.len() as f64,
            mean,
            deviation: variance.sqrt(),
        })
    }

    /// The criterion at the highest rate that held; `None` if none held.
    pub(super) fn criterion(&self) -> Option<Criterion> {
        self.held.as_ref().map(|(_, runs)| runs.criterion)
    }

    /// The runs at this rate in one verdict.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.held.as_ref().and_then(|(_, runs)| runs.verdict())
    }

    /// The confidence interval of the limit, which is below `stable_qps`, of service times with this squared coefficient of
    /// variation.
    pub(super) fn interval(&self, stable_qps: f64, variation: f64) -> Interval {
        let Some((step, runs)) = &self.held else {
            return Interval { low: 0.0, high: self.grid.rate_qps(self.grid.lowest()), confidence: 0.0 };
        };
        let seeds = runs.runs.len();
        let confidence = if seeds > 1 { CONFIDENCE } else { 0.0 };
        let Some((below, held, above, failed)) = self.around() else {
            return Interval { low: self.grid.rate_qps(step + 1), high: stable_qps, confidence };
        };
        let Some(Sensitivity { allowed, part, slope, mean, deviation: s, .. }) = self.sensitivity() else {
            return Interval { low: self.grid.rate_qps(step + 1), high: above, confidence };
        };
        let seeds = seeds.min(failed.runs.len());
        let n = seeds as f64;
        let (error, left) = if s <= MOST_LOGNORMAL {
            let error = (s.powi(2) / n + s.powi(4) / (2.0 * (n - 1.0))).sqrt();
            let stretches = allowed * held.queries() as f64 / (4.0 * relaxation(below / stable_qps, variation));
            let error = error.max(stretches.sqrt().recip().min(1.0));
            (error, (allowed.ln() - (mean + s.powi(2) / 2.0)) / slope)
        } else {
            // Of shares that differ by so much the mean is that of the largest one, and known to its own size.
            (1.0, 0.0)
        };
        let half = students_t(seeds - 1, CONFIDENCE) * error / slope;
        let centre = below.ln() + part * (above / below).ln() + left;
        Interval {
            low: (centre - half).exp().min(below),
            high: (centre + half).exp().min(stable_qps).max(below),
            confidence,
        }
    }

    /// The two neighbouring rates with their runs: one held and one failed.
    fn around(&self) -> Option<(f64, &Together, f64, &Together)> {
        let ((below, held), (above, failed)) = (self.held.as_ref()?, self.failed.as_ref()?);
        Some((self.grid.rate_qps(*below), held, self.grid.rate_qps(*above), failed))
    }
}
