//! One workload and one machine, with the arrivals of several seeds that all policies and rates share.
//!
//! A seed's arrivals are one sequence of rate 1, divided by the rate; its queries are drawn once. Two policies or two
//! rates therefore share all random draws (common random numbers).

use std::sync::Arc;

use super::{Arrivals, Cluster, OtherNodes, SimQuery, SimRun, bounds, simulate_into};
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::cost::{BatchSizes, Cost, MachineModel};
use crate::sched::{LawBroken, LogRow, PolicyError, PolicyFactory, ShedJob, Sink};
use crate::traffic::Priorities;

/// The settings of a simulation that depend neither on policy nor on rate.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The machine.
    pub model: MachineModel,
    /// The workload.
    pub queries: Vec<SimQuery>,
    /// Time from a query's arrival to its deadline.
    pub deadline: Nanos,
    /// The arrivals of each seed's run.
    pub arrivals: Vec<Arrivals>,
    /// The cluster, if there is more than one such machine.
    pub cluster: Option<Cluster>,
}

/// The reason why a simulation could not be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// The policy cannot be made.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy has broken its contract.
    #[error(transparent)]
    Law(#[from] LawBroken),
    /// The simulation was interrupted from outside before it had a result.
    #[error("interrupted before all was simulated")]
    Interrupted,
    /// The run would pass the end of simulated time.
    #[error(
        "{queries} queries at {rate_qps} q/s take {:.3e} s, and simulated time ends at {:.3e} s (2^64 ns): ask for fewer queries \
         or a higher rate",
        seconds,
        Nanos::MAX.as_secs()
    )]
    TooLong {
        /// Queries that arrive.
        queries: usize,
        /// Their rate, in queries per second.
        rate_qps: f64,
        /// Expected time until all have arrived and been served one after another.
        seconds: f64,
    },
}

struct DelaySum(Nanos);

impl Sink for DelaySum {
    #[inline]
    fn record(&mut self, row: &LogRow) {
        self.0.0 += row.delay().0;
    }

    fn shed(&mut self, _job: &ShedJob) {}
}

impl Experiment {
    /// Plays one seed's arrivals at `rate_qps` through `policy`. Each finished query goes to `sink`, until `enough`
    /// returns true.
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

    /// Plays one seed's arrivals at `rate_qps` through `policy` and returns the sum of all delays. This is the least that
    /// a run can record, for benchmarks.
    ///
    /// # Errors
    /// As for [`play`](Self::play).
    pub fn total_delay(
        &self,
        policy: &dyn PolicyFactory,
        rate_qps: f64,
        arrivals: &Arrivals,
    ) -> Result<Nanos, SimError> {
        Ok(self.play(policy, rate_qps, arrivals, DelaySum(Nanos(0)), |_| false)?.0)
    }

