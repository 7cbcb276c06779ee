//! Jobs that occupy several lanes.

use std::process::{Command, Output};
use std::sync::Arc;

use proptest::prelude::*;
use tandem::base::ids::{JobId, ProcessorId, QueryId};
use tandem::base::machine::{Class, Machine, PerClass};
use tandem::base::time::Nanos;
use tandem::cost::{BatchCost, Cost, MachineModel, Parallelism, SpeedUp};
use tandem::sched::{
    Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyFactory, PolicyKind, PolicyOptions, RunLog,
};
use tandem::sim::{Arrivals, Experiment, SimQuery, simulate};
use tandem::study::Tally;
use tandem::traffic::ArrivalProcess;

/// Five queries, of which one is ten times as long as the median.
const MS: [f64; 5] = [1.2, 2.4, 3.6, 6.0, 36.0];

fn experiment(cpus: usize, ms: &[f64], by_lanes: Vec<f64>) -> Experiment {
    let query = |(id, &ms): (u32, &f64)| {
        let service = Cost::on_cpu_and_gpu(Nanos::from_ms(ms), Nanos::MAX);
        SimQuery { id: QueryId(id), service, estimate: service }
    };
    let times = ms.iter().map(|&ms| Nanos::from_ms(ms)).collect();
    let parallelism = Some(Arc::new(Parallelism::of(SpeedUp::of_all(by_lanes), times)));
    Experiment {
        model: MachineModel { parallelism, ..Machine::new(cpus, 0).into() },
        queries: (0..).zip(ms).map(query).collect(),
        deadline: Nanos::from_ms(1000.0),
        arrivals: vec![Arrivals::drawn(&ArrivalProcess::Poisson, 1, 40_000, ms.len())],
        cluster: None,
    }
}

fn play(experiment: &Experiment, policy: &dyn PolicyFactory, rate_qps: f64) -> RunLog {
    simulate(experiment.run(policy, rate_qps, &experiment.arrivals[0]).unwrap()).unwrap()
}

/// First come, first served, with a step for the oldest job or, if none waits, for an idle lane.
#[derive(Clone, Copy)]
struct Own {
    start: Next,
    idle: Next,
}

impl Policy for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn shares_jobs(&self) -> bool {
        true
    }

    fn arrive(&mut self, _job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        LanesToPoll::Class(Class::CPU)
    }

    fn next(&mut self, _lane: Lane, jobs: &Jobs, _now: Nanos, batch: &mut Vec<JobId>) -> Next {
        let Some(job) = jobs.oldest() else { return self.idle };
        batch.push(job.id);
        self.start
    }
}

impl PolicyFactory for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn build(&self, _model: &MachineModel) -> Result<Box<dyn Policy>, PolicyError> {
        Ok(Box::new(*self))
    }
}

#[test]
fn perfect_speed_up_equals_one_lane_as_many_times_as_fast() {
    let shared = experiment(4, &MS, vec![1.0, 2.0, 3.0, 4.0]);
    let log = play(&shared, &Own { start: Next::RunOn(4), idle: Next::Wait }, 350.0);
    let single = experiment(1, &MS.map(|ms| ms / 4.0), vec![1.0]);
    let expected = play(&single, &PolicyKind::CpuOnly.with(PolicyOptions::default()), 350.0);
    let delay = |log: &RunLog| log.rows.iter().map(|row| row.delay().as_us()).sum::<f64>();
    // Each join rounds to a nanosecond.
    assert!((delay(&log) / delay(&expected) - 1.0).abs() < 1e-4, "{} {}", delay(&log), delay(&expected));
    assert!(log.rows.iter().all(|row| row.lanes == 4));
    let mut tally = Tally::new(&shared.model.machine, log.rows.len());
    log.rows.iter().for_each(|row| tandem::sched::Sink::record(&mut tally, row));
    let busy = tally.summary().unwrap().utilisation[Class::CPU].unwrap();
    // The load is 350 q/s times 2.46 ms.
    assert!((busy - 0.861).abs() < 0.02, "{busy}");
}

#[test]
fn a_join_that_is_impossible_breaks_the_contract() {
    let experiment = experiment(2, &MS, vec![1.0, 1.5]);
    let broken = |own: Own| {
        let run = experiment.run(&own, 100.0, &experiment.arrivals[0]).unwrap();
        simulate(run).unwrap_err().to_string()
    };
    let idle = |lane| Own { start: Next::Run, idle: Next::Join(ProcessorId(lane)) };
    assert!(broken(idle(1)).contains("processor 1 was to help 1, which is impossible"), "{}", broken(idle(1)));
    assert!(broken(idle(7)).contains("processor 1 was to help 7, which is impossible"));
}

