//! No policy leaves work waiting while an idle lane would take it.
//!
//! A policy names the lanes that an event concerns, so that an event costs equally on any machine. Here every lane is
//! asked after each decision, and the batches that start then are counted: none, if the policy names the right lanes.

use tandem::base::machine::{Class, Machine};
use tandem::base::random::NodeSeed;
use tandem::base::time::Nanos;
use tandem::cost::{MachineModel, MeasuredTimes, Workload, shipped};
use tandem::lab::{Estimates, QueryLengths, draw_all, sim_queries};
use tandem::query::{ArrivalProcess, Mode};
use tandem::sched::{Dispatcher, Job, PolicyFactory, PolicyKind, PolicyOptions};
use tandem::sim::{Experiment, drive};

const QUERIES: usize = 4000;

/// A machine of `cpus` CPU workers and a GPU with a lane of this depth.
fn experiment(workload: &Workload, cpus: usize, depth: u32) -> Experiment {
    let machine = Machine::new(cpus, 0).with_gpus(1, 1, depth);
    let queries = sim_queries(workload, &Estimates::Oracle, &machine).unwrap();
    Experiment {
        arrivals: draw_all(&ArrivalProcess::Poisson, &[1], QUERIES, queries.len()),
        model: MachineModel { batches: workload.batches.batch_costs(), ..machine.into() },
        queries,
        deadline: Nanos::from_ms(50.0),
        cluster: None,
    }
}

/// Batches that start only because all lanes are asked, at a share of the rate above which the policy is not stable.
fn unasked(experiment: &Experiment, policy: &dyn PolicyFactory, load: f64) -> u64 {
    let Experiment { model, queries, .. } = experiment;
    let rate_qps = load * experiment.region_of(policy, 0.0).unwrap().rate_qps;
    let dispatcher = Dispatcher::new(&model.machine, policy.build(model).unwrap(), QUERIES).asking_everyone();
    let mut times =
        MeasuredTimes::new(model, NodeSeed::default(), |row, class: Class| queries[row as usize].service[class]);
    let job = |id, arrival, row: u32| {
        let query = &queries[row as usize];
        let deadline = arrival + experiment.deadline;
        Job { id, query: query.id, row, priority: 0, arrival, deadline, predicted: query.estimate }
    };
    let arrivals = experiment.arrivals[0].at_rate(rate_qps);
    let time = (model.dispatcher_time(policy.name()), NodeSeed::default());
    drive(dispatcher, &mut times, time, arrivals, job, |_| false).unwrap().unasked_starts()
}

#[test]
fn nothing_starts_only_since_every_lane_is_asked() {
    let workload = shipped::workload("synthetic-gov2-h200").unwrap().only(Mode::Or);
    for (cpus, depth) in [(1, 1), (4, 1), (4, 4)] {
        let experiment = experiment(&workload, cpus, depth);
        let estimates: Vec<_> = experiment.queries.iter().map(|query| query.estimate).collect();
        let lengths = QueryLengths::of(&workload, &estimates, &experiment.model);
        let options = PolicyOptions { length_threshold: lengths.best_threshold, ..PolicyOptions::default() };
        for kind in PolicyKind::ALL {
            let policy = kind.with(options).with_lengths(lengths.blocks.clone());
            for load in [0.5, 0.95] {
                let found = unasked(&experiment, &policy, load);
                assert_eq!(found, 0, "{kind} on {cpus} CPU workers and a lane of {depth}, load {load}");
            }
        }
    }
}
