//! Laws that every policy keeps, whatever arrives.

use proptest::prelude::*;
use tandem::ids::QueryId;
use tandem::machine::{Machine, PerClass};
use tandem::sched::{PolicyKind, PolicyOptions, RunLog, StealGuard};
use tandem::sim::{Arrivals, Experiment, SimQuery, bounds, simulate};
use tandem::time::Nanos;

/// A machine with both kinds, a workload whose estimates are wrong at random, arrivals with ties, and any options.
fn experiments() -> impl Strategy<Value = Experiment> {
    let time = || (0_u64..400_000_000).prop_map(Nanos);
    let both = move || (time(), time()).prop_map(|(cpu, gpu)| PerClass::two(cpu, gpu));
    let queries = prop::collection::vec((both(), both()), 1..8);
    let gaps = prop::collection::vec((prop_oneof![Just(0.0), 0.0..3.0_f64], any::<prop::sample::Index>()), 1..120);
    let guard = prop_oneof![Just(StealGuard::None), Just(StealGuard::Deadline), Just(StealGuard::Gain)];
    let options = (1.0..4.0, 0.0..=1.0, 0.0..20.0, 0.0..3.0, 0.0..3.0, guard);
    (1_usize..4, 1_usize..4, queries, gaps, options, 1_u64..1000).prop_map(
        |(cpus, gpus, queries, gaps, (threshold_ratio, urgent_share, cost, deadline, affinity, guard), deadline_ms)| {
            let mut at = 0.0;
            let unit = gaps.iter().map(|(gap, _)| {
                at += gap;
                at
            });
            Experiment {
                machine: Machine::new(cpus, gpus),
                deadline: Nanos(deadline_ms * 1_000_000),
                arrivals: vec![Arrivals {
                    seed: 0,
                    unit: unit.collect(),
                    queries: gaps.iter().map(|(_, query)| query.index(queries.len()) as u32).collect(),
                }],
                queries: (0..)
                    .zip(queries)
                    .map(|(id, (service, estimate))| SimQuery { id: QueryId(id), service, estimate })
                    .collect(),
                options: PolicyOptions {
                    threshold_ratio,
                    urgent_share,
                    cost_weight: cost,
                    deadline_weight: deadline,
                    affinity_weight: affinity,
                    steal_guard: guard,
                },
            }
        },
    )
}

fn play(experiment: &Experiment, policy: PolicyKind, rate_qps: f64) -> RunLog {
    simulate(experiment.run(policy, rate_qps, &experiment.arrivals[0]).unwrap()).unwrap()
}

/// Whether no two of these spans of time overlap; touching is fine.
fn are_apart(mut spans: Vec<(Nanos, Nanos)>) -> bool {
    spans.sort_unstable();
    spans.windows(2).all(|pair| pair[0].1 <= pair[1].0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_policy_loses_or_repeats_a_query(experiment in experiments(), rate_qps in 0.5..50.0_f64) {
        for policy in PolicyKind::ALL {
            let log = play(&experiment, policy, rate_qps);
            let arrivals = &experiment.arrivals[0];
            prop_assert_eq!(log.rows.len(), arrivals.queries.len());
            for (i, (row, &query)) in log.rows.iter().zip(&arrivals.queries).enumerate() {
                prop_assert_eq!(row.job.index(), i);
                prop_assert_eq!(row.query.0, query);
                prop_assert!(row.started >= row.arrival && row.released == row.arrival);
                prop_assert_eq!(row.finished.since(row.started), experiment.queries[query as usize].service[row.kind]);
                prop_assert_eq!(experiment.machine.class(row.processor), row.kind);
            }
            for (processor, _) in experiment.machine.processors() {
                let rows = log.rows.iter().filter(|row| row.processor == processor);
                prop_assert!(are_apart(rows.map(|row| (row.started, row.finished)).collect()));
            }
        }
    }

    #[test]
    fn best_of_never_runs_two_queries_at_once(experiment in experiments(), rate_qps in 0.5..50.0_f64) {
        let log = play(&experiment, PolicyKind::BestOf, rate_qps);
        prop_assert!(are_apart(log.rows.iter().map(|row| (row.started, row.finished)).collect()));
        for row in &log.rows {
            prop_assert!(!row.stolen());
        }
    }

    #[test]
    fn policies_of_one_kind_keep_the_order_of_arrival(experiment in experiments(), rate_qps in 0.5..50.0_f64) {
        for policy in [PolicyKind::CpuOnly, PolicyKind::GpuOnly] {
            let log = play(&experiment, policy, rate_qps);
            prop_assert!(log.rows.is_sorted_by_key(|row| row.started));
        }
    }

    #[test]
    fn no_policy_exceeds_the_clairvoyant_bound(experiment in experiments(), rate_qps in 0.5..200.0_f64) {
        let arrivals = &experiment.arrivals[0];
        let bound =
            bounds::clairvoyant_qps(arrivals, &experiment.queries, &experiment.machine, experiment.deadline, 1e6);
        for policy in PolicyKind::ALL {
            let has_miss = play(&experiment, policy, rate_qps).rows.iter().any(|row| row.missed());
            let is_above = bound.is_some_and(|bound| rate_qps > bound);
            prop_assert!(has_miss || !is_above, "{} kept every deadline at {} above {:?}", policy, rate_qps, bound);
        }
    }
}

#[test]
fn equal_inputs_give_equal_logs() {
    let service = |cpu, gpu| PerClass::two(Nanos::from_ms(cpu), Nanos::from_ms(gpu));
    let query = |(id, service)| SimQuery { id: QueryId(id), service, estimate: service };
    let experiment = Experiment {
        machine: Machine::new(2, 2),
        queries: (0..).zip([service(3.0, 3.0), service(20.0, 4.0), service(1.0, 9.0)]).map(query).collect(),
        deadline: Nanos::from_ms(50.0),
        // Threes at one time: ties everywhere.
        arrivals: vec![Arrivals {
            seed: 0,
            unit: (0..3000).map(|i| f64::from(i / 3)).collect(),
            queries: (0..3000).map(|i| i % 3).collect(),
        }],
        options: PolicyOptions::default(),
    };
    for policy in PolicyKind::ALL {
        assert_eq!(play(&experiment, policy, 250.0), play(&experiment, policy, 250.0));
    }
}
