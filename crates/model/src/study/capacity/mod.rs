//! The search for the capacity of a policy and its confidence interval.
//!
//! A capacity is the highest rate found that meets the [`Objective`](super::Objective). Runs are [long
//! enough](RunLength) to decide. The rates from half of it on hold without gaps. At the stability limit the load is 1:
//! no rate holds there, by arithmetic, and none is tried.
//!
//! ```text
//!   1  short runs of the first seed     from the top of the grid down: roughly where the limit is
//!   2  long runs of several seeds       the limit of all of them together, and the interval (see `confirm`)
//!   3  short runs of other seeds        at lower rates, down to half of it: long runs decide whether a failure is a gap; then
//!                                       the search goes on below it
//! ```
//!
//! Policies that learn may settle only in long runs. The objective "no miss at all" is not a share of many queries: its
//! limit is searched for each seed, and the answer is the median with an interval by order statistics. [`QueryError`] is
//! the error from the sample of measured queries. Simulated capacities and the predictions of a validation both come
//! from this search.

mod best;
mod closed_forms;
mod confirm;
mod judge;
mod length;
mod played;
mod probe;
mod sampled;
mod search;
mod stationary;

pub use closed_forms::{ClosedForm, Coverage};
pub use judge::Judge;
pub(crate) use length::COVERED_QUERIES;
pub use length::{RunLength, relaxation};
pub use played::{Played, play_all};
pub use sampled::QueryError;
pub(in crate::study) use sampled::resampled;

use rayon::prelude::*;

use self::confirm::LongRuns;
use self::length::Covering;
use self::length::LEAST_LIMITS;
use self::search::{RateGrid, SearchContext, SeedSearch};
use super::{Criterion, Objective, StudyError, Verdict};
use crate::base::quantile::nearest_rank;
use crate::base::stats::{Interval, quantile_interval};
use crate::sched::{PolicyFactory, Shed};
use crate::sim::{Arrivals, Experiment, SimError, SimQuery};
use crate::traffic::ArrivalProcess;

/// Confidence of intervals, if there are enough seeds.
const CONFIDENCE: f64 = 0.95;
/// Ratio between neighbouring rates of a search.
const RATIO: f64 = 1.005;
/// Shares of a limit at which short runs look for gaps.
const LOOKS_BELOW: [f64; 7] = [0.985, 0.96, 0.92, 0.85, 0.75, 0.62, 0.5];
/// Number of queries that tell p99.9 at a tenth of a rate.
const TAIL_QUERIES: usize = 100_000;

/// A search for the capacities of policies on one experiment.
#[derive(Clone, Debug)]
pub struct CapacitySearch<'a> {
    experiment: &'a Experiment,
    criterion: Criterion,
    length: Covering,
    /// The highest rate that the given arrivals can decide.
    known_qps: f64,
    /// Above this rate no scheduler is stable.
    pub region_qps: f64,
    /// Whether the queries are a sample whose error is estimated.
    is_sampled: bool,
    /// Ratio between neighbouring rates.
    ratio: f64,
}

/// The capacity of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// The policy's name.
    pub policy: String,
    /// The criterion of its runs.
    pub criterion: Criterion,
    /// The highest rate at which all seeds together held; for no miss, the median over seeds. It may be 0.
    pub qps: f64,
    /// The longest runs at this rate in one verdict: counts of all of them, means of their percentiles. `None` without a rate.
    pub verdict: Option<Verdict>,
    /// The confidence interval over seeds. It contains `qps`, and its width is never 0.
    pub interval: Interval,
    /// The next higher rate, which failed; `None` if `qps` is the highest rate allowed.
    pub failing_qps: Option<f64>,
    /// Number of rates that held although a lower rate failed.
    pub flips: usize,
    /// The error from the sample of queries; `None` if it was not requested.
    pub query_error: Option<QueryError>,
    /// The bound on all schedulers.
    pub bound_qps: f64,
    /// Above this rate no scheduler is stable.
    pub region_qps: f64,
    /// Above this rate the policy is unstable, and no rate is tried.
    ///
    /// It is below `region_qps` if the policy forgoes batches or restricts placement, and above if it drops late
    /// queries.
    pub stable_qps: f64,
    /// Number of queries in a run of the search at this rate.
    pub queries: usize,
    /// Number of queries in each of the longest runs that held at this rate.
    pub confirmed_queries: usize,
    /// Number of these runs, which have different seeds.
    pub seeds: usize,
    /// Whether the arrivals are too few for higher rates. The capacity is then a lower bound.
    pub is_cut_off: bool,
    /// The share of the slowest change in the arrivals (the recording, or twenty cycles of bursts) that a run of the
    /// search covers. Below 1 the capacity is probably too high, by an unknown amount.
    pub covered_share: f64,
}

