//! Rates at which no query can miss its deadline, told without playing them.
//!
//! No policy here ever lets all of its processors idle while a query waits (the [dispatcher](crate::sched::Dispatcher)
//! holds them to that). Count each query in flight as the most that it can still take: w_i, the dearest of its true
//! service times on the kinds that it may run on, less what it has run. While any query is in flight, at least one
//! runs, so this backlog falls by a second a second or faster; it never exceeds that of a *single* server with service
//! times w_i, which falls by exactly a second a second:
//!
//! ```text
//!   w    ╲  ╲        backlog of the single server, from its first arrival s to its end f;
//!   │  ╲  ╲╱  ╲      at f nothing is left in the machine either, whatever its order of service,
//!   └──s────────f──  so nobody who arrived since s took longer than f − s
//! ```
//!
//! If no busy period of that server lasts longer than the deadline, nobody misses. That costs two nanoseconds a query,
//! a hundredth of the run that it spares. The other way around it tells nothing: then the run is played.

use super::{Arrivals, SimQuery};
use crate::machine::{Class, Machine};
use crate::query::at_rate;
use crate::sched::PolicyKind;
use crate::time::Nanos;

/// The most that `query` can take of a processor under `policy`.
pub(super) fn dearest(query: &SimQuery, policy: PolicyKind, machine: &Machine) -> Nanos {
    let kinds = match policy {
        PolicyKind::GpuOnly => [Class::GPU; 2],
        PolicyKind::CpuOnly => [Class::CPU; 2],
        PolicyKind::BestOf => [query.estimate.least(); 2],
        PolicyKind::Stealing | PolicyKind::Mct => [Class::CPU, Class::GPU],
    };
    let present = kinds.into_iter().filter(|&kind| machine.count(kind) > 0);
    present.map(|kind| query.service[kind]).max().unwrap_or(Nanos::MAX)
}

/// Whether the single server of service times `dearest` (by position in the workload) shows that no query of
/// `arrivals`, at `rate_qps`, misses a deadline so far away. False says nothing.
pub(super) fn nobody_misses(dearest: &[Nanos], arrivals: &Arrivals, rate_qps: f64, deadline: Nanos) -> bool {
    let mut began = Nanos::ZERO;
    let mut free_at = Nanos::ZERO;
    at_rate(&arrivals.unit, rate_qps).zip(&arrivals.queries).all(|(arrival, &query)| {
        if arrival >= free_at {
            (began, free_at) = (arrival, arrival);
        }
        free_at += dearest[query as usize];
        free_at.since(began) <= deadline
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::QueryId;
    use crate::machine::PerClass;
    use crate::query::{ArrivalProcess, draw_queries, unit_arrivals};
    use crate::random::Random;
    use crate::sched::PolicyOptions;
    use crate::sim::{Experiment, NoMiss};

    /// A hundred queries whose times, and how wrong estimates of them are, are drawn from `seed`.
    fn experiment(seed: u64, machine: Machine) -> Experiment {
        let mut random = Random::new(seed, 77);
        let mut time = || Nanos((1e6 * (0.01 + random.unit()).powi(3)) as u64);
        let queries = (0..100).map(|id| {
            let mut times = || PerClass::two(time(), time());
            SimQuery { id: QueryId(id), service: times(), estimate: times() }
        });
        let queries = queries.collect();
        let unit = unit_arrivals(&ArrivalProcess::Poisson, seed, 2000);
        let arrivals = vec![Arrivals { seed, unit, queries: draw_queries(seed, 2000, 100) }];
        Experiment { machine, queries, deadline: Nanos::from_ms(4.0), arrivals, options: PolicyOptions::default() }
    }

    #[test]
    fn what_is_certified_never_misses_under_any_policy() {
        let mut certified = [0; PolicyKind::ALL.len()];
        for seed in 0..6 {
            let experiment = experiment(seed, Machine::new(1 + seed as usize % 3, 1));
            for (policy, certified) in PolicyKind::ALL.into_iter().zip(&mut certified) {
                let dearest: Vec<Nanos> =
                    experiment.queries.iter().map(|query| dearest(query, policy, &experiment.machine)).collect();
                for rate_qps in (1..40).map(|i| f64::from(i) * 200.0) {
                    let arrivals = &experiment.arrivals[0];
                    if nobody_misses(&dearest, arrivals, rate_qps, experiment.deadline) {
                        let found = experiment.play(policy, rate_qps, arrivals, NoMiss::default(), |_| false);
                        assert!(!found.unwrap().is_broken, "{policy} at {rate_qps}, seed {seed}");
                        *certified += 1;
                    }
                }
            }
        }
        assert!(certified.iter().all(|&rates| rates > 5), "{certified:?}");
    }

    #[test]
    fn a_busy_period_as_long_as_the_deadline_is_certified_and_one_longer_is_not() {
        let arrivals = Arrivals { seed: 0, unit: vec![1.0, 2.0, 3.0], queries: vec![0, 0, 0] };
        let after = |deadline| nobody_misses(&[Nanos(1_500_000_000)], &arrivals, 1.0, Nanos(deadline));
        assert!(after(4_500_000_000) && !after(4_499_999_999));
        // At half the rate each finds the machine idle.
        assert!(nobody_misses(&[Nanos(1_500_000_000)], &arrivals, 0.5, Nanos(1_500_000_000)));
    }
}
