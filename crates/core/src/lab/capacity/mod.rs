//! The one search for a capacity: how much a policy sustains, and how sure that is.
//!
//! A capacity is the highest rate at and below which every run that was tried came up to the objective
//! ([`Objective`](super::Objective)). Runs are [long enough](RunLength) to tell; no rate above the limit of the stable
//! region is ever tried. One run knows the capacity of its own arrivals only, so there are several seeds, and what is
//! told is their median with its interval:
//!
//! ```text
//!   seeds   1 ······x          the median's 95 % interval is that between the second and the ninth of ten,
//!           2 ········x        however capacities are distributed
//!           3 ·····x
//!           …                 lowest failing rate: where the first of them fell
//! ```
//!
//! The first seed is searched from the top of the grid. The others begin where it ended, and each of them tries one
//! more rate further below: should the policy fail there, its verdicts are not monotone, which is told as a flip. The
//! median is played once more, far longer, and from there the limit is looked for in runs as long: downwards where it doesn't
//! last, upwards where it does, since a policy that learns may need longer than a searched run to settle.
//! Simulations' capacities and validations' predictions come from here, and mean the same.

mod confirm;
mod judge;
mod length;
mod played;
mod probe;
mod search;

pub use judge::Judge;
pub(crate) use length::COVERED_QUERIES;
pub use length::RunLength;
pub use played::{Played, play_all};

use rayon::prelude::*;

use self::confirm::confirm;
use self::judge::LIMITS_AHEAD;
use self::length::Covering;
use self::probe::Aim;
use self::search::{RateGrid, SearchContext, SeedSearch};
use super::{Criterion, LabError, Objective};
use crate::base::quantile::nearest_rank;
use crate::base::stats::{Interval, quantile_interval};
use crate::base::time::Nanos;
use crate::sched::{PolicyFactory, Shed};
use crate::sim::{Arrivals, Experiment, SimError, certificate};

/// How sure the interval of the median is, where there are seeds enough.
const CONFIDENCE: f64 = 0.95;
/// How many steps below what they have found the seeds after the first try one more, each another: from 1 to 40 %.
const LOOKS_BELOW: [u32; 9] = [2, 4, 6, 10, 15, 22, 35, 60, 100];
/// The clairvoyant bound of no miss looks at so many of the first arrivals.
const BOUND_QUERIES: usize = 50_000;

/// A search for the capacities of policies on one experiment.
#[derive(Clone, Debug)]
pub struct CapacitySearch<'a> {
    experiment: &'a Experiment,
    criterion: Criterion,
    length: Covering,
    /// Given arrivals end before they could tell of rates above this.
    known_qps: f64,
    /// Above this rate no scheduler is stable in the long run.
    pub region_qps: f64,
    /// Where no miss at all is asked for, too: what no scheduler exceeds then in half of the seeds.
    no_miss_bound_qps: Option<f64>,
}

/// What a policy sustains.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// The policy's name.
    pub policy: String,
    /// What its runs came up to.
    pub criterion: Criterion,
    /// The median over the seeds: of several the one in the middle, of an even number the lesser. 0 if most seeds fail at
    /// every rate.
    pub qps: f64,
    /// Where the median of all seeds lies, by those that were played; without what the longest runs have shown not to hold,
    /// and with what they have shown to.
    pub interval: Interval,
    /// The lowest rate that failed, with any seed; `None` if none did.
    pub failing_qps: Option<f64>,
    /// How often, over all seeds, a rate met the objective though a lower one did not.
    pub flips: usize,
    /// What no scheduler exceeds.
    pub bound_qps: f64,
    /// Above this rate no scheduler is stable in the long run.
    pub region_qps: f64,
    /// Above this rate the policy is not: it is less where it makes no batches and the machine could, or where not every query
    /// may run everywhere, and more where late queries are dropped. No rate above is tried.
    pub stable_qps: f64,
    /// Queries of the search's runs at this rate.
    pub queries: usize,
    /// Queries of the longest run that held at this rate.
    pub confirmed_queries: usize,
    /// Runs at each rate, with different seeds.
    pub seeds: usize,
    /// Whether the arrivals end before they could tell of higher rates: then the capacity is at least this.
    pub is_cut_off: bool,
    /// The share of the slowest change in the arrivals (the recording, or twenty cycles of bursts) that a run of the search
    /// played. Below 1 the capacity is likely too high, and how far is not known.
    pub covered_share: f64,
}

