//! The live driver: the simulator's log under a manual clock, and honest endings under the real one.
//!
//! No test here asserts a time: what is checked is order, counts and words.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tandem::cost::{Measured, Workload};
use tandem::exec::{ExecError, Execution, Executor, Hit};
use tandem::ids::{DocId, ProcessorId, QueryId};
use tandem::live::{self, Ending, Fleet, Gpus, LiveError, LiveQuery, LiveRun, QuerySet, RecordedTimes};
use tandem::machine::{Class, Machine, PerClass};
use tandem::query::{Mode, Query};
use tandem::sched::{Batch, Job, Next, Policy, PolicyKind, PolicyOptions, RunLog};
use tandem::sim::{SimQuery, SimRun, simulate};
use tandem::time::Nanos;

const DEADLINE: Nanos = Nanos(40);

/// Few, small and often equal numbers: ties are where two loops would differ.
fn queries() -> impl Strategy<Value = Vec<SimQuery>> {
    let time = || (1u64..30).prop_map(Nanos);
    let query = (time(), time(), time(), time()).prop_map(|(cpu, gpu, cpu_guess, gpu_guess)| SimQuery {
        id: QueryId(0),
        service: PerClass::two(cpu, gpu),
        estimate: PerClass::two(cpu_guess, gpu_guess),
    });
    prop::collection::vec(query, 1..8).prop_map(|mut queries| {
        for (i, query) in queries.iter_mut().enumerate() {
            query.id = QueryId(100 + i as u32);
        }
        queries
    })
}

