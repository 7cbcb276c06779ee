//! The policy that sends cached queries to the GPU first: no query is lost, and each side works alone until the other
//! needs help.

use std::sync::Arc;

use proptest::prelude::*;
use tandem::base::ids::QueryId;
use tandem::base::machine::{Class, Machine, PerClass};
use tandem::base::time::Nanos;
use tandem::cost::{BatchCost, Cost, MachineModel};
use tandem::sched::{CachedFirst, Policy, PolicyError, PolicyFactory, PolicyOptions, RunLog};
use tandem::sim::{Arrivals, Experiment, SimQuery, simulate};

/// Queries 0 to 9 with equal costs. On a GPU a batch of any size takes little more time than one query.
fn experiment(machine: Machine, queries: &[u32], gaps: &[f64]) -> Experiment {
    let mut at = 0.0;
    let times = gaps.iter().map(|gap| {
        at += gap;
        at
    });
    let cost = PerClass::from_fn(|class| match machine.count(class) {
        0 => Cost::NEVER,
        _ if class.is_gpu() => Cost { alone: Nanos::from_us(1000.0), added: Nanos::from_us(50.0) },
        _ => Cost::alone(Nanos::from_us(3000.0)),
    });
    let batches = BatchCost {
        host_fixed_us: 100.0,
        host_each_us: 1.0,
        exposed: None,
        device_fixed_us: 0.0,
        longest: 1.0,
        crowding: vec![(2, 4.0), (64, 1.0)],
        most_queries: 64,
    };
    Experiment {
        cluster: None,
        deadline: Nanos::from_ms(100.0),
        arrivals: vec![Arrivals::given(0, times.collect(), queries.to_vec())],
        queries: (0..10).map(|id| SimQuery { id: QueryId(id), service: cost, estimate: cost }).collect(),
        model: MachineModel {
            batches: PerClass::from_fn(|class| {
                (class == Class::GPU && machine.count(class) > 0).then(|| batches.clone())
            }),
            ..machine.into()
        },
    }
}

/// The policy for a GPU that holds the lists of only some of the ten queries.
struct Factory {
    options: PolicyOptions,
    is_held: Arc<[bool]>,
}

impl PolicyFactory for Factory {
    fn name(&self) -> &str {
        "cached-first"
    }

    fn build(&self, model: &MachineModel) -> Result<Box<dyn Policy>, PolicyError> {
        Ok(Box::new(CachedFirst::with_held(&self.options, model, Arc::clone(&self.is_held))?))
    }

    fn makes_batches(&self) -> bool {
        true
    }
}

fn play(experiment: &Experiment, is_held: &[bool], patience: u32) -> RunLog {
    let of_query = |query: usize| is_held.get(query) == Some(&true);
    let options = PolicyOptions { patience, ..PolicyOptions::default() };
    let policy = Factory { options, is_held: (0..10).map(of_query).collect() };
    assert_eq!(policy.build(&experiment.model).unwrap().name(), policy.name());
    simulate(experiment.run(&policy, 1000.0, &experiment.arrivals[0]).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn no_query_is_lost_or_run_twice_on_any_machine(
        arrivals in prop::collection::vec((0_u32..10, prop_oneof![Just(0.0), 0.0..3.0_f64]), 1..200),
        is_held in prop::collection::vec(any::<bool>(), 0..11),
        patience in prop_oneof![0_u32..4, Just(1000)],
        (cpus, gpus, streams, depth) in (0_usize..4, 0_usize..3, 1_usize..3, 1_u32..4),
    ) {
        prop_assume!(cpus + gpus > 0);
        let (queries, gaps): (Vec<u32>, Vec<f64>) = arrivals.into_iter().unzip();
        let machine = Machine::default().with_cpus(cpus).with_gpus(gpus, streams, depth);
        let log = play(&experiment(machine, &queries, &gaps), &is_held, patience);
        prop_assert_eq!(log.rows.len(), queries.len());
        for (i, (row, &query)) in log.rows.iter().zip(&queries).enumerate() {
            prop_assert_eq!((row.job.index(), row.query.0), (i, query));
        }
    }
}

#[test]
fn each_side_keeps_to_its_own_while_neither_has_too_many() {
    let queries: Vec<u32> = (0..600).map(|i| i % 10).collect();
    let is_held: Vec<bool> = (0..10).map(|query| query < 7).collect();
    let log = play(&experiment(Machine::new(2, 1), &queries, &[1.5; 600]), &is_held, 1000);
    for row in &log.rows {
        let class = if row.query.0 < 7 { Class::GPU } else { Class::CPU };
        assert_eq!(row.class, class, "query {}", row.query);
    }
}

#[test]
fn a_side_with_too_many_is_helped_and_is_not_with_more_patience() {
    // No list is cached, and the load exceeds two workers.
    let queries = vec![0; 500];
    let share = |patience| {
        let log = play(&experiment(Machine::new(2, 1), &queries, &[0.5; 500]), &[], patience);
        log.rows.iter().filter(|row| row.class == Class::GPU).count()
    };
    let (helped, patient) = (share(2), share(100_000));
    assert!(helped > 200 && patient == 0, "{helped}, {patient}");
    // All lists are cached, and a hundred times a batch arrives at once.
    let log = play(&experiment(Machine::new(2, 1), &vec![0; 6400], &vec![0.0; 6400]), &[true; 10], 2);
    assert!(log.rows.iter().any(|row| row.class == Class::CPU));
}