impl Capacity {
    /// Its share of what no scheduler exceeds.
    #[must_use]
    pub fn share_of_bound(&self) -> f64 {
        self.qps / self.bound_qps
    }

    /// Where the median of all seeds lies; `None` if the runs did not cover their arrivals.
    #[must_use]
    pub fn known_interval(&self) -> Option<Interval> {
        Some(self.interval).filter(|_| self.covered_share >= 1.0)
    }

    /// How many limits the longest run that held at this rate lasted; 0 of no rate.
    #[must_use]
    pub fn limits(&self) -> f64 {
        if self.qps > 0.0 { self.confirmed_queries as f64 / self.qps / self.criterion.limit.as_secs() } else { 0.0 }
    }

    /// Whether that is shorter than a run should be.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.qps > 0.0 && self.limits() < 0.99 * LIMITS_AHEAD
    }
}

/// A policy's capacity under the objective, and under no miss where that is something else.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacities {
    /// By the objective.
    pub objective: Capacity,
    /// With no miss at all, where that was [asked for](CapacitySearch::beside_no_miss) and is something else.
    pub no_miss: Option<Capacity>,
}

impl Capacities {
    /// One or both, the objective's first.
    pub fn iter(&self) -> impl Iterator<Item = &Capacity> {
        std::iter::once(&self.objective).chain(&self.no_miss)
    }
}

/// A policy, the rates at which it is tried, and what its queries can take at most where it promises something.
struct Candidate<'p> {
    policy: &'p dyn PolicyFactory,
    grid: RateGrid,
    /// Above this rate it is not stable.
    stable_qps: f64,
    dearest: Option<Vec<Nanos>>,
}

/// What one seed has found for the objective, and for no miss where that is asked for, too.
type BySeed = (Found, Option<Found>);

/// What one seed has found for one aim.
struct Found {
    qps: f64,
    step: Option<u32>,
    failing_qps: Option<f64>,
    flips: usize,
}

impl<'a> CapacitySearch<'a> {
    /// A search on these arrivals, one run a seed; drawn ones are as many as a run needs.
    ///
    /// # Errors
    /// If everything costs nothing, or given arrivals are too few to tell of any rate.
    pub fn new(experiment: &'a Experiment, objective: Objective, length: RunLength) -> Result<Self, LabError> {
        let criterion = objective.within(experiment.deadline);
        let region_qps = experiment.region().ok_or(LabError::NothingToSchedule)?.rate_qps;
        let available = experiment.arrivals.iter().filter_map(Arrivals::available).min();
        let known_qps = match available {
            Some(available) => length
                .highest_qps(&criterion, available)
                .ok_or(LabError::TooFewArrivals { arrivals: available, criterion })?,
            None => f64::INFINITY,
        };
        let time_scale = experiment.arrivals.first().and_then(Arrivals::time_scale);
        let length = Covering::new(length, time_scale);
        Ok(Self { experiment, criterion, length, known_qps, region_qps, no_miss_bound_qps: None })
    }

    /// How many runs there are at each rate.
    #[must_use]
    pub fn seeds(&self) -> usize {
        self.experiment.arrivals.len()
    }

    /// The same, which also finds the highest rate without any miss, and what bounds that.
    #[must_use]
    pub fn beside_no_miss(self) -> Self {
        let bounds = self.experiment.clairvoyant_qps(BOUND_QUERIES, self.region_qps);
        let mut bounds: Vec<f64> = bounds.into_iter().map(|bound| bound.unwrap_or(self.region_qps)).collect();
        bounds.sort_by(f64::total_cmp);
        Self { no_miss_bound_qps: Some(nearest_rank(&bounds, 0.5).unwrap_or(self.region_qps)), ..self }
    }