/// Gaps between arrivals, many of them zero, and which query arrives (taken modulo their number).
fn arrivals() -> impl Strategy<Value = Vec<(Nanos, u32)>> {
    prop::collection::vec((prop_oneof![Just(0u64), 0u64..20], any::<u32>()), 0..120).prop_map(|gaps| {
        let mut now = 0;
        gaps.into_iter()
            .map(|(gap, query)| {
                now += gap;
                (Nanos(now), query)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn live_driver_with_manual_clock_logs_exactly_what_sim_logs(
        queries in queries(),
        mut arrivals in arrivals(),
        cpus in 1usize..4,
        gpus in 1usize..3,
    ) {
        for (_, query) in &mut arrivals {
            *query %= queries.len() as u32;
        }
        let machine = Machine::new(cpus, gpus);
        let times = |query: &SimQuery| PerClass::from_fn(|kind| Some(query.service[kind]));
        let recorded = RecordedTimes::new(queries.iter().map(|query| (query.id, times(query))));
        let mut fleet = Fleet::replayed(machine.clone(), recorded);
        let estimates: Vec<_> = queries.iter().map(|q| (q.id, q.estimate)).collect();
        let jobs = live::plan(arrivals.iter().copied(), &estimates, DEADLINE);
        for kind in PolicyKind::ALL {
            let policy = || kind.build(&PolicyOptions::default(), &machine).unwrap();
            let simulated = simulate(SimRun {
                machine: &machine,
                policy: policy(),
                queries: &queries,
                arrivals: arrivals.iter().copied(),
                deadline: DEADLINE,
            })
            .unwrap();
            let run = LiveRun { policy: policy(), jobs: &jobs, abandon_after: None };
            let driven = live::run_under_manual_clock(&mut fleet, run).unwrap();
            prop_assert_eq!(&driven.log, &simulated, "{}", kind);
            prop_assert!(matches!(driven.ending, Ending::Complete));
            prop_assert_eq!(driven.log.rows.len(), jobs.len());
            prop_assert_eq!(driven.lag.max, Nanos::ZERO);
        }
    }
}

/// First come, first served, on any processor; counts what has arrived.
struct Fifo {
    waiting: VecDeque<Job>,
    arrived: Arc<AtomicU32>,
}

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn arrive(&mut self, job: Job, _now: Nanos) {
        self.waiting.push_back(job);
        self.arrived.fetch_add(1, Ordering::Relaxed);
    }

    fn next(&mut self, _processor: ProcessorId, _now: Nanos) -> Next {
        self.waiting.pop_front().map_or(Next::Wait, |job| Next::Run(Batch::One(job)))
    }
}

fn fifo() -> Box<dyn Policy> {
    counting_fifo(&Arc::default())
}

fn counting_fifo(arrived: &Arc<AtomicU32>) -> Box<dyn Policy> {
    Box::new(Fifo { waiting: VecDeque::new(), arrived: Arc::clone(arrived) })
}

/// An executor whose answers a closure makes from the query's number in its log.
struct Scripted<F>(F);

impl<F: FnMut(u32) -> Result<Vec<Hit>, ExecError> + Send> Executor for Scripted<F> {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        String::from("a script")
    }

    fn search(&mut self, query: &Query, _: Mode, _: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        *hits = (self.0)(query.id.0)?;
        Ok(Execution::default())
    }
}

fn one_hit(score: f32) -> Vec<Hit> {
    vec![Hit { doc: DocId(1), score }]
}

/// A fleet of one scripted CPU worker that knows queries 0 to 9, each with one result.
fn fleet(script: impl FnMut(u32) -> Result<Vec<Hit>, ExecError> + Send + 'static) -> Fleet {
    let live = |id| LiveQuery {
        id: QueryId(id),
        query: Query { id: QueryId(id), label: id.to_string(), terms: Vec::new(), dropped_terms: 0 },
        mode: Mode::And,
        results: Some(1),
    };
    let queries = Arc::new(QuerySet::new(10, (0..10).map(live)));
    Fleet::spawn(queries, vec![Box::new(Scripted(script))], Gpus::None).unwrap()
}

/// `count` jobs that all arrive at once and ask queries 0 to 9 in turn.
fn jobs_at_once(count: u32) -> Vec<Job> {
    let queries: Vec<_> = (0..10).map(|id| (QueryId(id), PerClass::two(Nanos(1000), Nanos::MAX))).collect();
    live::plan((0..count).map(|i| (Nanos::ZERO, i % 10)), &queries, DEADLINE)
}

#[test]
fn jobs_are_released_whatever_the_backlog() {
    let arrived = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&arrived);
    // The first query is answered only when all have been released: a driver that waited for answers would hang here.
    let mut fleet = fleet(move |_| {
        let patience = Instant::now();
        while seen.load(Ordering::Relaxed) < 50 {
            assert!(
                patience.elapsed() < Duration::from_secs(60),
                "the driver waits for an answer before it releases more"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(one_hit(1.0))
    });
    let jobs = jobs_at_once(50);
    let run = LiveRun { policy: counting_fifo(&arrived), jobs: &jobs, abandon_after: None };
    let outcome = live::run(&mut fleet, run).unwrap();
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    assert_eq!(outcome.log.rows.len(), 50);
    assert_eq!((outcome.unreleased, outcome.unfinished), (0, 0));
}

#[test]
fn one_fleet_serves_many_runs() {
    let mut fleet = fleet(|_| Ok(one_hit(1.0)));
    for count in [0, 1, 30] {
        let jobs = jobs_at_once(count);
        let outcome = live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None }).unwrap();
        assert_eq!(outcome.log.rows.len(), count as usize);
    }
}

#[test]
fn an_executor_that_fails_ends_the_run_and_keeps_what_was_measured() {
    let mut fleet = fleet(|query| if query == 3 { Err(ExecError::BadK(0)) } else { Ok(one_hit(1.0)) });
    let jobs = jobs_at_once(8);
    let outcome = live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None }).unwrap();
    let Ending::Failed(LiveError::Executor { query, .. }) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert_eq!(query, QueryId(3));
    assert_eq!(outcome.log.rows.len(), 3);
    assert_eq!(outcome.unreleased + outcome.unfinished, 5);
    // The worker has survived.
    let jobs = jobs_at_once(3);
    let outcome = live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None }).unwrap();
    assert_eq!(outcome.log.rows.len(), 3);
}

#[test]
fn an_executor_that_panics_ends_the_run_with_an_error() {
    let mut fleet = fleet(|query| if query == 2 { panic!("on purpose") } else { Ok(one_hit(1.0)) });
    let jobs = jobs_at_once(5);
    let outcome = live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None }).unwrap();
    assert!(matches!(outcome.ending, Ending::Failed(LiveError::WorkerPanicked(_))), "{:?}", outcome.ending);
    assert_eq!(outcome.log.rows.len(), 2);
}

#[test]
fn an_answer_that_changes_ends_the_run_with_an_error() {
    let mut answers = 0u8;
    let mut fleet = fleet(move |_| {
        answers += 1;
        Ok(one_hit(if answers <= 10 { 1.0 } else { 1.5 }))
    });
    let jobs = jobs_at_once(20);
    let outcome = live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None }).unwrap();
    let Ending::Failed(error) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert!(error.to_string().starts_with("query 0 on cpu: its documents or scores differ"), "{error}");
    assert_eq!(outcome.log.rows.len(), 10);
}

