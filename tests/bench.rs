//! `bench --what simulator`: the simulator beside Lindley's recursion and SimPy, at any numbers of queries.

mod skipped;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `bench` inside `dir`; `path` is where programs are looked for, as always if `None`.
fn bench(dir: &Path, path: Option<&Path>, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir).args("bench --what simulator -o b --rounds 1 --policy cpu-only,mct".split(' '));
    command.args(arguments.split_whitespace());
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.output().unwrap()
}

#[track_caller]
fn succeeds(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The value of `bench.csv` in this line.
fn value(dir: &Path, name: &str, metric: &str) -> f64 {
    let written = fs::read_to_string(dir.join("b/bench.csv")).unwrap();
    let mut lines = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(written.as_bytes());
    let lines: Vec<csv::StringRecord> = lines.records().map(Result::unwrap).collect();
    let line = lines.iter().find(|line| (&line[1], &line[2]) == (name, metric));
    line.unwrap_or_else(|| panic!("{name}, {metric}: not in {written}"))[3].parse().unwrap()
}

/// A folder of programs in which `python3` is this script.
fn python(dir: &Path, script: &str) -> std::path::PathBuf {
    let programs = dir.join("programs");
    fs::create_dir_all(&programs).unwrap();
    let python = programs.join("python3");
    fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    programs
}

#[test]
fn waits_equal_lindleys_at_every_length_and_what_is_not_installed_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("nowhere");
    let said = succeeds(bench(dir.path(), Some(&nowhere), "--num-queries 4e3,1000"));
    for queries in [1000, 4000] {
        let equal = format!("all {queries} waits equal Lindley's recursion to the nanosecond");
        assert_eq!(said.matches(&equal).count(), 2, "{said}");
    }
    let table = said.find("peak MiB").unwrap_or_else(|| panic!("no table: {said}"));
    assert!(said[table..].contains("SimPy, not installed: no python3"), "{said}");
    for name in ["mct, 1e3 queries", "mct on 64+1, 4e3 queries", "cpu-only, one cpu, 4e3 queries"] {
        let (ns, peak) = (value(dir.path(), name, "ns_a_query"), value(dir.path(), name, "peak_bytes"));
        assert!(ns > 0.0 && peak > 1e6, "{name}: {ns} ns, {peak} bytes");
    }
    let mean_ms = |name| value(dir.path(), name, "mean_delay_ms");
    assert_eq!(mean_ms("Lindley, one gpu, 1e3 queries"), mean_ms("gpu-only, one gpu, 1e3 queries"));

    let python = python(dir.path(), "echo \"ModuleNotFoundError: No module named 'simpy'\" >&2; exit 1");
    let said = succeeds(bench(dir.path(), Some(&python), "--num-queries 1e3"));
    assert!(said.contains("SimPy, not installed: pip install simpy"), "{said}");
    assert_eq!(value(dir.path(), "SimPy, not installed: pip install simpy", "is_installed"), 0.0);
}

#[test]
fn a_simpy_that_fails_or_disagrees_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    // Its second call is the script.
    let answers = |last: &str| format!("case \"$2\" in 'import simpy; '*) echo 9.9;; *) cat > seen; {last};; esac");
    for (script, expected) in [
        ("echo 'SyntaxError: no such syntax' >&2; exit 1".to_owned(), "error: python3: SyntaxError: no such syntax"),
        (answers("echo 'MemoryError' >&2; exit 1"), "error: SimPy: python3: MemoryError"),
        (answers("echo '{}'"), "error: SimPy: python3: missing field `seconds`"),
        (
            answers("echo '{\"seconds\": 1, \"peak_bytes\": 1, \"means_ms\": [9, 9.1, 9.2, 9, 9.1]}'"),
            "disagree: mean delay 9.08000 ms",
        ),
    ] {
        let path = format!("{}:/bin:/usr/bin", python(dir.path(), &script).display());
        let output = bench(dir.path(), Some(Path::new(&path)), "--num-queries 1e3");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{script}: {errors}");
        assert!(errors.contains(expected), "{script}: {errors}");
        assert!(!dir.path().join("b/bench.csv").exists(), "{script}");
    }
    let asked: serde_json::Value = serde_json::from_slice(&fs::read(dir.path().join("seen")).unwrap()).unwrap();
    assert_eq!((&asked["queries"], asked["services_us"].as_array().unwrap().len() > 1000), (&1000.into(), true));
}

#[test]
fn simpy_agrees_where_it_is_installed() {
    let imports = Command::new("python3").args(["-c", "import simpy"]).output();
    if !imports.is_ok_and(|output| output.status.success()) {
        skipped::skipped("no SimPy");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let said = succeeds(bench(dir.path(), None, "--num-queries 1e4"));
    assert_eq!(said.matches("    SimPy: mean delay ").count(), 2, "{said}");
    assert!(said.contains("by chance up to"), "{said}");
}

#[test]
fn numbers_of_queries_are_checked_before_the_work() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        ("--num-queries 10", "error: --num-queries: \"10\", expected numbers from 1000 to 1000000000\n"),
        ("--num-queries 1e5,1e10", "error: --num-queries: \"1e10\", expected numbers from 1000 to 1000000000\n"),
        ("--num-queries 1e5,100000", "error: --num-queries: 100000 is given twice\n"),
        ("--num-queries 1000.5", "error: --num-queries: 1000.5, expected whole numbers\n"),
    ] {
        let output = bench(dir.path(), None, arguments);
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{arguments}");
    }
}