    /// The capacity of one policy.
    ///
    /// # Errors
    /// If the policy can't be made for this machine, or breaks its contract.
    pub fn of(&self, policy: &dyn PolicyFactory) -> Result<Capacities, SimError> {
        let mut found = self.of_all(&[policy], &|| ())?;
        // One policy, one answer.
        Ok(found.remove(0))
    }

    /// The capacities of several, in their order; `done` hears of each seed of each.
    ///
    /// # Errors
    /// If a policy can't be made for this machine, or breaks its contract; if it is [interrupted](crate::live::interrupt).
    pub fn of_all(
        &self,
        policies: &[&dyn PolicyFactory],
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<Capacities>, SimError> {
        self.of_each(policies, done).into_iter().collect()
    }

    /// The same, each by itself: where it is [interrupted](crate::live::interrupt), the capacities that were found by then are
    /// there, and the others say so.
    pub fn of_each(
        &self,
        policies: &[&dyn PolicyFactory],
        done: &(dyn Fn() + Sync),
    ) -> Vec<Result<Capacities, SimError>> {
        policies.par_iter().map(|&policy| self.over_all_seeds(policy, done)).collect()
    }

    /// One policy's: its first seed, then the others side by side, which begin where that has ended.
    fn over_all_seeds(&self, policy: &dyn PolicyFactory, done: &(dyn Fn() + Sync)) -> Result<Capacities, SimError> {
        let candidate = self.candidate(policy);
        let seed = |number: usize, begin: Option<&BySeed>| {
            let found = self.of_seed(&candidate, number, begin)?;
            done();
            Ok::<_, SimError>(found)
        };
        let first = seed(0, None)?;
        let others: Vec<Result<BySeed, SimError>> =
            (1..self.seeds()).into_par_iter().map(|number| seed(number, Some(&first))).collect();
        let others = others.into_iter().collect::<Result<Vec<_>, _>>()?;
        self.sum_up(&candidate, std::iter::once(first).chain(others).collect())
    }

    /// By policy, the capacity of the first seed, not played any longer: enough to tell which are out of the question.
    /// `done` hears of each.
    ///
    /// # Errors
    /// As [`of_all`](Self::of_all).
    pub fn estimate_capacity_coarse(
        &self,
        policies: &[&dyn PolicyFactory],
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<f64>, SimError> {
        let coarse = |&policy: &&dyn PolicyFactory| {
            let (found, _) = self.of_seed(&self.candidate(policy), 0, None)?;
            done();
            Ok(found.qps)
        };
        let found: Vec<Result<f64, SimError>> = policies.par_iter().map(coarse).collect();
        found.into_iter().collect()
    }

    fn candidate<'p>(&self, policy: &'p dyn PolicyFactory) -> Candidate<'p> {
        let experiment = self.experiment;
        // What is dropped costs nothing, and so much may be dropped as may be late.
        let dropped = if policy.sheds() == Shed::Nothing { 0.0 } else { self.criterion.late_share() };
        let region_qps = experiment.region_of(policy, dropped).map_or(self.region_qps, |region| region.rate_qps);
        let most_qps = if dropped > 0.0 { f64::INFINITY } else { self.region_qps };
        let stable_qps = region_qps.min(most_qps);
        Candidate {
            policy,
            grid: RateGrid { top_qps: stable_qps.min(self.known_qps) },
            stable_qps,
            // What is certified is one machine.
            dearest: match experiment.cluster {
                Some(_) => None,
                None => certificate::dearest(&experiment.queries, policy, &experiment.model),
            },
        }
    }

