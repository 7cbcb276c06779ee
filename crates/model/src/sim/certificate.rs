//! Proofs that no query misses its deadline at a rate, without playing the run.
//!
//! Most policies never let the whole machine idle while a query waits, or only for a bounded time; their factories
//! [promise](crate::sched::WorkConservation) it. Let w_i be the longest that query i can still take. It is the largest of its true
//! service times alone on the classes that it may run on. To this come the hand-over, the dispatcher's time for its
//! arrival and completion, and the longest idle time before a batch starts. While any query is in flight, this backlog
//! falls by a second a second or faster. For a batch never takes longer than its queries one after another
//! ([`BatchCost`](crate::cost::BatchCost)), and the batch that ends an idle time pays for it. The backlog therefore never
//! exceeds that of a *single* server with service times w_i, which falls by exactly a second a second:
//!
//! ```text
//!   w    ╲  ╲        backlog of the single server, from its first arrival s to its end f;
//!   │  ╲  ╲╱  ╲      at f the machine is empty as well, whatever its order of service,
//!   └──s────────f──  so no query that arrived since s took longer than f − s
//! ```
//!
//! If no busy period of that server lasts longer than the deadline, no query misses it. This costs two nanoseconds a
//! query, a hundredth of the run that it saves. The converse does not hold: a longer busy period proves nothing, and the
//! run is played.
//!
//! Certificates stay because capacity searches without them take 1.15 times the CPU time, where 1.1 times was the limit.

use super::{Arrivals, SimQuery};
use crate::base::time::Nanos;
use crate::cost::MachineModel;
use crate::sched::PolicyFactory;

/// The longest that each of `queries` can occupy the machine under a policy; `None` if the policy promises nothing.
#[must_use]
pub fn max_costs(queries: &[SimQuery], policy: &dyn PolicyFactory, model: &MachineModel) -> Option<Vec<Nanos>> {
    // Random times have no upper limit.
    let promise = policy.promise().filter(|_| model.is_exact() && model.dispatcher.is_none())?;
    // The dispatcher's time for an arrival and a completion.
    let around = promise.idle_wait + model.decision + model.decision;
    let max_costs = |query: &SimQuery| {
        let may_run = |class| policy.may_run_on(class, &query.estimate);
        let times = model.machine.classes().filter(|&class| may_run(class));
        let times = times.map(|class| query.service[class].alone + model.handoff[class]);
        times.max().map_or(Nanos::MAX, |time| time + around)
    };
    Some(queries.iter().map(max_costs).collect())
}

/// Whether the single server with these service times, by position in the workload, proves that no query of `arrivals` at
/// `rate_qps` misses the deadline. `false` proves nothing.
///
/// # Panics
/// If an arrival names a query that the service times lack, or the rate is not finite and above 0.
#[must_use]
pub fn is_schedulable(max_costs: &[Nanos], arrivals: &Arrivals, rate_qps: f64, deadline: Nanos) -> bool {
    let mut began = Nanos::ZERO;
    let mut free_at = Nanos::ZERO;
    arrivals.at_rate(rate_qps).all(|(arrival, query)| {
        if arrival >= free_at {
            (began, free_at) = (arrival, arrival);
        }
        free_at += max_costs[query as usize];
        free_at.since(began) <= deadline
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::QueryId;
    use crate::base::machine::{Class, Machine, PerClass};
    use crate::base::random::Random;
    use crate::cost::{BatchCost, Cost};
    use crate::sched::{PolicyKind, PolicyOptions};
    use crate::sim::{Experiment, NoMiss};
    use crate::traffic::ArrivalProcess;

    /// A hundred queries on GPUs that batch, with times and errors of estimates drawn from `seed`.
    fn experiment(seed: u64) -> Experiment {
        let mut random = Random::new(seed, 77);
        let mut time = || Nanos((1e6 * (0.01 + random.unit()).powi(3)) as u64);
        let queries = (0..100).map(|id| {
            let mut costs = || {
                PerClass::from_fn(|class| {
                    let alone = time();
                    let is_there = matches!(class, Class::CPU | Class::GPU);
                    if is_there { Cost { alone, added: alone.scaled(0.1) } } else { Cost::NEVER }
                })
            };
            SimQuery { id: QueryId(id), service: costs(), estimate: costs() }
        });
        let queries = queries.collect();
        let batches = BatchCost {
            host_fixed_us: 5.0,
            host_each_us: 1.0,
            exposed: None,
            device_fixed_us: 5.0,
            longest: 0.9,
            crowding: vec![(1, 5.0), (64, 1.0)],
            most_queries: 64,
        };
        let machine = Machine::new(1 + seed as usize % 3, 0).with_gpus(1, 1, 1 + seed as u32 % 2);
        let model = MachineModel {
            batches: PerClass::from_fn(|class| (class == Class::GPU).then(|| batches.clone())),
            handoff: PerClass::from_fn(|_| Nanos(1500)),
            decision: Nanos(200 * (seed % 2)),
            ..machine.into()
        };
        let arrivals = vec![Arrivals::drawn(&ArrivalProcess::Poisson, seed, 2000, 100)];
        Experiment { model, queries, deadline: Nanos::from_ms(4.0), arrivals, cluster: None }
    }

    #[test]
    fn what_is_certified_never_misses_under_any_policy() {
        let mut certified = [0; PolicyKind::ALL.len()];
        for seed in 0..6 {
            let experiment = experiment(seed);
            for (kind, certified) in PolicyKind::ALL.into_iter().zip(&mut certified) {
                if kind.shares_jobs() {
                    // Nothing is certified for queries on several lanes.
                    continue;
                }
                let policy = kind.with(PolicyOptions::default());
                let max_costs = max_costs(&experiment.queries, &policy, &experiment.model).unwrap();
                for rate_qps in (0..45).map(|i| 20.0 * 1.15_f64.powi(i)) {
                    let arrivals = &experiment.arrivals[0];
                    if is_schedulable(&max_costs, arrivals, rate_qps, experiment.deadline) {
                        let found = experiment.play(&policy, rate_qps, arrivals, NoMiss::default(), |_| false);
                        assert!(!found.unwrap().is_broken, "{kind} at {rate_qps}, seed {seed}");
                        *certified += 1;
                    }
                }
            }
        }
        let expected = PolicyKind::ALL.into_iter().zip(certified).all(|(kind, rates)| kind.shares_jobs() || rates > 5);
        assert!(expected, "{certified:?}");
    }

    #[test]
    fn a_busy_period_as_long_as_the_deadline_is_certified_and_one_longer_is_not() {
        let arrivals = Arrivals::given(0, vec![1.0, 2.0, 3.0], vec![0, 0, 0]);
        let after = |deadline| is_schedulable(&[Nanos(1_500_000_000)], &arrivals, 1.0, Nanos(deadline));
        assert!(after(4_500_000_000) && !after(4_499_999_999));
        // At half the rate each query finds the machine idle.
        assert!(is_schedulable(&[Nanos(1_500_000_000)], &arrivals, 0.5, Nanos(1_500_000_000)));
    }
}
