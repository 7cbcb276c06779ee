//! Queries with different deadlines and importance.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use proptest::prelude::*;
use tandem::base::ids::QueryId;
use tandem::base::machine::Machine;
use tandem::base::time::Nanos;
use tandem::cost::Cost;
use tandem::sched::{PolicyFactory, PolicyKind, PolicyOptions, RunLog};
use tandem::sim::{Arrivals, Experiment, SimQuery, simulate};
use tandem::study::{CapacitySearch, Objective, RunLength, play_all};
use tandem::traffic::{ArrivalProcess, Priorities};

/// A CPU worker, or several, and queries of these milliseconds.
fn experiment(cpus: usize, ms: &[f64], arrivals: Arrivals) -> Experiment {
    let query = |(id, &ms): (u32, &f64)| {
        let service = Cost::on_cpu_and_gpu(Nanos::from_ms(ms), Nanos::from_ms(ms));
        SimQuery { id: QueryId(id), service, estimate: service }
    };
    Experiment {
        model: Machine::new(cpus, 0).into(),
        queries: (0..).zip(ms).map(query).collect(),
        deadline: Nanos::from_ms(100.0),
        arrivals: vec![arrivals],
        cluster: None,
    }
}

fn play(experiment: &Experiment, kind: PolicyKind, rate_qps: f64) -> RunLog {
    let policy = kind.with(PolicyOptions::default());
    simulate(experiment.run(&policy, rate_qps, &experiment.arrivals[0]).unwrap()).unwrap()
}

fn two_priorities() -> Option<Arc<Priorities>> {
    Some(Arc::new(Priorities::from_text("interactive=20ms:0.7,batch=2s:0.3").unwrap()))
}

#[test]
fn edf_is_first_come_first_served_for_equal_deadlines() {
    let drawn = || Arrivals::drawn(&ArrivalProcess::Poisson, 3, 20_000, 3);
    let alike = experiment(1, &[2.0, 5.0, 11.0], drawn());
    assert_eq!(play(&alike, PolicyKind::Edf, 140.0), play(&alike, PolicyKind::CpuOnly, 140.0));
    let differing = experiment(1, &[2.0, 5.0, 11.0], drawn().with_priorities(two_priorities()));
    let missed = |kind| {
        let log = play(&differing, kind, 140.0);
        let missed = |level: u8| log.rows.iter().filter(|row| row.priority == level && row.missed()).count();
        [missed(0), missed(1)]
    };
    let [fifo, edf, slack] = [PolicyKind::CpuOnly, PolicyKind::Edf, PolicyKind::LeastSlack].map(missed);
    assert!(edf[0] * 2 < fifo[0] && edf[1] == 0, "first come {fifo:?}, earliest deadline {edf:?}");
    assert!(slack[0] * 3 < fifo[0] * 2, "first come {fifo:?}, least slack {slack:?}");
}

#[test]
fn the_counts_of_all_priorities_add_up_to_those_of_the_run() {
    let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, 1, 5000, 3).with_priorities(two_priorities());
    let experiment = experiment(2, &[2.0, 5.0, 11.0], arrivals);
    let policies = [PolicyKind::CpuOnly, PolicyKind::Edf].map(|kind| kind.with(PolicyOptions::default()));
    let policies: Vec<&dyn PolicyFactory> = policies.iter().map(|policy| policy as &dyn PolicyFactory).collect();
    for run in play_all(&experiment, &policies, &[300.0], 0.0, |_, _| true, &|| ()).unwrap() {
        let [(first, interactive), (second, batch)] = &run.priorities[..] else { panic!("{:?}", run.priorities) };
        assert_eq!([first.as_str(), second.as_str()], ["interactive", "batch"]);
        assert_eq!(interactive.queries + batch.queries, run.summary.queries);
        assert_eq!(interactive.missed + batch.missed, run.summary.missed);
        let share = interactive.queries as f64 / run.summary.queries as f64;
        assert!((share - 0.7).abs() < 0.03, "{share}");
        let mean_ms = share * interactive.mean_ms + (1.0 - share) * batch.mean_ms;
        assert!((mean_ms / run.summary.mean_ms - 1.0).abs() < 1e-9, "{mean_ms}, {:?}", run.summary);
    }
}

