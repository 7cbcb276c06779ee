//! Output for programs: `--format json`, `--perfetto`, completions and man pages.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(dir: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tandem")).args(arguments.split_whitespace()).current_dir(dir).output().unwrap()
}

fn json(dir: &Path, arguments: &str) -> Value {
    let output = run(dir, &format!("{arguments} --format json"));
    let (out, errors) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(output.status.success(), "{arguments}: {errors}");
    assert_eq!(out.lines().count(), 1, "{arguments}: one document and nothing else: {out}");
    let document: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{arguments}: {e}: {out}"));
    assert!(document["command"].as_str().unwrap().starts_with("tandem "), "{arguments}");
    document["results"].clone()
}

fn cells(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').map(str::to_owned).collect());
    (lines.next().unwrap(), lines.collect())
}

/// An index in `i` with its log, and a workload in `w.csv`.
fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let made = json(dir.path(), "index synth --docs 2000 --num-queries 120 -o i");
    assert_eq!((made["index"]["documents"].as_u64(), made["index"]["queries"].as_u64()), (Some(2000), Some(120)));
    dir
}

#[test]
fn simulated_results_are_the_files_rows_with_numbers_as_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let results = json(
        dir.path(),
        "simulate --num-queries 300 --rate 2000,9000 --policy stealing,gpu-only --seeds 1 --objective no-miss -o r",
    );
    for (name, rows) in [("summary", 4), ("capacity", 2)] {
        let (columns, lines) = cells(&dir.path().join(format!("r/{name}.csv")));
        let table = results[name].as_array().unwrap();
        assert_eq!((table.len(), lines.len()), (rows, rows));
        for (object, line) in table.iter().zip(&lines) {
            assert_eq!(object.as_object().unwrap().len(), columns.len());
            for (column, cell) in columns.iter().zip(line) {
                match &object[column] {
                    Value::Null => assert_eq!(cell, ""),
                    Value::Number(number) => assert_eq!(number.as_f64(), cell.parse().ok(), "{column}"),
                    Value::Bool(truth) => assert_eq!(&truth.to_string(), cell),
                    Value::String(text) => assert_eq!(text, cell),
                    other => panic!("{column}: {other}"),
                }
            }
        }
    }
    let first = &results["summary"][0];
    assert!(["p50_ms", "p95_ms", "p99_ms", "rate_qps"].iter().all(|key| first[key].is_number()), "{first}");
}

#[test]
fn every_command_with_results_gives_them_as_one_document() {
    let dir = world();
    let info = json(dir.path(), "index info i");
    assert_eq!(info["index"]["documents"], 2000);
    assert!(info["index"]["parts"].as_array().unwrap().iter().all(|part| part["size_bytes"].is_u64()));
    let found = json(dir.path(), "search i --queries i/queries.tsv --mode or -k 3");
    assert_eq!(found["queries"][0]["documents"][0]["rank"], 1);
    assert!(found["times"]["p99_us"].is_number());
    let traced = json(dir.path(), "trace --ids 200 --num-queries 100 --rate 10 -o t.trace.csv");
    assert_eq!(traced["trace"]["arrivals"], 100);
    let profiled = json(dir.path(), "profile i --queries i/queries.tsv -o p.workload.csv --on cpu --repeats 1");
    let costs = profiled["costs"].as_array().unwrap();
    assert!(costs.len() == 3 && costs.iter().all(|cost| cost["p50_us"].is_number() && cost["p95_us"].is_number()));
    let trained = json(dir.path(), "train p.workload.csv -o m.json");
    assert!(trained["models"][0]["evaluation"]["mean_relative_error"].is_number());
    let live = json(
        dir.path(),
        "live i --queries i/queries.tsv --workload p.workload.csv --policy cpu-only --gpu none --rate 300 --seconds 0.2 -o l --perfetto t.json",
    );
    assert_eq!(live["summary"][0]["source"], "live");
    check_trace(&dir.path().join("t.json"), 1);
    let bench = json(dir.path(), "bench i --queries i/queries.tsv --limit 5 --rounds 1 --what index -o b");
    assert!(bench["bench"].as_array().unwrap().iter().all(|row| row["value"].is_number() && row["metric"].is_string()));
    let listed = json(dir.path(), "reproduce --list");
    assert!(listed["experiments"].as_array().unwrap().len() > 5);
}

#[test]
fn a_command_that_fails_prints_no_document() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), "index info nowhere --format json");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert_eq!(run(dir.path(), "index info nowhere --format yaml").status.code(), Some(2));
}

/// Checks that a trace has lanes, slices that don't overlap on them, and queues that end empty.
fn check_trace(path: &Path, runs: usize) {
    let trace: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    assert_eq!(of("M").iter().filter(|event| event["name"] == "process_name").count(), runs);
    let mut slices: Vec<(u64, u64, f64, f64)> = of("X")
        .iter()
        .map(|e| {
            (
                e["pid"].as_u64().unwrap(),
                e["tid"].as_u64().unwrap(),
                e["ts"].as_f64().unwrap(),
                e["dur"].as_f64().unwrap(),
            )
        })
        .collect();
    slices.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    assert!(!slices.is_empty());
    for pair in slices.windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
        // Times are thousandths of microseconds: half of one allows for the sum of two floats.
        assert!(pair[0].2 + pair[0].3 <= pair[1].2 + 0.0005, "{pair:?}");
    }
    for run in 1..=runs {
        let mut counts = of("C").into_iter().filter(|event| event["pid"] == run);
        let last = counts.next_back().map(|event| event["args"].as_object().unwrap().values().all(|count| count == 0));
        assert_ne!(last, Some(false));
    }
}

#[test]
fn a_trace_holds_every_run_as_a_process() {
    let dir = tempfile::tempdir().unwrap();
    let command = "simulate --what delays --num-queries 400 --rate 60000,200000 --policy stealing,combined --seeds 1 -o r --perfetto t.json";
    let output = run(dir.path(), command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("t.json"));
    check_trace(&dir.path().join("t.json"), 4);
    let trace: Value = serde_json::from_slice(&std::fs::read(dir.path().join("t.json")).unwrap()).unwrap();
    let slices = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let queries: u64 = slices.map(|event| event["args"]["queries"].as_u64().unwrap()).sum();
    assert_eq!(queries, 1600, "every query of every run is in one slice");
}

#[test]
fn shells_and_man_know_every_command() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(dir.path(), &format!("completions {shell}"));
        assert!(script.status.success());
        let script = String::from_utf8(script.stdout).unwrap();
        assert!(["simulate", "report", "perfetto", "format"].iter().all(|word| script.contains(word)), "{shell}");
    }
    assert!(run(dir.path(), "man pages").status.success());
    let page = |name: &str| std::fs::read_to_string(dir.path().join("pages").join(name)).unwrap();
    assert!(page("tandem.1").contains("tandem\\-simulate(1)") || page("tandem.1").contains("simulate"));
    assert!(page("tandem-simulate.1").contains("\\-\\-perfetto"));
    assert!(page("tandem-index-build.1").contains(".TH"));
    assert!(!dir.path().join("pages/tandem-help.1").exists());
    assert!(String::from_utf8(run(dir.path(), "man").stdout).unwrap().contains(".TH"));
}