impl Capacity {
    /// The capacity as a share of the bound.
    #[must_use]
    pub fn share_of_bound(&self) -> f64 {
        self.qps / self.bound_qps
    }

    /// The [total interval](Self::total_interval); `None` if the runs did not cover their arrivals.
    #[must_use]
    pub fn known_interval(&self) -> Option<Interval> {
        Some(self.total_interval()).filter(|_| self.covered_share >= 1.0)
    }

    /// The confidence interval over seeds and over samples of queries.
    #[must_use]
    pub fn total_interval(&self) -> Interval {
        let Interval { low, high, confidence } = self.interval;
        let Some(QueryError { share, .. }) = self.query_error.filter(|_| self.qps > 0.0) else { return self.interval };
        let together = |seeds: f64| (seeds * seeds + share * share).sqrt();
        let down = together(1.0 - low / self.qps).min(1.0);
        let up = together(high / self.qps - 1.0);
        Interval { low: self.qps * (1.0 - down), high: (self.qps * (1.0 + up)), confidence }
    }

    /// Half-width of the [`interval`](Self::interval), as a share of the capacity; `None` for one seed or no capacity.
    #[must_use]
    pub fn seeds_error(&self) -> Option<f64> {
        let is_known = self.qps > 0.0 && self.seeds > 1;
        is_known.then(|| 0.5 * (self.interval.high - self.interval.low) / self.qps)
    }

    /// The length of the longest runs that held at this rate, in limits, all together; 0 without a rate.
    #[must_use]
    pub fn limits(&self) -> f64 {
        let queries = (self.seeds * self.confirmed_queries) as f64;
        if self.qps > 0.0 { queries / self.qps / self.criterion.limit.as_secs() } else { 0.0 }
    }

    /// Whether that is shorter than they should be.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.qps > 0.0 && self.limits() < 0.99 * LEAST_LIMITS
    }
}

/// A policy with its rate grid.
struct Candidate<'p> {
    policy: &'p dyn PolicyFactory,
    grid: RateGrid,
    /// Above this rate the policy is unstable.
    stable_qps: f64,
    /// Whether a query takes longer than the deadline, so that p99.9 at a tenth of a rate may matter.
    has_long_tail: bool,
    /// Squared coefficient of variation of the service times.
    variation: f64,
}

/// The limit of one seed.
struct Found {
    step: Option<u32>,
    flips: usize,
}

impl<'a> CapacitySearch<'a> {
    /// A search with one run per seed of the experiment's arrivals. Drawn arrivals are extended as needed.
    ///
    /// # Errors
    /// If all costs are 0, or given arrivals are too few for every rate.
    pub fn new(experiment: &'a Experiment, objective: Objective, length: RunLength) -> Result<Self, StudyError> {
        let criterion = objective.within(experiment.deadline);
        let region_qps = experiment.region().ok_or(StudyError::NothingToSchedule)?.rate_qps;
        let available = experiment.arrivals.iter().filter_map(Arrivals::available).min();
        let known_qps = match available {
            Some(available) => length
                .highest_qps(&criterion, available)
                .ok_or(StudyError::TooFewArrivals { arrivals: available, criterion: Box::new(criterion) })?,
            None => f64::INFINITY,
        };
        let time_scale = experiment.arrivals.first().and_then(Arrivals::time_scale);
        let process = experiment.arrivals.first().and_then(Arrivals::process);
        let repeats = matches!(process, Some(ArrivalProcess::Recorded(_)));
        let length = Covering::new(length, time_scale, repeats);
        Ok(Self { experiment, criterion, length, known_qps, region_qps, is_sampled: false, ratio: RATIO })
    }

