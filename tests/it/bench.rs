//! `bench --what simulator`: the time of a simulated query, for any number of queries.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn bench(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir).args("bench --what simulator -o b --rounds 1 --policy cpu-only,mct".split(' '));
    command.args(arguments.split_whitespace());
    command.output().unwrap()
}

#[track_caller]
fn succeeds(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The value of a metric in the line `name` of `bench.csv`.
fn value(dir: &Path, name: &str, metric: &str) -> f64 {
    let written = fs::read_to_string(dir.join("b/bench.csv")).unwrap();
    let mut lines = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(written.as_bytes());
    let lines: Vec<csv::StringRecord> = lines.records().map(Result::unwrap).collect();
    let line = lines.iter().find(|line| (&line[1], &line[2]) == (name, metric));
    line.unwrap_or_else(|| panic!("{name}, {metric}: not in {written}"))[3].parse().unwrap()
}

#[test]
fn runs_of_every_length_are_timed_on_both_machines() {
    let dir = tempfile::tempdir().unwrap();
    let said = succeeds(bench(dir.path(), "--num-queries 4e3,1000"));
    assert!(said.contains("peak MiB"), "no table: {said}");
    for name in ["mct, 1e3 queries", "mct on 64+1, 4e3 queries", "cpu-only, 4e3 queries"] {
        let (ns, peak) = (value(dir.path(), name, "ns_a_query"), value(dir.path(), name, "peak_bytes"));
        assert!(ns > 0.0 && peak > 1e6, "{name}: {ns} ns, {peak} bytes");
    }
}

#[test]
fn options_are_checked_before_the_work() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        ("--num-queries 10", "error: --num-queries: \"10\", expected numbers from 1000 to 1000000000\n"),
        ("--num-queries 1e5,1e10", "error: --num-queries: \"1e10\", expected numbers from 1000 to 1000000000\n"),
        ("--num-queries 1e5,100000", "error: --num-queries: 100000 is given twice\n"),
        ("--num-queries 1000.5", "error: --num-queries: 1000.5, expected whole numbers\n"),
        ("--gpu-memory 1GB", "error: --gpu-memory: only --what gpu and gpu-queries use it\n"),
    ] {
        let output = bench(dir.path(), arguments);
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{arguments}");
    }
}
