//! The one search for a capacity: which rates are tried, and what no scheduler exceeds on them.
//!
//! A simulation's capacities and a validation's predictions come from here, and mean the same: the highest rate of a grid
//! at and below which no query misses its deadline in any run.

use rayon::prelude::*;

use super::{Summary, Tally};
use crate::sched::PolicyFactory;
use crate::sim::{Arrivals, Capacity, Experiment, Grid, SimError};

/// Simulated queries that the coarse grid of a search may cost: some seconds on one core.
const GRID_QUERIES: usize = 40_000_000;
/// Fewest and most rates on the coarse grid: steps of 8 % and of 1 %.
const GRID_RATES: (usize, usize) = (60, 460);
/// The step to which the grid is refined where the first miss is: 0.25 %.
const FINE_STEP: f64 = 1.0025;
/// How far above the bound the grid ends, so that its highest rate fails.
const ABOVE_BOUND: f64 = 1.02;
/// From this share of the highest rate on, rates are tried.
const GRID_LOW: f64 = 0.01;

/// A search for the capacities of policies on one experiment.
#[derive(Clone, Copy, Debug)]
pub struct CapacitySearch<'a> {
    experiment: &'a Experiment,
    /// What no scheduler exceeds on these very arrivals; `None` if they exclude no rate tried.
    pub bound_qps: Option<f64>,
    /// Above this rate no scheduler is stable in the long run.
    pub region_qps: f64,
    grid: Grid,
}

impl<'a> CapacitySearch<'a> {
    /// Bounds the rates and chooses the grid: 60 to 460 rates, fewer for longer runs, refined to 0.25 % where the first
    /// miss is. `None` if everything costs nothing.
    #[must_use]
    pub fn new(experiment: &'a Experiment) -> Option<Self> {
        let region_qps = experiment.region()?.rate_qps;
        let bound_qps = experiment.bound_qps();
        let high_qps = match bound_qps {
            Some(bound) if bound > 0.0 => bound * ABOVE_BOUND,
            // No rate can pass: a look at the usual ones shows it.
            Some(_) => region_qps,
            None => region_qps * Experiment::UNBOUNDED,
        };
        let queries: usize = experiment.arrivals.iter().map(|arrivals| arrivals.queries.len()).sum();
        let rates = (GRID_QUERIES / queries.max(1)).clamp(GRID_RATES.0, GRID_RATES.1);
        let step = GRID_LOW.recip().powf(1.0 / rates as f64);
        let parts = (step.ln() / FINE_STEP.ln()).ceil() as u32;
        let grid = Grid { low_qps: high_qps * GRID_LOW, high_qps, step, parts };
        Some(Self { experiment, bound_qps, region_qps, grid })
    }

    /// The highest rate up to which `policy` misses no deadline in any run.
    ///
    /// # Errors
    /// If the policy can't be made for this machine, or breaks its contract.
    pub fn of(&self, policy: &dyn PolicyFactory) -> Result<Capacity, SimError> {
        let found = self.experiment.capacity(policy, &self.grid)?;
        if found.low_qps > 0.0 || self.bound_qps == Some(0.0) {
            return Ok(found);
        }
        // A policy that leaves most of the machine idle: its limit is below a hundredth of what there is.
        let high_qps = self.grid.low_qps;
        self.experiment.capacity(policy, &Grid { low_qps: high_qps * GRID_LOW, high_qps, ..self.grid })
    }
}

/// One run of a policy at a rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// The policy's name.
    pub policy: String,
    /// Queries a second.
    pub rate_qps: f64,
    /// What its arrivals were drawn from.
    pub seed: u64,
    /// What it came to.
    pub summary: Summary,
}

/// Plays every seed's arrivals at every rate through every policy, in this order, whichever run ends first; `done` hears of
/// each run that has ended. A run in which nothing arrives is left out.
///
/// # Errors
/// If a policy can't be made for this machine, or breaks its contract.
pub fn play_all(
    experiment: &Experiment,
    policies: &[&dyn PolicyFactory],
    rates: &[f64],
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Played>, SimError> {
    let mut runs: Vec<(&dyn PolicyFactory, f64, &Arrivals)> = Vec::new();
    for &policy in policies {
        for &rate_qps in rates {
            runs.extend(experiment.arrivals.iter().map(|arrivals| (policy, rate_qps, arrivals)));
        }
    }
    let one = |&(policy, rate_qps, arrivals): &(&dyn PolicyFactory, f64, &Arrivals)| {
        let tally = Tally::new(&experiment.model.machine, arrivals.queries.len());
        let tally = experiment.play(policy, rate_qps, arrivals, tally, |_| false)?;
        done();
        let (policy, seed) = (policy.name().to_owned(), arrivals.seed);
        Ok(tally.summary().map(|summary| Played { policy, rate_qps, seed, summary }))
    };
    let played: Vec<Result<Option<Played>, SimError>> = runs.par_iter().map(one).collect();
    played.into_iter().filter_map(Result::transpose).collect()
}