    /// The seed of this number, which begins where the first has ended.
    fn of_seed(&self, candidate: &Candidate<'_>, seed: usize, begin: Option<&BySeed>) -> Result<BySeed, SimError> {
        let Self { experiment, criterion, length, .. } = *self;
        let &Candidate { policy, grid, ref dearest, .. } = candidate;
        let context = SearchContext { experiment, policy, criterion, length, grid, dearest: dearest.as_deref() };
        let mut search = SeedSearch::new(context, &experiment.arrivals[seed]);
        let look_below = seed.checked_sub(1).map(|i| LOOKS_BELOW[i % LOOKS_BELOW.len()]);
        let mut one = |aim, begin| {
            let step = search.highest(aim, begin, look_below)?;
            Ok::<_, SimError>(Found {
                qps: step.map_or(0.0, |step| grid.rate_qps(step)),
                step,
                failing_qps: search.lowest_failure_qps(aim),
                flips: search.flips(aim),
            })
        };
        let objective = one(Aim::Objective, begin.and_then(|(objective, _)| objective.step).unwrap_or(0))?;
        if !self.asks_no_miss_beside() {
            return Ok((objective, None));
        }
        let begin = begin.and_then(|(_, no_miss)| no_miss.as_ref()?.step).or(objective.step).unwrap_or(0);
        let no_miss = one(Aim::NoMiss, begin)?;
        Ok((objective, Some(no_miss)))
    }

    fn asks_no_miss_beside(&self) -> bool {
        self.no_miss_bound_qps.is_some() && self.criterion.objective != Objective::NoMiss
    }

    fn sum_up(&self, candidate: &Candidate<'_>, found: Vec<BySeed>) -> Result<Capacities, SimError> {
        let (objective, no_miss): (Vec<Found>, Vec<Option<Found>>) = found.into_iter().unzip();
        let no_miss: Vec<Found> = no_miss.into_iter().flatten().collect();
        let mut capacity =
            self.over_seeds(candidate, self.criterion, &objective, self.bound_qps(self.criterion.objective));
        confirm(self, candidate, &objective, &mut capacity)?;
        let no_miss = self.asks_no_miss_beside().then(|| {
            let criterion = Objective::NoMiss.within(self.criterion.deadline);
            let mut found = self.over_seeds(candidate, criterion, &no_miss, self.bound_qps(Objective::NoMiss));
            // Where the objective is the weaker one, what does not keep it in a longer run has misses there.
            if self.criterion.limit >= self.criterion.deadline && found.qps > capacity.qps {
                found.qps = capacity.qps;
                found.interval.low = found.interval.low.min(capacity.qps);
                found.interval.high = found.interval.high.min(capacity.interval.high);
            }
            found
        });
        Ok(Capacities { objective: capacity, no_miss })
    }

    fn bound_qps(&self, objective: Objective) -> f64 {
        self.no_miss_bound_qps.filter(|_| objective == Objective::NoMiss).unwrap_or(self.region_qps)
    }

    fn over_seeds(&self, candidate: &Candidate<'_>, criterion: Criterion, found: &[Found], bound_qps: f64) -> Capacity {
        let mut ascending: Vec<f64> = found.iter().map(|found| found.qps).collect();
        ascending.sort_by(f64::total_cmp);
        let qps = nearest_rank(&ascending, 0.5).unwrap_or(0.0);
        let none = Interval { low: 0.0, high: 0.0, confidence: 0.0 };
        // Runs are as long as the objective of the search needs, whatever else is read off them.
        let queries = self.length.searched(&self.criterion, qps);
        Capacity {
            policy: candidate.policy.name().to_owned(),
            criterion,
            qps,
            interval: quantile_interval(&ascending, 0.5, CONFIDENCE).unwrap_or(none),
            failing_qps: found.iter().filter_map(|found| found.failing_qps).min_by(f64::total_cmp),
            flips: found.iter().map(|found| found.flips).sum(),
            bound_qps,
            region_qps: self.region_qps,
            stable_qps: candidate.stable_qps,
            queries,
            confirmed_queries: queries,
            seeds: found.len(),
            is_cut_off: qps >= self.known_qps,
            covered_share: self.length.covered_share(&self.criterion, qps),
        }
    }
}
