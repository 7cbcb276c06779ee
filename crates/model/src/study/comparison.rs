//! Comparison of policies on one experiment: sustained rates, and delays at each rate.

use std::fmt;

use super::capacity::{Capacity, CapacitySearch, Played, RunLength, play_all};
use super::objective::Objective;
use super::progress::{Progress, in_pieces};
use crate::base::interrupt::interrupted;
use crate::base::stats::significant;
use crate::sched::PolicyFactory;
use crate::sim::{Arrivals, Experiment, SimError};
use crate::study::error::StudyError;
use crate::study::forecast::{Forecast, Planned, forecast};
use crate::traffic::TimeScale;

/// Default range of rates: from a share of the lowest capacity to a multiple of the highest.
const SHARES_OF_CAPACITY: (f64, f64) = (0.4, 1.05);
/// Default range of rates without capacities, as shares of the highest stable rate.
const SHARES_OF_REGION: (f64, f64) = (0.02, 1.0);
/// With default rates, a policy is simulated up to this multiple of its capacity. Beyond it delays only grow.
const HOPELESS: f64 = 1.5;
/// Most queries of a delay run that is prolonged to cover its arrivals, for several rates and for one: a tenth of a second of
/// work, and a second.
const COVERED_DELAYS: (f64, f64) = (2e6, 1e7);

/// The policies to compare, and how.
pub struct Comparison {
    /// Machine, queries and arrivals.
    pub experiment: Experiment,
    /// The policies, in the order of the tables.
    pub policies: Vec<Box<dyn PolicyFactory>>,
    /// The requirement for a rate to count as sustained.
    pub objective: Objective,
    /// Length of the runs of the capacity search.
    pub length: RunLength,
    /// Whether capacities are searched.
    pub has_capacities: bool,
    /// Whether delays are simulated.
    pub has_delays: bool,
    /// Whether delay runs are prolonged to cover the slowest change in their arrivals.
    pub covers_arrivals: bool,
    /// Rates at which delays are simulated; `None` for [`NUM_RATES`](Self::NUM_RATES) rates around the capacities.
    pub rates_qps: Option<Vec<f64>>,
    /// Above this rate no scheduler is stable; infinite if all costs are 0.
    pub region_qps: f64,
}

/// The results of a [`Comparison`], up to its end or an interrupt.
#[derive(Debug, Default)]
pub struct PolicyResults {
    /// The capacities of each policy.
    pub capacities: Vec<Capacity>,
    /// The rates at which delays were simulated.
    pub rates_qps: Vec<f64>,
    /// One entry per policy, rate and seed.
    pub played: Vec<Played>,
    /// For each policy the forecast at its highest rate that is stable and has no miss.
    pub forecasts: Vec<PolicyForecast>,
    /// Reasons for missing results.
    pub notes: Vec<String>,
}

/// Delays of a policy with their 90 % intervals.
#[derive(Clone, Debug)]
pub struct PolicyForecast {
    /// The policy's name.
    pub policy: String,
    /// Arrival rate, in queries per second.
    pub rate_qps: f64,
    /// The delays, over other seeds, other samples of the queries and the model's errors.
    pub forecast: Forecast,
}

impl PolicyResults {
    /// The highest rate of a policy up to `stable_qps` at which, as at all lower ones, no query missed.
    fn kept_qps(&self, policy: &str, stable_qps: f64) -> Option<f64> {
        let mut ascending = self.rates_qps.clone();
        ascending.sort_by(f64::total_cmp);
        let at = |rate_qps: f64| {
            let of_rate = move |run: &&Played| run.policy == policy && run.rate_qps == rate_qps;
            self.played.iter().filter(of_rate)
        };
        let is_kept = |&&rate_qps: &&f64| {
            rate_qps <= stable_qps && at(rate_qps).next().is_some() && at(rate_qps).all(|run| run.summary.missed == 0)
        };
        ascending.iter().take_while(is_kept).last().copied()
    }

    /// Whether there is nothing to report.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.capacities.is_empty() && self.played.is_empty() && self.notes.is_empty()
    }
}