#[test]
fn a_plan_that_the_fleet_cannot_run_is_refused_before_it_starts() {
    let jobs = jobs_at_once(3);
    let machine = Machine::new(1, 0);
    let mut fleet = Fleet::replayed(machine, RecordedTimes::default());
    let error = live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None }).unwrap_err();
    assert_eq!(error.to_string(), "query 0 has no recorded cpu time to replay");
}

#[test]
fn a_hopeless_backlog_is_given_up_and_accounted_for() {
    let recorded = RecordedTimes::new((0..10).map(|id| (QueryId(id), PerClass::two(Some(Nanos(100)), None))));
    let mut fleet = Fleet::replayed(Machine::new(1, 0), recorded);
    let queries: Vec<_> = (0..10).map(|id| (QueryId(id), PerClass::two(Nanos(100), Nanos::MAX))).collect();
    let jobs = live::plan((0..1000).map(|i| (Nanos(u64::from(i) * 10), i % 10)), &queries, DEADLINE);
    let run = LiveRun { policy: fifo(), jobs: &jobs, abandon_after: Some(Nanos(400)) };
    let outcome = live::run_under_manual_clock(&mut fleet, run).unwrap();
    assert!(outcome.overloaded());
    assert!(outcome.unreleased > 0 && outcome.unfinished > 0);
    assert_eq!(outcome.log.rows.len() + outcome.unfinished + outcome.unreleased, 1000);
    // The backlog was seen as soon as it was too old, and what ran then was waited for.
    assert!(outcome.log.rows.iter().all(|row| row.delay() <= Nanos(400 + 10 + 100)));
}

/// A folder with a tiny index, its query log and its workload, made by the program itself.
fn tiny_lab() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let words = ["sea", "ship", "sail", "wind", "storm", "rope", "mast", "crew"];
    let documents: String = (0..400)
        .map(|i| {
            let text: Vec<&str> = (0..8).filter(|w| i % (w + 2) == 0).map(|w| words[w]).collect();
            format!("{{\"id\": \"d{i}\", \"text\": \"deck {}\"}}\n", text.join(" "))
        })
        .collect();
    let queries: String = (0..24).map(|i| format!("q{i}\t{} {}\n", words[i % 8], words[(i / 8 + i + 1) % 8])).collect();
    std::fs::write(dir.path().join("docs.jsonl"), documents).unwrap();
    std::fs::write(dir.path().join("queries.tsv"), queries).unwrap();
    tandem(dir.path(), "index build docs.jsonl -o index --tokenizer ascii", 0);
    tandem(dir.path(), "profile index --queries queries.tsv --mode or --on cpu -o cpu.workload.csv", 0);
    dir
}

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(folder).args(arguments.split_whitespace());
    command
}

/// Runs the program to its end, checks its exit code and gives what it printed.
fn tandem(folder: &Path, arguments: &str, code: i32) -> (String, String) {
    let output = command(folder, arguments).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "tandem {arguments}\n{out}\n{err}");
    (out, err)
}

// A deadline that a busy machine under test meets too: hopeless runs are given up.
const LIVE: &str =
    "live index --queries queries.tsv --workload cpu.workload.csv --deadline-ms 5000 --out results --log";

#[test]
fn a_run_on_the_cpu_writes_its_log_and_summary() {
    let lab = tiny_lab();
    let (out, _) = tandem(lab.path(), &format!("{LIVE} --gpu none --estimates oracle --rate 500 --num-queries 50"), 0);
    assert!(out.contains("cpu-only"), "{out}");
    let (log, provenance) = RunLog::read(&lab.path().join("results/log/cpu-only-500qps-seed1.csv")).unwrap();
    assert_eq!(log.rows.len(), 50);
    assert_eq!(provenance.get("policy"), Some("cpu-only"));
    let summary = std::fs::read_to_string(lab.path().join("results/summary.csv")).unwrap();
    assert!(summary.contains("\nlive,cpu-only,500,1,50,"), "{summary}");
    assert!(summary.ends_with(",none\n"), "{summary}");
}