    /// Number of runs at each rate.
    #[must_use]
    pub fn seeds(&self) -> usize {
        self.experiment.arrivals.len()
    }

    /// This search, extended to the error from the sample of queries.
    #[must_use]
    pub fn of_sampled_queries(self) -> Self {
        Self { is_sampled: true, ..self }
    }

    /// The capacity of one policy.
    ///
    /// # Errors
    /// If the policy does not fit the machine or breaks its contract.
    pub fn of(&self, policy: &dyn PolicyFactory) -> Result<Capacity, SimError> {
        let mut found = self.of_all(&[policy], &|| ())?;
        Ok(found.remove(0))
    }

    /// The capacities of several policies, in their order. `done` is called for each seed of each policy.
    ///
    /// # Errors
    /// If a policy does not fit the machine or breaks its contract, or an [interrupt](crate::base::interrupt) came.
    pub fn of_all(&self, policies: &[&dyn PolicyFactory], done: &(dyn Fn() + Sync)) -> Result<Vec<Capacity>, SimError> {
        self.of_each(policies, done).into_iter().collect()
    }

    /// The result of each policy. After an [interrupt](crate::base::interrupt) unfinished policies have errors.
    pub fn of_each(
        &self,
        policies: &[&dyn PolicyFactory],
        done: &(dyn Fn() + Sync),
    ) -> Vec<Result<Capacity, SimError>> {
        policies.par_iter().map(|&policy| self.over_all_seeds(policy, done)).collect()
    }

    /// The capacity of a policy: short runs of the first seed, then long runs.
    fn over_all_seeds(&self, policy: &dyn PolicyFactory, done: &(dyn Fn() + Sync)) -> Result<Capacity, SimError> {
        let candidate = self.candidate(policy);
        if self.criterion.late_share() == 0.0 {
            return self.without_a_miss(&candidate, done);
        }
        let first = self.seed_search(&candidate, 0, &self.short_runs()).highest(0, None)?;
        done();
        let found = self.confirmed(&candidate, first)?;
        (1..self.seeds()).for_each(|_| done());
        Ok(found)
    }