#[test]
fn a_rate_holds_only_if_it_holds_for_every_priority() {
    let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, 1, 0, 3);
    let capacity = |kind: PolicyKind, text: &str| {
        let priorities = Some(Arc::new(Priorities::from_text(text).unwrap()));
        let experiment = experiment(1, &[2.0, 5.0, 11.0], arrivals.clone().with_priorities(priorities));
        let length = RunLength::Enough { at_least: 20_000 };
        let search = CapacitySearch::new(&experiment, Objective::default(), length).unwrap();
        search.of(&kind.with(PolicyOptions::default())).unwrap().qps
    };
    let strict = "interactive=30ms:0.5,batch=2s:0.5";
    // First come, first served gives both priorities the same delays, so that the shorter deadline decides.
    let (fifo, all) = (capacity(PolicyKind::CpuOnly, strict), capacity(PolicyKind::CpuOnly, "all=30ms:1"));
    assert!((fifo / all - 1.0).abs() < 0.05, "{fifo} {all}");
    let edf = capacity(PolicyKind::Edf, strict);
    assert!(edf > 1.3 * fifo, "{edf} {fifo}");
}

proptest! {
    /// Of jobs that have all arrived, one lane meets all deadlines in some order exactly if it does in the order of deadlines.
    #[test]
    fn no_order_meets_deadlines_that_edf_misses(
        jobs in prop::collection::vec((1..20_u32, 1..60_u32), 1..6),
    ) {
        let levels: Vec<String> =
            jobs.iter().enumerate().map(|(i, (_, due))| format!("p{i}={due}ms")).collect();
        let names: Vec<String> = (0..jobs.len()).map(|i| format!("p{i}")).collect();
        let priorities = Priorities::from_text(&levels.join(",")).unwrap().of_trace(&names).unwrap();
        let ms: Vec<f64> = jobs.iter().map(|(ms, _)| f64::from(*ms)).collect();
        let arrivals = Arrivals::given(0, vec![0.0; jobs.len()], (0..jobs.len() as u32).collect());
        let experiment = experiment(1, &ms, arrivals.with_priorities(Some(Arc::new(priorities))));
        let log = play(&experiment, PolicyKind::Edf, 1.0);
        let meets = log.rows.iter().all(|row| !row.missed());
        prop_assert_eq!(meets, any_order_meets(&jobs, 0));
    }
}

/// Whether some order of the jobs, each of a length and a deadline, meets all deadlines from a time on.
fn any_order_meets(jobs: &[(u32, u32)], from: u32) -> bool {
    let first = |i: usize| {
        let (length, due) = jobs[i];
        let rest = [&jobs[..i], &jobs[i + 1..]].concat();
        from + length <= due && any_order_meets(&rest, from + length)
    };
    jobs.is_empty() || (0..jobs.len()).any(first)
}

fn tandem(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir).args(arguments.split_whitespace()).output().unwrap()
}

#[test]
fn simulate_reports_each_priority_and_a_trace_names_them() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("w.csv"), "query_id,cpu_us\n0,2000\n1,9000\n").unwrap();
    let run = "simulate --workload w.csv --policy cpu-only,edf --what delays --rate 150";
    let output = tandem(dir.path(), &format!("{run} --num-queries 500 --priority a=20ms:0.5,b=1s:0.5 --log"));
    let text = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("priorities a=20ms:0.5,b=1000ms:0.5") && text.contains("Delays by priority:"), "{text}");
    let written = std::fs::read_to_string(dir.path().join("out/priorities.csv")).unwrap();
    let rows: Vec<&str> = written.lines().filter(|line| line.starts_with("simulated,")).collect();
    // Two policies, ten seeds and two priorities.
    assert_eq!(rows.len(), 40, "{written}");

    let trace: String = (0..100).map(|i| format!("{},{},{}\n", i * 5000, i % 2, ["a", "b", "b"][i % 3])).collect();
    std::fs::write(dir.path().join("t.trace.csv"), format!("arrival_us,query_id,priority\n{trace}")).unwrap();
    let traced = "simulate --workload w.csv --policy edf --what delays --trace t.trace.csv";
    let output = tandem(dir.path(), &format!("{traced} --priority a=20ms,b=1s"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let written = std::fs::read_to_string(dir.path().join("out/priorities.csv")).unwrap();
    assert!(written.contains(",a,34,") && written.contains(",b,66,"), "{written}");

    std::fs::write(dir.path().join("plain.trace.csv"), "arrival_us,query_id\n1,0\n9000,1\n").unwrap();
    for (arguments, why) in [
        (format!("{run} --priority a=20ms"), "--priority: shares are missing"),
        (format!("{run} --priority a=20ms:1 --deadline-ms 5"), "cannot be used with"),
        (format!("{run} --priority a=20:1"), "expected NAME=TIME"),
        (format!("{run} --priority a=20ms:1 --shards 2"), "--priority: one machine serves priorities"),
        (format!("{traced} --priority a=20ms"), "the trace has queries of priority \"b\""),
        (traced.to_owned(), "the trace names priorities, which need deadlines (--priority)"),
        (traced.replace("t.trace", "plain.trace") + " --priority a=20ms", "--priority: shares are missing"),
    ] {
        let output = tandem(dir.path(), &arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        let errors = errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
        assert!(errors.contains(why), "{arguments}: {errors}");
    }
}