#[test]
fn cores_share_queries_by_every_method() {
    let lab = tiny_lab();
    for method in ["inter", "adaptive", "docp-ui", "docp-pi", "fgqp"] {
        let run = "--gpu none --estimates oracle --policy cpu-only --cpus 2 --rate 300 --num-queries 30";
        tandem(lab.path(), &format!("{LIVE} {run} --multicore {method}"), 0);
        // Answers were checked against the profile's as they came.
        let (log, _) = RunLog::read(&lab.path().join("results/log.csv")).unwrap();
        assert_eq!(log.rows.len(), 30, "{method}");
    }
}

#[test]
fn rows_of_a_replayed_gpu_say_so() {
    let lab = tiny_lab();
    let path = lab.path().join("cpu.workload.csv");
    let mut workload = Workload::read(&path).unwrap();
    for row in &mut workload.rows {
        row.measured[Class::GPU] = Some(Measured { median_us: 50.0, spread_us: 0.0, device_us: None });
    }
    workload.write(&path).unwrap();
    let run = "--gpu replay --estimates oracle --policy gpu-only --rate 500 --num-queries 20";
    let (out, _) = tandem(lab.path(), &format!("{LIVE} {run}"), 0);
    assert!(out.contains("GPU: none used; its lane replays"), "{out}");
    let log = std::fs::read_to_string(lab.path().join("results/log.csv")).unwrap();
    let rows: Vec<&str> = log.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
    assert_eq!(rows.len(), 20);
    assert!(rows.iter().all(|row| row.ends_with(",replay")), "{log}");
    // A job starts when it is handed over, takes its recorded time at least, and one at a time runs.
    let (log, _) = RunLog::read(&lab.path().join("results/log.csv")).unwrap();
    assert!(log.rows.iter().all(|row| row.finished >= row.started + Nanos::from_us(50.0)));
    assert!(log.rows.windows(2).all(|pair| pair[1].started >= pair[0].finished));
}

#[test]
fn what_cannot_be_driven_is_refused_with_exit_code_2() {
    let lab = tiny_lab();
    let refused = [
        ("--rate 0", "--rate: rate 0 is out of range"),
        ("--rate NaN", "--rate"),
        ("--seconds 0", "--seconds is 0"),
        ("--num-queries 0", "--num-queries is 0"),
        ("--deadline-ms 0", "--deadline-ms is 0"),
        ("--cpus 0 --gpu none", "nothing real to drive"),
        ("--rate 1e9 --seconds 100", "are too many"),
        ("--gpu none --policy stealing", "policy stealing needs a GPU, and --gpu is none"),
        ("--gpu none --mode and", "no queries in mode and"),
        ("--gpu none --trace missing.csv", "missing.csv"),
        ("--gpu none --estimates missing.json", "missing.json"),
    ];
    for (arguments, expected) in refused {
        let (_, err) = tandem(lab.path(), &format!("{LIVE} {arguments}"), 2);
        assert!(err.contains(expected), "{arguments}: {err:?} should contain {expected:?}");
    }
    assert!(!lab.path().join("results").exists());
}

#[test]
fn a_gpu_that_is_asked_for_and_missing_is_an_error() {
    let lab = tiny_lab();
    let output =
        command(lab.path(), &format!("{LIVE} --gpu real --estimates oracle --num-queries 10")).output().unwrap();
    if output.status.success() {
        println!("skipped: this machine has a GPU");
        return;
    }
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("error: no GPU to use: "));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_run_cleanly_and_keeps_what_was_measured() {
    let lab = tiny_lab();
    let mut child = command(lab.path(), &format!("{LIVE} --gpu none --estimates oracle --rate 200 --seconds 3600"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // From this line on Ctrl-C is caught; a little later there is something to keep.
    let mut announced = String::new();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    while !announced.contains("run 1 of") {
        assert_ne!(err.read_line(&mut announced).unwrap(), 0, "{announced}");
    }
    std::thread::sleep(Duration::from_secs(1));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.contains("interrupted in run 1 of 2") && out.contains("were not released"), "{out}");
    let summary = std::fs::read_to_string(lab.path().join("results/summary.csv")).unwrap();
    assert_eq!(summary.lines().filter(|line| line.starts_with("live,")).count(), 1, "{summary}");
    let (log, _) = RunLog::read(&lab.path().join("results/log/cpu-only-200qps-seed1.csv")).unwrap();
    assert!(!log.rows.is_empty());
}
