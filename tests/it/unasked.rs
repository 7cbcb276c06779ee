//! No policy leaves work waiting while an idle lane would take it.
//!
//! A policy names the lanes that an event concerns, so that an event costs equally on any machine. Here every lane is
//! asked after each decision, and the batches that start then are counted: none, if the policy names the right lanes.

use tandem::base::ids::{JobId, QueryId};
use tandem::base::machine::{Class, Machine};
use tandem::base::random::NodeSeed;
use tandem::base::time::Nanos;
use tandem::cost::{Cost, MachineModel, MeasuredTimes, Workload, shipped};
use tandem::sched::{Dispatcher, Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyFactory, PolicyKind, PolicyOptions};
use tandem::sim::{Experiment, drive};
use tandem::study::{Estimates, QueryLengths, draw_all, sim_queries};
use tandem::traffic::{ArrivalProcess, Mode};

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

/// `cpu-only`, which names no lane.
struct Silent(Box<dyn Policy>);

impl Policy for Silent {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn arrive(&mut self, job: &Job, jobs: &Jobs, now: Nanos) -> LanesToPoll {
        self.0.arrive(job, jobs, now);
        LanesToPoll::Nobody
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        self.0.next(lane, jobs, now, batch)
    }
}

#[test]
fn each_start_of_a_policy_that_names_no_lane_counts() {
    let dispatcher = |policy| Dispatcher::new(&Machine::new(2, 0), policy, 3).asking_everyone();
    let silent = Silent(PolicyKind::CpuOnly.with(PolicyOptions::default()).build(&Machine::new(2, 0).into()).unwrap());
    let cost = Cost::on_cpu_and_gpu(Nanos::from_ms(1.0), Nanos::MAX);
    let model = MachineModel::from(Machine::new(2, 0));
    let mut times = MeasuredTimes::new(&model, NodeSeed::default(), |_, class: Class| cost[class]);
    let job = |id, arrival, row: u32| {
        let deadline = arrival + Nanos::from_ms(50.0);
        Job { id, query: QueryId(row), row, priority: 0, arrival, deadline, predicted: cost }
    };
    let arrivals = [0.0, 0.1, 5.0].map(|ms| (Nanos::from_ms(ms), 0)).into_iter();
    let decisions = model.decisions("cpu-only");
    let done = drive(dispatcher(Box::new(silent)), &mut times, decisions, arrivals, job, |_| false).unwrap();
    assert_eq!(done.unasked_starts(), 3);
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
    let decisions = model.decisions(policy.name());
    drive(dispatcher, &mut times, decisions, arrivals, job, |_| false).unwrap().unasked_starts()
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