#[test]
fn sharing_policies_shorten_the_tail_and_keep_the_laws() {
    let experiment = experiment(8, &MS, vec![1.0, 1.71, 2.4, 3.1, 3.7, 4.3, 4.8, 5.2]);
    // 30 % of what eight lanes serve.
    let rate_qps = 0.3 * 8.0 / 9.84e-3;
    let delays = |kind: PolicyKind| {
        let log = play(&experiment, &kind.with(PolicyOptions::default()), rate_qps);
        assert_eq!(log.rows.len(), 40_000);
        // At no time are more lanes occupied than there are.
        let occupied: f64 =
            log.rows.iter().map(|row| row.finished.since(row.started).as_us() + row.helped.as_us()).sum();
        let span = log.rows.iter().map(|row| row.finished).max().unwrap().as_us();
        assert!(occupied <= 8.0 * span, "{kind}");
        let mut tally = Tally::new(&experiment.model.machine, log.rows.len());
        log.rows.iter().for_each(|row| tandem::sched::Sink::record(&mut tally, row));
        let summary = tally.summary().unwrap();
        [summary.mean_ms, summary.p99_ms]
    };
    let one_lane = delays(PolicyKind::CpuOnly);
    for kind in PolicyKind::ALL.into_iter().filter(|kind| kind.shares_jobs()) {
        let shared = delays(kind);
        assert!(shared[0] < 0.7 * one_lane[0] && shared[1] <= one_lane[1], "{kind}: {shared:?} against {one_lane:?}");
    }
    let few_to_many = delays(PolicyKind::FewToMany);
    assert!(few_to_many[1] < 0.7 * one_lane[1], "{few_to_many:?} against {one_lane:?}");
}

/// Short and long queries on these CPU workers and GPUs. A GPU is 6 to 64 times as fast as a worker.
fn with_gpus(machine: Machine, batches: Option<BatchCost>, arrivals: Arrivals) -> Experiment {
    let cpus = experiment(8, &MS, vec![1.0, 1.71, 2.4, 3.1, 3.7, 4.3, 4.8, 5.2]);
    let query = |query: &SimQuery| {
        let cpu = query.service[Class::CPU].alone;
        let gpu = Nanos::from_us(200.0) + cpu.scaled(0.01);
        let service = Cost::on_cpu_and_gpu(cpu, gpu);
        SimQuery { service, estimate: service, ..*query }
    };
    Experiment {
        model: MachineModel { machine, batches: PerClass::two(None, batches), ..cpus.model },
        queries: cpus.queries.iter().map(query).collect(),
        arrivals: vec![arrivals],
        ..cpus
    }
}

#[test]
fn tail_has_a_third_less_at_p99_than_one_worker_per_query() {
    use PolicyKind::{Combined, Mct, Stealing, StealingAdaptive, Tail};
    let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, 1, 20_000, MS.len());
    let experiment = with_gpus(Machine::new(14, 1), None, arrivals);
    let limit_qps = experiment.region().unwrap().rate_qps;
    for load in [0.5, 0.8] {
        let p99 = |kind: PolicyKind| {
            let mut delays: Vec<Nanos> = play(&experiment, &kind.with(PolicyOptions::default()), load * limit_qps)
                .rows
                .iter()
                .map(|row| row.delay())
                .collect();
            delays.sort_unstable();
            delays[delays.len() * 99 / 100].as_ms()
        };
        let best = [Mct, Stealing, StealingAdaptive, Combined].map(p99).into_iter().fold(f64::INFINITY, f64::min);
        assert!(p99(Tail) < 0.67 * best, "{} against {best} at {load}", p99(Tail));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn tail_keeps_the_laws_on_any_machine(
        (cpus, gpus, streams, depth) in (0_usize..6, 0_usize..3, 1_usize..3, 1_u32..4),
        has_batches in any::<bool>(),
        load in 0.1..1.5_f64,
        seed in any::<u64>(),
    ) {
        prop_assume!(cpus + gpus > 0);
        let batches = BatchCost {
            host_fixed_us: 5.0,
            host_each_us: 1.0,
            longest: 0.5,
            crowding: vec![(2, 3.0), (64, 1.0)],
            most_queries: 64,
            ..BatchCost::default()
        };
        let experiment = with_gpus(
            Machine::new(cpus, 0).with_gpus(gpus, streams, depth),
            has_batches.then_some(batches),
            Arrivals::drawn(&ArrivalProcess::Poisson, seed, 2000, MS.len()),
        );
        let rate_qps = load * experiment.region().unwrap().rate_qps;
        // The dispatcher ends the run if a law is broken.
        let log = play(&experiment, &PolicyKind::Tail.with(PolicyOptions::default()), rate_qps);
        prop_assert_eq!(log.rows.len(), 2000);
        prop_assert!(log.rows.iter().all(|row| row.lanes == 1 || row.class == Class::CPU && row.lanes <= cpus as u32));
    }
}

fn simulated(arguments: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("w.csv"), "query_id,cpu_us\n0,2000\n1,9000\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir.path()).arg("simulate").args(arguments.split_whitespace()).output().unwrap()
}

#[test]
fn simulate_needs_a_speed_up_and_shows_the_gap_to_the_bound() {
    let run =
        "--workload w.csv --cpus 4 --policy cpu-only,few-to-many --what gap --rate 200 --num-queries 2000 --seeds 1";
    let refused = simulated(run);
    let errors = String::from_utf8_lossy(&refused.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    assert!(errors.contains("--policy few-to-many needs the speed-up of a query on several CPU workers"), "{errors}");
    let output = simulated(&format!("{run} --set speed-up=1,1.8,2.5,3"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("against bounds for any schedule") && text.contains("gap.csv"), "{text}");
    for (bad, why) in [("2", "must begin with 1"), ("1,3", "not exceed the number of lanes"), ("1,x", "not a number")] {
        let errors = String::from_utf8_lossy(&simulated(&format!("{run} --set speed-up={bad}")).stderr).into_owned();
        assert!(errors.split_whitespace().collect::<Vec<_>>().join(" ").contains(why), "{errors}");
    }
}
