//! Ctrl-C and `kill`: all results until then are kept and printed, and the exit code names the signal.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::tiny_lab::{command, tandem, tiny_lab, with_replayed_gpu};

/// Runs the program, sends it a signal some time after it installed its handlers, and returns its output once it has
/// ended with the signal's code.
fn ended_by(folder: &Path, arguments: &str, (signal, code): (&str, i32), later: Duration) -> String {
    let mut child = command(folder, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(300);
    while !catches_sigint(child.id()) {
        assert!(child.try_wait().unwrap().is_none() && Instant::now() < patience, "tandem {arguments}");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(later);
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "tandem {arguments}\n{out}\n{err}");
    out
}

/// Whether a process handles Ctrl-C: the second bit of its caught signals.
fn catches_sigint(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 0b10 != 0)
}

#[test]
fn simulate_keeps_the_runs_that_it_has_played() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    with_replayed_gpu(&lab.path().join("cpu.workload.csv"));
    // Many runs of about a tenth of a second each.
    let delays = "simulate --workload cpu.workload.csv --policy window --estimates oracle --what delays,plot --num-queries 200000 --seeds 1:50 \
                  --rate 1000:2000:20 -o results";
    // A machine that stands still meanwhile gets more time.
    for (signal, code, later_s) in [("-INT", 130, 3), ("-TERM", 143, 3), ("-TERM", 143, 30)] {
        let out = ended_by(lab.path(), delays, (signal, code), Duration::from_secs(later_s));
        let told = out.lines().find(|line| line.starts_with("interrupted: ")).unwrap_or_else(|| panic!("{out}"));
        let played: usize = told.split_whitespace().nth(1).unwrap().parse().unwrap();
        if played == 0 && later_s < 30 {
            continue;
        }
        assert!(told.ends_with("of 1000 runs are played") && (1..1000).contains(&played), "{told}");
        assert!(out.contains("Delays in ms") && out.contains("results/summary.csv"), "{out}");
        let summary = std::fs::read_to_string(lab.path().join("results/summary.csv")).unwrap();
        assert_eq!(summary.lines().filter(|line| line.starts_with("simulated,window,")).count(), played);
        std::fs::remove_dir_all(lab.path().join("results")).unwrap();
        if code == 143 {
            break;
        }
    }
}

#[test]
fn simulate_keeps_the_capacities_that_it_has_found() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    with_replayed_gpu(&lab.path().join("cpu.workload.csv"));
    let search = "simulate --workload cpu.workload.csv --policy greedy,window,stealing,mct --estimates oracle --what capacity --num-queries \
                  200000 --seeds 1:40 -o results";
    let out = ended_by(lab.path(), search, ("-INT", 130), Duration::from_secs(2));
    let told = out.lines().find(|line| line.starts_with("interrupted: ")).unwrap_or_else(|| panic!("{out}"));
    let known: usize = told.split_whitespace().nth(4).unwrap().parse().unwrap();
    assert!(told.ends_with("policies are known") && known < 4, "{told}");
    let file = std::fs::read_to_string(lab.path().join("results/capacity.csv")).unwrap_or_default();
    let rows = file.lines().filter(|line| line.starts_with("simulated,") && line.contains(",p99 <= ")).count();
    assert_eq!(rows, known, "{file}");
    assert_eq!(out.contains("written: nothing"), known == 0, "{out}");
}

#[test]
fn validate_keeps_the_live_runs_that_have_ended() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let validate = "validate index --queries queries.tsv --limit 20 --gpu none --policy cpu-only --cpus 1 --set force=true --deadline-ms 100 \
                    --live-seconds 1 -o results";
    let mut child = command(lab.path(), validate).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Live runs report their end.
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let (mut line, mut live) = (String::new(), 0);
    while live < 2 {
        line.clear();
        assert_ne!(err.read_line(&mut line).unwrap(), 0, "it ended before it was interrupted");
        live += usize::from(line.contains(", live at ") && line.contains("other processes took"));
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(143), "{out}\n{rest}");
    assert!(rest.contains("interrupted: the files have the results so far"), "{rest}");
    assert!(rest.contains("written: results/live_runs.csv"), "{rest}");
    let runs = std::fs::read_to_string(lab.path().join("results/live_runs.csv")).unwrap();
    assert!(runs.lines().filter(|line| line.starts_with("cpu-only,")).count() >= 2, "{runs}");
    // The page shows the existing results.
    tandem(lab.path(), "report results -o page.html", 0);
}

#[test]
fn profile_keeps_the_queries_that_it_has_measured() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let profile = "profile index --queries queries.tsv --on cpu --repeats 1000000 -o cut.workload.csv";
    let out = ended_by(lab.path(), profile, ("-INT", 130), Duration::from_secs(5));
    assert!(out.lines().any(|line| line.starts_with("interrupted: ")), "{out}");
    let file = std::fs::read_to_string(lab.path().join("cut.workload.csv")).unwrap();
    assert!(file.lines().any(|line| line.starts_with("# interrupted: ")), "{file}");
    tandem(
        lab.path(),
        "simulate --workload cut.workload.csv --gpus 0 --policy cpu-only --what delays --rate 10 --num-queries 1000",
        0,
    );
}

#[test]
fn validate_says_so_where_nothing_had_been_driven() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let validate = "validate index --queries queries.tsv --limit 20 --gpu none --policy cpu-only --cpus 1 --set force=true --deadline-ms 100 \
                    --live-seconds 1 -o results";
    let out = ended_by(lab.path(), validate, ("-INT", 130), Duration::from_millis(50));
    assert!(!out.contains("predicted q/s"), "{out}");
    assert!(lab.path().join("results/here.workload.csv").exists());
}

/// A machine that pauses stops all threads of the program, as a signal does.
#[test]
fn a_stopped_program_notes_the_gaps() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let live = "live index --queries queries.tsv --workload cpu.workload.csv --gpu none --cpus 1 --policy cpu-only --estimates oracle --rate 500 \
                --num-queries 2000 --deadline-ms 5000 --out results";
    let mut child = command(lab.path(), live).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The run has begun once its line is on the screen.
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let began = lines.any(|line| line.starts_with("run 1 of 1"));
    assert!(began && child.try_wait().unwrap().is_none());
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    };
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(500));
        signal("-STOP");
        std::thread::sleep(Duration::from_millis(100));
        signal("-CONT");
    }
    assert!(child.wait().unwrap().success());
    let summary = std::fs::read_to_string(lab.path().join("results/summary.csv")).unwrap();
    let lines: Vec<Vec<&str>> =
        summary.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect()).collect();
    let of = |column: &str| {
        let at = lines[0].iter().position(|&name| name == column).unwrap();
        lines[1][at].parse::<f64>().unwrap()
    };
    assert!(of("driver_gaps") >= 3.0 && of("driver_gaps_ms") >= 270.0, "{summary}");
    assert_eq!(lines[1][lines[0].iter().position(|&name| name == "paused").unwrap()], "false", "{summary}");
}