    /// The run of one seed at a rate, for [`simulate`](super::simulate).
    ///
    /// # Errors
    /// If the policy can't be made for this machine, or the run may pass the end of simulated time.
    pub fn run<'a>(
        &'a self,
        factory: &dyn PolicyFactory,
        rate_qps: f64,
        arrivals: &'a Arrivals,
    ) -> Result<SimRun<'a, impl Iterator<Item = (Nanos, u32)> + use<'a>>, SimError> {
        self.check_time(rate_qps, arrivals.len())?;
        let told = self.model.as_told();
        let policy = factory.build(&told)?;
        let (seed, times, priorities) =
            (arrivals.seed, arrivals.at_rate(rate_qps), arrivals.priorities().map(AsRef::as_ref));
        let others = |cluster: &'a Cluster| {
            let policies = (1..cluster.shape().nodes()).map(|_| factory.build(&told));
            Ok::<_, PolicyError>(OtherNodes { cluster, policies: policies.collect::<Result<_, _>>()? })
        };
        let others = self.cluster.as_ref().map(others).transpose()?;
        let Self { model, queries, deadline, .. } = self;
        Ok(SimRun { model, policy, seed, queries, arrivals: times, deadline: *deadline, priorities, others })
    }

    /// The priorities of its queries; `None` if all are alike.
    #[must_use]
    pub fn priorities(&self) -> Option<&Arc<Priorities>> {
        self.arrivals.first().and_then(Arrivals::priorities)
    }

    /// Refuses a run whose mean length exceeds half of the range of simulated time; the other half allows for random
    /// variation.
    ///
    /// # Errors
    /// [`SimError::TooLong`].
    pub fn check_time(&self, rate_qps: f64, arrivals: usize) -> Result<(), SimError> {
        let finite = |cost: Cost| if cost == Cost::NEVER { 0.0 } else { cost.alone.as_secs() };
        let longest =
            |query: &SimQuery| Class::ALL.into_iter().map(|class| finite(query.service[class])).fold(0.0, f64::max);
        let mean_s = self.queries.iter().map(longest).sum::<f64>() / self.queries.len().max(1) as f64;
        let seconds = arrivals as f64 * (1.0 / rate_qps + mean_s);
        if seconds > Nanos::MAX.as_secs() / 2.0 {
            return Err(SimError::TooLong { queries: arrivals, rate_qps, seconds });
        }
        Ok(())
    }

    /// The capacity region in the long run, of the queries as given or of all that may be drawn.
    #[must_use]
    pub fn region(&self) -> Option<bounds::Region> {
        self.region_in(BatchSizes::Any)
    }

    /// The rows of the given queries, or of all that may be drawn.
    fn asked_rows(&self) -> Vec<u32> {
        if self.arrivals.iter().all(|arrivals| arrivals.available().is_none()) {
            (0..self.queries.len() as u32).collect()
        } else {
            self.arrivals.iter().flat_map(Arrivals::queries).collect()
        }
    }

    /// The capacity region of schedulers that make batches of these sizes.
    fn region_in(&self, sizes: BatchSizes) -> Option<bounds::Region> {
        let rows = self.asked_rows();
        let model = self.model.with_fallbacks();
        match &self.cluster {
            Some(cluster) => cluster.region(&model, &rows, sizes),
            None => bounds::region(rows.iter().map(|&row| self.queries[row as usize].service), &model, sizes),
        }
    }

    /// The capacity region of a policy that may make no batches or run some queries on some classes only. The share
    /// `dropped` of the workload, the queries of highest cost, is left out. Above the region's rate the policy is not
    /// stable.
    #[must_use]
    pub fn region_of(&self, policy: &dyn PolicyFactory, dropped: f64) -> Option<bounds::Region> {
        let masked = |query: &SimQuery| SimQuery {
            service: PerClass::from_fn(|class| {
                if policy.may_run_on(class, &query.estimate) { query.service[class] } else { Cost::NEVER }
            }),
            ..*query
        };
        let mut queries: Vec<SimQuery> = self.queries.iter().map(masked).collect();
        if dropped > 0.0 {
            let least = |query: &SimQuery| self.model.machine.classes().map(|class| query.service[class].alone).min();
            let mut dearest: Vec<usize> = (0..queries.len()).collect();
            dearest.sort_by_key(|&row| std::cmp::Reverse(least(&queries[row])));
            // A row counts as often as it is asked.
            let mut asked = vec![0_usize; queries.len()];
            self.asked_rows().into_iter().for_each(|row| asked[row as usize] += 1);
            let mut left = (asked.iter().sum::<usize>() as f64 * dropped).ceil() as usize;
            for row in dearest {
                if left == 0 {
                    break;
                }
                left = left.saturating_sub(asked[row]);
                queries[row].service = PerClass::from_fn(|_| Cost::alone(Nanos::ZERO));
            }
        }
        let cluster = self.cluster.as_ref().map(|cluster| cluster.over(&queries));
        Self { queries, cluster, model: self.model.clone(), arrivals: self.arrivals.clone(), ..*self }
            .region_in(if policy.makes_batches() { BatchSizes::Any } else { BatchSizes::One })
    }

    /// The standard error of the logarithm of the [region's](Self::region_of) rate if the queries are a sample. It is
    /// computed for one machine, since all shards sample the same queries. `None` for fewer than two queries.
    #[must_use]
    pub fn region_error(&self, policy: &dyn PolicyFactory) -> Option<f64> {
        let masked = |query: &SimQuery| {
            PerClass::from_fn(|class| {
                if policy.may_run_on(class, &query.estimate) { query.service[class] } else { Cost::NEVER }
            })
        };
        let services: Vec<PerClass<Cost>> = self.queries.iter().map(masked).collect();
        let sizes = if policy.makes_batches() { BatchSizes::Any } else { BatchSizes::One };
        bounds::region_error(&services, &self.model.with_fallbacks(), sizes)
    }

    /// The squared coefficient of variation of the queries' service times, each on its fastest class that the policy uses.
    #[must_use]
    pub fn variation(&self, policy: &dyn PolicyFactory) -> f64 {
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for query in self.asked_rows().into_iter().map(|row| &self.queries[row as usize]) {
            let classes = self.model.machine.classes().filter(|&class| policy.may_run_on(class, &query.estimate));
            let Some(alone) = classes.map(|class| query.service[class].alone).min() else { continue };
            let seconds = alone.as_secs();
            (count, sum, squares) = (count + 1.0, sum + seconds, squares + seconds * seconds);
        }
        if sum > 0.0 { (count * squares / (sum * sum) - 1.0).max(0.0) } else { 0.0 }
    }

    /// The work that arrives over the most efficient work that all lanes can do, under a policy. From 1 on, no run is stable.
    #[must_use]
    pub fn utilisation(&self, policy: &dyn PolicyFactory, rate_qps: f64) -> Option<f64> {
        self.region_of(policy, 0.0).map(|region| rate_qps / region.rate_qps)
    }
}
