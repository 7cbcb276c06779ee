//! One workload, one machine, and the runs of several seeds that all policies and all rates share.
//!
//! A run's arrivals are one unit-rate sequence, divided by the rate; its queries are drawn once. So two policies, or
//! two rates, differ by what they are and not by luck (common random numbers).

use rayon::prelude::*;

use super::{Capacity, Grid, NoMiss, SimQuery, SimRun, bounds, certificate, find_capacity, simulate_into};
use crate::cost::{Cost, MachineModel};
use crate::machine::PerClass;
use crate::prefetch::prefetch;
use crate::query::at_rate;
use crate::sched::{LawBroken, PolicyError, PolicyFactory, Sink};
use crate::time::Nanos;

/// How many arrivals ahead their rows are asked for.
const AHEAD: usize = 8;

/// Arrivals and queries of one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrivals {
    /// The seed they were drawn from.
    pub seed: u64,
    /// Times of arrival at one query per second, in seconds, ascending.
    pub unit: Vec<f64>,
    /// For each, which query: a position in the experiment's queries.
    pub queries: Vec<u32>,
}

/// What is simulated, whatever the policy and the rate.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The machine.
    pub model: MachineModel,
    /// The workload.
    pub queries: Vec<SimQuery>,
    /// Time from arrival to deadline.
    pub deadline: Nanos,
    /// The runs, one a seed.
    pub arrivals: Vec<Arrivals>,
}

/// Why a simulation could not be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The policy can't be made.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy has broken its contract.
    #[error(transparent)]
    Law(#[from] LawBroken),
}

impl Experiment {
    /// A run too short to exclude any rate below so many times the capacity region has no bound: no rate above is tried.
    pub const UNBOUNDED: f64 = 10.0;

    /// Plays one seed's arrivals at `rate_qps` through `policy` and gives each finished query to
    /// `sink`, until `enough`.
    ///
    /// # Errors
    /// If the policy can't be made for this machine, or breaks its contract.
    pub fn play<S: Sink>(
        &self,
        policy: &dyn PolicyFactory,
        rate_qps: f64,
        arrivals: &Arrivals,
        sink: S,
        enough: impl Fn(&S) -> bool,
    ) -> Result<S, SimError> {
        Ok(simulate_into(self.run(policy, rate_qps, arrivals)?, sink, enough)?)
    }

    /// The run of one seed at a rate, for [`simulate`](super::simulate).
    ///
    /// # Errors
    /// If the policy can't be made for this machine.
    pub fn run<'a>(
        &'a self,
        policy: &dyn PolicyFactory,
        rate_qps: f64,
        arrivals: &'a Arrivals,
    ) -> Result<SimRun<'a, impl Iterator<Item = (Nanos, u32)> + use<'a>>, SimError> {
        let policy = policy.build(&self.model)?;
        let rows = (0..arrivals.queries.len()).map(|i| {
            // A row, anywhere in a large table, is asked for some arrivals before it is read.
            if let Some(&ahead) = arrivals.queries.get(i + AHEAD) {
                prefetch(&self.queries[ahead as usize..], size_of::<SimQuery>());
            }
            arrivals.queries[i]
        });
        let times = at_rate(&arrivals.unit, rate_qps).zip(rows);
        Ok(SimRun { model: &self.model, policy, queries: &self.queries, arrivals: times, deadline: self.deadline })
    }

    /// The capacity region of the queries as they were drawn.
    #[must_use]
    pub fn region(&self) -> Option<bounds::Region> {
        bounds::region(self.arrivals.iter().flat_map(|arrivals| self.services(arrivals)), &self.model)
    }

    /// The least of the seeds' clairvoyant bounds; `None` if none excludes rates up to ten times the capacity region.
    #[must_use]
    pub fn bound_qps(&self) -> Option<f64> {
        let limit = Self::UNBOUNDED * self.region()?.rate_qps;
        let bound =
            |arrivals: &Arrivals| bounds::clairvoyant_qps(arrivals, &self.queries, &self.model, self.deadline, limit);
        let bounds: Vec<Option<f64>> = self.arrivals.par_iter().map(bound).collect();
        bounds.into_iter().flatten().min_by(f64::total_cmp)
    }

    /// The highest rate up to which `policy` misses no deadline in any run, on `grid`.
    ///
    /// # Errors
    /// If the policy can't be made for this machine, or breaks its contract.
    pub fn capacity(&self, policy: &dyn PolicyFactory, grid: &Grid) -> Result<Capacity, SimError> {
        let dearest = certificate::dearest(&self.queries, policy, &self.model);
        find_capacity(grid, |rate_qps| {
            for arrivals in &self.arrivals {
                let is_certain = |dearest| certificate::nobody_misses(dearest, arrivals, rate_qps, self.deadline);
                if dearest.as_deref().is_some_and(is_certain) {
                    continue;
                }
                if self.play(policy, rate_qps, arrivals, NoMiss::default(), |sink| sink.is_broken)?.is_broken {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    fn services<'a>(&'a self, arrivals: &'a Arrivals) -> impl Iterator<Item = PerClass<Cost>> + 'a {
        arrivals.queries.iter().map(|&query| self.queries[query as usize].service)
    }
}