    /// The capacity of each policy for the first seed in short runs, to exclude weak policies. `done` is called for
    /// each policy.
    ///
    /// # Errors
    /// The errors of [`of_all`](Self::of_all).
    pub fn estimate_capacity_coarse(
        &self,
        policies: &[&dyn PolicyFactory],
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<f64>, SimError> {
        let coarse = |&policy: &&dyn PolicyFactory| {
            let candidate = self.candidate(policy);
            let step = self.seed_search(&candidate, 0, &self.short_runs()).highest(0, None)?;
            done();
            Ok(candidate.qps(step))
        };
        let found: Vec<Result<f64, SimError>> = policies.par_iter().map(coarse).collect();
        found.into_iter().collect()
    }

    fn candidate<'p>(&self, policy: &'p dyn PolicyFactory) -> Candidate<'p> {
        let experiment = self.experiment;
        // Dropped queries cost nothing, and the allowed late share may be dropped.
        let dropped = if policy.sheds() == Shed::Nothing { 0.0 } else { self.criterion.late_share() };
        let region_qps = experiment.region_of(policy, dropped).map_or(self.region_qps, |region| region.rate_qps);
        let most_qps = if dropped > 0.0 { f64::INFINITY } else { self.region_qps };
        let stable_qps = region_qps.min(most_qps);
        let slowest = |query: &SimQuery| {
            let classes = experiment.model.machine.classes();
            let used = classes.filter(|&class| policy.may_run_on(class, &query.estimate));
            used.map(|class| query.service[class].alone).max().unwrap_or_default()
        };
        Candidate {
            policy,
            grid: RateGrid::new(stable_qps, self.known_qps, self.ratio),
            stable_qps,
            // A machine that is hardly used answers all others within some deadlines.
            has_long_tail: self.criterion.has_tail()
                && experiment.queries.iter().any(|query| slowest(query) > self.criterion.deadline),
            variation: experiment.variation(policy),
        }
    }

    /// The criterion of a policy's runs at a rate: p99.9 may be limited by its value at a tenth of the rate.
    ///
    /// # Errors
    /// The errors of [`of`](Self::of).
    pub fn criterion_of(&self, policy: &dyn PolicyFactory, rate_qps: f64) -> Result<Criterion, SimError> {
        self.criterion_at(&self.candidate(policy), rate_qps)
    }

    fn criterion_at(&self, candidate: &Candidate<'_>, rate_qps: f64) -> Result<Criterion, SimError> {
        let mut criterion = self.criterion;
        if candidate.has_long_tail {
            let (arrivals, rate_qps) = (self.experiment.arrivals[0].first(TAIL_QUERIES), 0.1 * rate_qps);
            let judge = Judge::new(criterion, arrivals.len(), rate_qps);
            match self.experiment.play(candidate.policy, rate_qps, &arrivals, judge, |_| false) {
                Ok(judge) => criterion.p999_at_a_tenth = Some(judge.verdict().p999),
                // No rate near the end of simulated time holds anyway.
                Err(SimError::TooLong { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(criterion)
    }

    /// Number of queries in a short run at a rate.
    fn short_runs(&self) -> impl Fn(f64) -> usize + Sync + use<> {
        let Self { criterion, length, .. } = *self;
        move |rate_qps| length.searched(&criterion, rate_qps)
    }

    fn seed_search<'s>(
        &'s self,
        candidate: &'s Candidate<'_>,
        seed: usize,
        queries: &'s (dyn Fn(f64) -> usize + Sync),
    ) -> SeedSearch<'s> {
        let experiment = self.experiment;
        let context = SearchContext { search: self, candidate, queries };
        SeedSearch::new(context, &experiment.arrivals[seed % experiment.arrivals.len()])
    }

    /// The steps at shares of the rate of `found` at which a short run of another seed fails.
    fn suspects(&self, candidate: &Candidate<'_>, found: u32) -> Result<Vec<u32>, SimError> {
        let suspect = |(i, share): (usize, &f64)| {
            let below = candidate.grid.step_at(share * candidate.grid.rate_qps(found));
            let holds = self.seed_search(candidate, i + 1, &self.short_runs()).meets(below)?;
            Ok((!holds).then_some(below))
        };
        let suspects: Vec<Result<Option<u32>, SimError>> = LOOKS_BELOW.par_iter().enumerate().map(suspect).collect();
        suspects.into_iter().filter_map(Result::transpose).collect()
    }

    /// The limit of long runs of several seeds.
    fn confirmed(&self, candidate: &Candidate<'_>, first: Option<u32>) -> Result<Capacity, SimError> {
        let begin = first.unwrap_or(candidate.grid.lowest());
        let long = LongRuns::around(self, candidate, candidate.grid.rate_qps(begin));
        let confirmed = long.limit(begin)?;
        let (qps, confirmed_queries) = confirmed.held();
        let query_error = if self.is_sampled && qps > 0.0 {
            sampled::query_error(self, candidate, qps, confirmed.sensitivity().as_ref())?
        } else {
            None
        };
        Ok(Capacity {
            policy: candidate.policy.name().to_owned(),
            criterion: confirmed.criterion().unwrap_or(self.criterion),
            qps,
            verdict: confirmed.verdict(),
            interval: confirmed.interval(candidate.stable_qps, candidate.variation),
            failing_qps: confirmed.failing_qps(),
            flips: confirmed.flips,
            query_error,
            bound_qps: self.region_qps,
            region_qps: self.region_qps,
            stable_qps: candidate.stable_qps,
            queries: self.length.searched(&self.criterion, qps),
            confirmed_queries,
            seeds: long.seeds,
            is_cut_off: qps >= self.known_qps,
            covered_share: self.length.covered_share(&self.criterion, qps),
        })
    }

    /// The capacity under no miss: the median of each seed's limit in long runs.
    fn without_a_miss(&self, candidate: &Candidate<'_>, done: &(dyn Fn() + Sync)) -> Result<Capacity, SimError> {
        let queries = self.short_runs();
        let begin = self.seed_search(candidate, 0, &queries).highest(0, None)?.unwrap_or(0);
        let long = LongRuns::around(self, candidate, candidate.grid.rate_qps(begin));
        let queries = |rate_qps| long.queries(rate_qps);
        let of_seed = |seed: usize| {
            let look_below = seed.checked_sub(1).map(|other| LOOKS_BELOW[other % LOOKS_BELOW.len()]);
            let found = self.seed_search(candidate, seed, &queries).found(begin, look_below);
            done();
            found
        };
        let found: Vec<Result<Found, SimError>> = (0..long.seeds).into_par_iter().map(of_seed).collect();
        (long.seeds..self.seeds()).for_each(|_| done());
        let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut capacity = self.median(candidate, &found);
        capacity.queries = self.length.searched(&self.criterion, capacity.qps);
        capacity.confirmed_queries = self.experiment.arrivals[0].first(long.queries(capacity.qps)).len();
        if self.is_sampled && capacity.qps > 0.0 {
            capacity.query_error = sampled::query_error(self, candidate, capacity.qps, None)?;
        }
        Ok(capacity)
    }

    /// The median over the limits of seeds.
    fn median(&self, candidate: &Candidate<'_>, found: &[Found]) -> Capacity {
        let grid = candidate.grid;
        // Rates ascend as steps descend; no step at all is the lowest rate.
        let mut ascending: Vec<Option<u32>> = found.iter().map(|found| found.step).collect();
        ascending.sort_by_key(|step| std::cmp::Reverse(step.unwrap_or(u32::MAX)));
        let step = nearest_rank(&ascending, 0.5).flatten();
        let above = |step: Option<u32>| match step {
            Some(0) => candidate.stable_qps.min(self.known_qps),
            Some(step) => grid.rate_qps(step - 1),
            None => grid.rate_qps(grid.lowest()),
        };
        let interval = quantile_interval(&ascending, 0.5, CONFIDENCE);
        let interval = interval.map(|Interval { low, high, confidence }| {
            // The top of the grid may hold although the true limit is slightly lower.
            let low = low.map(|low| low + u32::from(low == 0));
            Interval { low: candidate.qps(low), high: above(high), confidence }
        });
        Capacity {
            policy: candidate.policy.name().to_owned(),
            criterion: self.criterion,
            qps: candidate.qps(step),
            verdict: None,
            interval: interval.unwrap_or(Interval { low: 0.0, high: 0.0, confidence: 0.0 }),
            failing_qps: step.is_none_or(|step| step > 0).then(|| above(step)),
            flips: found.iter().map(|found| found.flips).sum(),
            query_error: None,
            bound_qps: self.region_qps,
            region_qps: self.region_qps,
            stable_qps: candidate.stable_qps,
            queries: 0,
            confirmed_queries: 0,
            seeds: found.len(),
            is_cut_off: candidate.qps(step) >= self.known_qps,
            covered_share: self.length.covered_share(&self.criterion, candidate.qps(step)),
        }
    }
}

impl Candidate<'_> {
    /// The rate of a step; 0 for `None`.
    fn qps(&self, step: Option<u32>) -> f64 {
        step.map_or(0.0, |step| self.grid.rate_qps(step))
    }
}