impl Comparison {
    /// Default number of rates.
    pub const NUM_RATES: usize = 12;

    /// Capacities and delays of these policies; the objective is p99 within the experiment's deadline.
    #[must_use]
    pub fn new(experiment: Experiment, policies: Vec<Box<dyn PolicyFactory>>) -> Self {
        let region_qps = experiment.region().map_or(f64::INFINITY, |region| region.rate_qps);
        Self {
            experiment,
            policies,
            objective: Objective::default(),
            length: RunLength::default(),
            has_capacities: true,
            has_delays: true,
            covers_arrivals: true,
            rates_qps: None,
            region_qps,
        }
    }

    /// Searches and simulates. `results` keeps everything found before an interrupt or a failure.
    ///
    /// # Errors
    /// If a policy does not fit the machine or breaks its contract, or all costs are 0 and a capacity or default rates
    /// are requested.
    pub fn play(&self, results: &mut PolicyResults, progress: &dyn Progress) -> Result<(), StudyError> {
        if self.has_capacities {
            self.search(results, progress)?;
        }
        if self.has_delays && !interrupted() {
            self.play_delays(results, progress)?;
        }
        Ok(())
    }

    fn search(&self, results: &mut PolicyResults, progress: &dyn Progress) -> Result<(), StudyError> {
        let search = match CapacitySearch::new(&self.experiment, self.objective, self.length) {
            Ok(search) => search.of_sampled_queries(),
            // Delays do not need a capacity.
            Err(e @ StudyError::TooFewArrivals { .. }) if self.has_delays => {
                results.notes.push(format!("no capacity: {e}"));
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        let policies = self.factories();
        let pieces = policies.len() * search.seeds();
        let found = in_pieces(progress, "capacities", pieces, |done| search.of_each(&policies, done));
        for found in found {
            match found {
                Ok(capacities) => results.capacities.push(capacities),
                Err(SimError::Interrupted) => {}
                Err(e) => return Err(e.into()),
            }
        }
        let (known, all) = (results.capacities.len(), policies.len());
        if known < all {
            results.notes.push(format!("interrupted: the capacities of {known} of {all} policies are known"));
        }
        Ok(())
    }

    fn play_delays(&self, results: &mut PolicyResults, progress: &dyn Progress) -> Result<(), StudyError> {
        if self.rates_qps.is_none() && self.region_qps.is_infinite() {
            return Err(StudyError::NothingToSchedule);
        }
        results.rates_qps = self.rates_qps.clone().unwrap_or_else(|| self.rates_around(&results.capacities));
        let is_hopeless = |policy: &str, rate_qps: f64| {
            let mut found = results.capacities.iter();
            found.any(|found| found.policy == policy && rate_qps > found.qps * HOPELESS)
        };
        let wanted = |policy: &str, rate_qps| self.rates_qps.is_some() || !is_hopeless(policy, rate_qps);
        let policies = self.factories();
        let rates = &results.rates_qps;
        let pairs = policies.iter().flat_map(|policy| rates.iter().map(|&rate_qps| (policy.name(), rate_qps)));
        let runs =
            pairs.filter(|&(policy, rate_qps)| wanted(policy, rate_qps)).count() * self.experiment.arrivals.len();
        let most = self.most_covering();
        let played = in_pieces(progress, "delays", runs, |done| {
            play_all(&self.experiment, &policies, rates, most, wanted, done)
        })?;
        if interrupted() {
            results.notes.push(format!("interrupted: {} of {runs} runs are played", played.len()));
        }
        results.played = played;
        results.forecasts = self.forecasts(results)?;
        Ok(())
    }

    /// Above this rate the policy is not stable, as far as that is known.
    #[must_use]
    pub fn stable_qps(&self, results: &PolicyResults, policy: &str) -> f64 {
        let mut found = results.capacities.iter();
        found.find(|found| found.policy == policy).map_or(self.region_qps, |found| found.stable_qps)
    }

    /// Intervals of delays need other seeds, so that given arrivals have none, and runs that cover their arrivals.
    fn forecasts(&self, results: &PolicyResults) -> Result<Vec<PolicyForecast>, StudyError> {
        let Some(process) = self.experiment.arrivals.first().and_then(Arrivals::process) else { return Ok(Vec::new()) };
        let mut forecasts = Vec::new();
        for policy in &self.policies {
            // Delays grow above the capacity, although the policy may be stable with other arrivals.
            let found = results.capacities.iter().find(|found| found.policy == policy.name()).map(|found| found.qps);
            let most_qps = self.stable_qps(results, policy.name()).min(found.unwrap_or(f64::INFINITY));
            let Some(qps) = results.kept_qps(policy.name(), most_qps) else { continue };
            let arrivals = self.arrivals_at(&self.experiment.arrivals[0], qps);
            if arrivals.covered_share(qps) < 1.0 {
                continue;
            }
            let run = Planned { process, qps, queries: arrivals.len(), live_seed: arrivals.seed, speed_sd: 0.0 };
            if let Some(forecast) = forecast(&self.experiment, policy.as_ref(), run)? {
                forecasts.push(PolicyForecast { policy: policy.name().to_owned(), rate_qps: qps, forecast });
            }
        }
        Ok(forecasts)
    }

    /// The arrivals of a delay run at this rate.
    #[must_use]
    pub fn arrivals_at(&self, arrivals: &Arrivals, rate_qps: f64) -> Arrivals {
        arrivals.covering(rate_qps, self.most_covering())
    }

    fn most_covering(&self) -> f64 {
        match self.rates_qps.as_deref() {
            _ if !self.covers_arrivals => 0.0,
            Some([_]) => COVERED_DELAYS.1,
            _ => COVERED_DELAYS.0,
        }
    }

    /// Sentences that name the limits of the results.
    #[must_use]
    pub fn warnings(&self, results: &PolicyResults) -> Vec<String> {
        let time_scale = self.experiment.arrivals.first().and_then(Arrivals::time_scale);
        let capacities = results.capacities.iter().map(|found| found.covered_share);
        let delays = results.played.iter().map(|run| run.covered_share);
        let warnings = [
            short_runs("capacities are likely too high", time_scale, capacities),
            short_runs("delays are likely too low", time_scale, delays),
        ];
        warnings.into_iter().flatten().collect()
    }

    /// Geometrically spaced rates, from well below the lowest capacity to slightly above the highest.
    fn rates_around(&self, capacities: &[Capacity]) -> Vec<f64> {
        let found = || capacities.iter().map(|found| found.qps).filter(|&qps| qps > 0.0);
        let least = found().min_by(f64::total_cmp).map(|qps| qps * SHARES_OF_CAPACITY.0);
        let most = found().max_by(f64::total_cmp).map(|qps| qps * SHARES_OF_CAPACITY.1);
        let from = least.unwrap_or(self.region_qps * SHARES_OF_REGION.0);
        let to = most.unwrap_or(self.region_qps * SHARES_OF_REGION.1);
        let rate = |i: usize| from * (to / from).powf(i as f64 / (Self::NUM_RATES - 1) as f64);
        (0..Self::NUM_RATES).map(|i| significant(rate(i), 3)).collect()
    }

    fn factories(&self) -> Vec<&dyn PolicyFactory> {
        self.policies.iter().map(Box::as_ref).collect()
    }
}

/// A warning if the lowest of `shares` is below 1: runs did not cover arrivals whose rate changes over `time_scale`.
/// `results` says in which direction the results are biased.
#[must_use]
pub fn short_runs(
    results: &str,
    time_scale: Option<TimeScale>,
    shares: impl IntoIterator<Item = f64>,
) -> Option<String> {
    let least = shares.into_iter().fold(1.0, f64::min);
    let scale = time_scale.filter(|_| least < 1.0)?;
    let played = significant(100.0 * least, 2);
    Some(format!(
        "the rate of the arrivals changes over {scale}, of which the shortest runs played {played} %: {results}, and \
         intervals are not known"
    ))
}

impl fmt::Debug for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policies: Vec<&str> = self.policies.iter().map(|policy| policy.name()).collect();
        f.debug_struct("Comparison").field("policies", &policies).finish_non_exhaustive()
    }
}
