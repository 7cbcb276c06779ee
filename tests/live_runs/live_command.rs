//! `tandem live` as a whole program: its files, its refusals, Ctrl-C.
//!
//! No test here asserts a time: they check order, counts and words.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tandem::base::machine::Class;
use tandem::base::time::Nanos;
use tandem::cost::{Measured, Workload};
use tandem::sched::RunLog;

use crate::skipped;
use crate::tiny_lab::{command, tandem, tiny_lab, with_replayed_gpu};

const LIVE: &str = "live index --queries queries.tsv --workload cpu.workload.csv --out results --log";

#[test]
fn a_run_on_the_cpu_writes_its_log_and_summary() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let (out, _) = tandem(
        lab.path(),
        &format!("{LIVE} --gpu none --estimates oracle --rate 500 --num-queries 50 --deadline-ms 5000"),
        0,
    );
    assert!(out.contains("cpu-only"), "{out}");
    let (log, provenance) = RunLog::read(&lab.path().join("results/log/cpu-only-500qps-seed1.csv")).unwrap();
    assert_eq!(log.rows.len(), 50);
    assert_eq!(provenance.get("policy"), Some("cpu-only"));
    let summary = std::fs::read_to_string(lab.path().join("results/summary.csv")).unwrap();
    assert!(summary.contains("\nlive,cpu-only,500,1,50,"), "{summary}");
    // The verdict depends on the machine and its other users.
    assert!(summary.contains(",none,0,0,"), "{summary}");
    assert!(out.contains("objective: p99 <= 5000 ms") && out.contains("held"), "{out}");
}

#[test]
fn a_run_that_lags_warns_on_the_screen_in_its_files_and_wherever_they_are_used() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    // No driver keeps to a hundredth of 10 ns.
    let run = "--gpu none --policy cpu-only --estimates oracle --rate 500 --num-queries 240 --deadline-ms 0.00001";
    let (out, _) = tandem(lab.path(), &format!("{LIVE} {run}"), 0);
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line(&out).contains("warning: cpu-only at 500 q/s: the driver released"), "{out}");
    for file in ["summary.csv", "log.csv"] {
        let text = std::fs::read_to_string(lab.path().join("results").join(file)).unwrap();
        assert!(text.contains("# warning: cpu-only at 500 q/s: the driver released"), "{text}");
    }
    tandem(lab.path(), "report results -o page.html", 0);
    let page = std::fs::read_to_string(lab.path().join("page.html")).unwrap();
    assert!(page.contains("Warning: cpu-only at 500 q/s: the driver released"), "{page}");
}

#[test]
fn cores_share_queries_by_every_method() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    for method in ["inter", "adaptive", "fgqp"] {
        let run =
            "--gpu none --estimates oracle --policy cpu-only --cpus 2 --set force=true --rate 300 --num-queries 30";
        tandem(lab.path(), &format!("{LIVE} {run} --set multicore={method}"), 0);
        // Answers were compared with the profile's during the run.
        let (log, _) = RunLog::read(&lab.path().join("results/log.csv")).unwrap();
        assert_eq!(log.rows.len(), 30, "{method}");
    }
}

#[test]
fn a_measured_speed_up_lets_live_queries_run_on_several_workers() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let run =
        "--gpu none --policy few-to-many --cpus 2 --set force=true --rate 300 --num-queries 30 --estimates oracle";
    let (_, error) = tandem(lab.path(), &format!("{LIVE} {run}"), 2);
    assert!(error.contains("--policy few-to-many needs the speed-up"), "{error}");
    let profile = "profile index --queries queries.tsv --mode or --on cpu --speed-up 2 -o cpu.workload.csv";
    let (out, _) = tandem(lab.path(), profile, 0);
    assert!(out.contains("speed-up on 1 to 2 cores"), "{out}");
    assert!(Workload::read(&lab.path().join("cpu.workload.csv")).unwrap().speed_up.is_some());
    for assumed in ["", "--set speed-up=1,1.9"] {
        tandem(lab.path(), &format!("{LIVE} {run} {assumed}"), 0);
        let (log, _) = RunLog::read(&lab.path().join("results/log.csv")).unwrap();
        assert_eq!(log.rows.len(), 30);
    }
}

#[test]
fn rows_of_a_replayed_gpu_say_so() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    with_replayed_gpu(&lab.path().join("cpu.workload.csv"));
    let run = "--gpu replay --estimates oracle --policy gpu-only --rate 500 --num-queries 20";
    let (out, _) = tandem(lab.path(), &format!("{LIVE} {run}"), 0);
    let words = out.replace('\n', " ");
    assert!(words.contains("GPU: REPLAY, no GPU is used: its lane takes") && out.contains("replay"), "{out}");
    let log = std::fs::read_to_string(lab.path().join("results/log.csv")).unwrap();
    let rows: Vec<&str> = log.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
    assert_eq!(rows.len(), 20);
    assert!(rows.iter().all(|row| row.ends_with(",replay")), "{log}");
    // A job starts when it is handed over, takes at least its recorded time, and runs alone.
    let (log, _) = RunLog::read(&lab.path().join("results/log.csv")).unwrap();
    assert!(log.rows.iter().all(|row| row.finished >= row.started + Nanos::from_us(50.0)));
    assert!(log.rows.windows(2).all(|pair| pair[1].started >= pair[0].finished));
}

#[test]
fn what_cannot_be_driven_is_refused_with_exit_code_2() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let refused = [
        ("--rate 0", "--rate: rate 0 is out of range"),
        ("--rate NaN", "--rate"),
        ("--seconds 0", "--seconds is 0"),
        ("--num-queries 0", "--num-queries is 0"),
        ("--deadline-ms 0", "--deadline-ms is 0"),
        ("--cpus 0 --gpu none", "nothing real to drive"),
        ("--cpus 1000 --gpu none", "--cpus is 1000, and this machine has"),
        ("--objective p1", "--objective: p1, expected p50 to"),
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
    let _alone = crate::alone();
    let lab = tiny_lab();
    let output =
        command(lab.path(), &format!("{LIVE} --gpu real --estimates oracle --num-queries 10")).output().unwrap();
    if output.status.success() {
        skipped::skipped("this machine has a GPU");
        return;
    }
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("error: no GPU to use: "));
}

const REPLAYED: &str = "--gpu replay --estimates oracle --policy gpu-only --rate 500 --num-queries 20";

#[test]
fn a_budget_of_gpu_memory_needs_a_gpu() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    with_replayed_gpu(&lab.path().join("cpu.workload.csv"));
    let (_, error) = tandem(lab.path(), &format!("{LIVE} {REPLAYED} --gpu-memory 100"), 2);
    assert!(error.contains("--gpu-memory: no GPU is driven"), "{error}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_and_kill_end_a_run_cleanly_keep_what_was_measured_and_say_so_by_the_exit_code() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    // A machine that stands still meanwhile gets more time.
    for (signal, code, patience) in [
        ("-INT", 130, Duration::from_secs(1)),
        ("-TERM", 143, Duration::from_secs(1)),
        ("-INT", 130, Duration::from_secs(20)),
    ] {
        let log_path = lab.path().join("results/log/cpu-only-200qps-seed1.csv");
        let mut child = command(
            lab.path(),
            &format!("{LIVE} --gpu none --estimates oracle --rate 200 --deadline-ms 5000 --seconds 3600"),
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
        // Signals are caught from this line on; a little later there are results to keep.
        let mut announced = String::new();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        while !announced.contains("run 1 of") {
            assert_ne!(err.read_line(&mut announced).unwrap(), 0, "{announced}");
        }
        std::thread::sleep(patience);
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{out}");
        assert!(out.contains("interrupted in run 1 of 2") && out.contains("were not released"), "{out}");
        let summary = std::fs::read_to_string(lab.path().join("results/summary.csv")).unwrap();
        let (log, _) = RunLog::read(&log_path).unwrap();
        let measured = usize::from(!log.rows.is_empty());
        assert_eq!(summary.lines().filter(|line| line.starts_with("live,")).count(), measured, "{summary}");
        assert!(patience < Duration::from_secs(20) || !log.rows.is_empty());
        if code == 143 && !log.rows.is_empty() {
            break;
        }
    }
}

#[test]
fn a_capacity_is_driven_live_has_two_sides_and_says_so_where_there_is_no_answer() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let question = "capacity index --queries queries.tsv --limit 24 --gpu none --policy cpu-only --seeds 1:3 --out answer \
                    --objective miss-share=0.01 --deadline-ms 10";
    // The verdict depends on the machine, its presence does not.
    let ask = |more: &str| {
        let output = command(lab.path(), &format!("{question} {more}")).output().unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        (output.status.code().unwrap(), out, err)
    };
    let (code, out, err) = ask("--live-seconds 0.5 --format json");
    let document: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}\n{err}"));
    let answer = &document["results"]["answer"];
    assert!(err.contains("measuring 24 queries 3 times") && err.contains("at most"), "{err}");
    assert!(err.contains("other processes took"), "{err}");
    let text = std::fs::read_to_string(lab.path().join("answer/live_runs.csv")).unwrap();
    assert!(text.contains("# command: tandem capacity index") && text.contains("# objective: at most 1 %"), "{text}");
    let runs = rows(&lab.path().join("answer/live_runs.csv"));
    for run in &runs {
        let [whole, first, second, third, busy] =
            ["work_ratio_cpu", "work_ratio_cpu_1", "work_ratio_cpu_2", "work_ratio_cpu_3", "busy_share"]
                .map(|column| run[column].parse::<f64>().unwrap_or_else(|_| panic!("{column} of {run:?}")));
        let (least, most) = (first.min(second).min(third), first.max(second).max(third));
        assert!(least > 0.0 && least <= 1.001 * whole && whole <= 1.001 * most && busy > 0.0 && busy < 1.0, "{run:?}");
        assert_eq!(run["work_ratio_gpu"], "", "a class without lanes has no work");
    }
    let verdicts = |rate: f64, word: &str| {
        let at = |row: &&std::collections::BTreeMap<String, String>| {
            (row["rate_qps"].parse::<f64>().unwrap() / rate - 1.0).abs() < 1e-3 && row["verdict"].starts_with(word)
        };
        runs.iter().filter(at).count()
    };
    match answer["rate"].as_f64() {
        Some(rate) => {
            let missed = answer["missed_at"].as_f64().unwrap();
            assert_eq!((code, &answer["how"], &answer["policy"]), (0, &"live".into(), &"cpu-only".into()), "{answer}");
            assert!(
                verdicts(rate, "held") >= 2
                    && verdicts(missed, "missed") + verdicts(missed, "paused") >= 2
                    && rate < missed,
                "{answer} {text}"
            );
            let interval = [&answer["interval"][0], &answer["interval"][1]].map(|end| end.as_f64().unwrap());
            assert!(interval[0] < rate && rate < interval[1], "{answer}");
            let told: Vec<&str> = err.lines().skip_while(|line| !line.contains(" q/s +- ")).take(3).collect();
            assert!(told.len() == 3 && told.iter().all(|line| line.chars().count() <= 80), "{told:?}");
            // A run that would have few queries is longer than asked for.
            assert!(
                err.contains(" q/s +- ") && err.contains(" runs of 0.") && err.contains(" s, other processes took"),
                "{err}"
            );
            let held = &rows(&lab.path().join("answer/capacity.csv"))[0]["held_qps"];
            assert!((held.parse::<f64>().unwrap() / rate - 1.0).abs() < 1e-3, "{held} {answer}");
        }
        None => {
            assert_eq!((code, &answer["how"]), (3, &"unknown".into()), "{answer}\n{err}");
            assert!(err.contains("no answer: ") || err.contains("pause-limited: "), "{err}");
        }
    }
    // A second call measures nothing that is known.
    let (_, _, err) = ask("--live-seconds 0.1");
    assert!(err.contains("answer/here.workload.csv, kept by an earlier run"), "{err}");
    // A changed log counts as another one.
    let queries = std::fs::read_to_string(lab.path().join("queries.tsv")).unwrap();
    std::fs::write(lab.path().join("queries.tsv"), queries.replacen("storm", "rope", 1)).unwrap();
    let (_, _, err) = ask("--live-seconds 0.1");
    assert!(err.contains("measuring 24 queries 3 times"), "{err}");
}

/// The rows of a CSV file, with their values by column.
fn rows(path: &Path) -> Vec<std::collections::BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    lines.map(|line| header.iter().cloned().zip(line.split(',').map(str::to_owned)).collect()).collect()
}

/// Adds GPU times to the workload, for lanes that replay them.
fn with_gpu_times(lab: &Path, median_us: f64) {
    let path = lab.join("cpu.workload.csv");
    let mut workload = Workload::read(&path).unwrap();
    for row in &mut workload.rows {
        row.measured[Class::GPU] = Some(Measured { median_us, spread_us: 0.0, device_us: None });
    }
    workload.write(&path).unwrap();
}

#[test]
fn lanes_fail_as_planned_real_replayed_and_warped_and_the_files_say_so() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    with_gpu_times(lab.path(), 400.0);
    let plan =
        |text: &str| std::fs::write(lab.path().join("plan.csv"), format!("at_ms,processor,fault\n{text}")).unwrap();
    let results = lab.path().join("results");
    // On a real lane the CPU worker panics, and another executor answers in its place.
    plan("30,0,panic\n900000,0,error\n");
    let run = "--gpu none --estimates oracle --policy cpu-only --cpus 1 --set force=true --deadline-ms 5000 --rate 500 --num-queries 100";
    let (out, err) = tandem(lab.path(), &format!("{LIVE} {run} --faults plan.csv --format json"), 0);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["results"]["summary"][0]["lane_faults"], 1, "{out}");
    assert_eq!(document["results"]["faults"][0]["fault"], "panic", "{out}");
    assert!(err.contains("panic on lane 0 after") && err.contains("a CPU continues in its place"), "{err}");
    let (log, _) = RunLog::read(&results.join("log.csv")).unwrap();
    assert_eq!((log.rows.len(), log.rows.iter().filter(|row| row.again).count()), (100, 1));
    // Replayed times of a GPU that hangs run with a real CPU worker: the watchdog ends the wait.
    plan("30,1,hang\n");
    let run =
        "--gpu replay --estimates oracle --policy gpu-only --cpus 1 --set force=true --rate 500 --num-queries 100";
    tandem(lab.path(), &format!("{LIVE} {run} --deadline-ms 5000 --faults plan.csv --set watchdog-ms=50"), 0);
    let fault = &rows(&results.join("faults.csv"))[0];
    assert_eq!([&fault["processor"], &fault["fault"], &fault["retired"]], ["1", "hang", "true"]);
    // The fault comes 50 ms after the start of the batch that was under way at 30 ms; on a busy machine that began a
    // little earlier.
    assert!(fault["at_ms"].parse::<f64>().unwrap() > 50.0, "{fault:?}");
    let (log, _) = RunLog::read(&results.join("log.csv")).unwrap();
    assert_eq!(log.rows.len(), 100);
    // Threads that only let predicted times pass, in several runs: the plan is of each.
    let run =
        "--gpu replay --estimates oracle --policy gpu-only --cpus 1 --set force=true --rate 400,500 --num-queries 100";
    tandem(
        lab.path(),
        &format!("{LIVE} {run} --deadline-ms 5000 --faults plan.csv --set watchdog-ms=50 --set time-warp=true"),
        0,
    );
    let faults = rows(&results.join("faults.csv"));
    assert_eq!(faults.iter().map(|fault| fault["rate_qps"].as_str()).collect::<Vec<_>>(), ["400", "500"]);
    let counts = rows(&results.join("summary.csv"));
    assert!(counts.iter().all(|row| row["queries"] == "100" && row["lane_faults"] == "1"), "{counts:?}");
    // What is dropped is in the log, and counted.
    let run =
        "--gpu none --estimates oracle --policy cpu-only --cpus 1 --set force=true --rate 2e6 --num-queries 100000";
    let (out, _) = tandem(lab.path(), &format!("{LIVE} {run} --deadline-ms 10 --set shed=late"), 0);
    let row = &rows(&results.join("summary.csv"))[0];
    let (log, _) = RunLog::read(&results.join("log.csv")).unwrap();
    let words = out.replace('\n', " ");
    assert!(!log.shed.is_empty() && words.contains("dropped, late when a processor took them up"), "{out}");
    assert_eq!((&row["shed"], log.rows.len() + log.shed.len()), (&log.shed.len().to_string(), 100_000));
}

#[test]
fn fault_plans_that_cannot_be_driven_are_refused_before_anything_runs() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let plan = |name: &str, line: &str| {
        std::fs::write(lab.path().join(name), format!("at_ms,processor,fault,lasts_ms\n{line}\n")).unwrap();
    };
    plan("good.csv", "1,0,error,");
    plan("gpu.csv", "1,1,error,");
    plan("bad.csv", "1,0,error,7");
    plan("none.csv", "");
    let run = "--gpu none --estimates oracle --policy cpu-only --cpus 1 --set force=true --num-queries 10";
    for (arguments, expected) in [
        ("--rate 100 --faults nowhere.csv", "nowhere.csv: cannot open: No such file"),
        ("--rate 100 --faults bad.csv", "bad.csv:2:11: `lasts_ms` is \"7\", expected nothing"),
        ("--rate 100 --faults none.csv", "none.csv: has no fault, expected a line for each"),
        ("--rate 100 --faults gpu.csv", "gpu.csv:2:3: `processor` is \"1\", expected a lane of the machine, 0 to 0"),
        ("--rate 100,200 --faults good.csv", "--faults: after its error lane 0 would be retired in all 2 runs"),
        ("--rate 100 --set watchdog-ms=NaN", "watchdog-ms: expected 1 to 600000"),
    ] {
        let (_, err) = tandem(lab.path(), &format!("{LIVE} {run} {arguments}"), 2);
        assert!(err.contains(expected), "{arguments}: {err:?} should contain {expected:?}");
    }
    assert!(!lab.path().join("results").exists());
}

#[cfg(unix)]
#[test]
fn a_full_disk_and_a_vanished_folder_keep_what_was_measured() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let results = lab.path().join("results");
    // The summary cannot be written: the log exists, and the table is printed.
    std::fs::create_dir(&results).unwrap();
    std::os::unix::fs::symlink("/dev/full", results.join("summary.csv")).unwrap();
    let run = "--gpu none --estimates oracle --policy cpu-only --cpus 1 --set force=true --deadline-ms 5000 --rate 500";
    let (out, err) = tandem(lab.path(), &format!("{LIVE} {run} --num-queries 50"), 1);
    assert!(err.contains("error: cannot write results/summary.csv: No space left on device"), "{err}");
    assert!(out.contains("cpu-only  500") && out.contains("written: results/log.csv"), "{out}");
    assert_eq!(RunLog::read(&results.join("log.csv")).unwrap().0.rows.len(), 50);
    // A log cannot be written: the run is in the table and in the summary, and the next run is not begun.
    std::fs::remove_dir_all(&results).unwrap();
    std::fs::create_dir_all(results.join("log")).unwrap();
    std::os::unix::fs::symlink("/dev/full", results.join("log/cpu-only-500qps-seed1.csv")).unwrap();
    let (out, err) = tandem(lab.path(), &format!("{LIVE} {run},600 --num-queries 50"), 1);
    assert!(err.contains("log/cpu-only-500qps-seed1.csv: No space left on device"), "{err}");
    assert!(out.contains("cpu-only  500") && !out.contains("cpu-only  600"), "{out}");
    assert_eq!(rows(&results.join("summary.csv")).len(), 1);

    for becomes_a_file in [false, true] {
        let _ = std::fs::remove_dir_all(&results);
        std::fs::create_dir(&results).unwrap();
        let mut child = command(lab.path(), &format!("{LIVE} {run} --seconds 3"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // From this line on the folder is known to be writable, and no file is written before the run ends.
        let mut announced = String::new();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        while !announced.contains("run 1 of") {
            assert_ne!(err.read_line(&mut announced).unwrap(), 0, "{announced}");
        }
        std::fs::remove_dir_all(&results).unwrap();
        if becomes_a_file {
            std::fs::write(&results, "in the way").unwrap();
        }
        let mut rest = String::new();
        err.read_to_string(&mut rest).unwrap();
        let err = rest;
        let output = child.wait_with_output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(out.contains("cpu-only  500"), "{out}\n{err}");
        if becomes_a_file {
            assert_eq!(output.status.code(), Some(2), "{err}");
            assert!(err.contains("cannot write results/") && out.contains("written: nothing"), "{out}\n{err}");
            std::fs::remove_file(&results).unwrap();
        } else {
            assert_eq!(output.status.code(), Some(0), "{err}");
            assert_eq!(rows(&results.join("summary.csv")).len(), 1);
            assert_eq!(RunLog::read(&results.join("log.csv")).unwrap().0.rows.len(), 1500);
        }
    }
}

#[test]
fn a_pair_of_policies_takes_turns_and_its_differences_are_written() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    with_replayed_gpu(&lab.path().join("cpu.workload.csv"));
    let live = "live index --queries queries.tsv --gpu replay --estimates oracle --cpus 1 --rate 300 --num-queries 60 \
                --deadline-ms 5000 --seeds 1:2 --out pair --compare cpu-only,mct";
    let (out, err) = tandem(lab.path(), &format!("{live} --workload cpu.workload.csv"), 0);
    let order: Vec<&str> = err
        .lines()
        .filter_map(|line| line.split_once(" of 8: ").map(|(_, rest)| rest.split(',').next().unwrap()))
        .collect();
    assert_eq!(order, [["cpu-only", "mct", "mct", "cpu-only"]; 2].concat(), "{err}");
    let pairs = rows(&lab.path().join("pair/pairs.csv"));
    let what: Vec<&str> = pairs.iter().map(|row| row["what"].as_str()).collect();
    assert_eq!(what, ["throughput q/s", "mean ms", "p99 ms", "p99.9 ms", "longest ms"]);
    assert!(pairs.iter().all(|row| row["seeds"] == "4" && row["first"] == "cpu-only" && !row["low"].is_empty()));
    assert!(out.contains("mct against cpu-only") && out.contains("4 pairs"), "{out}");
    tandem(lab.path(), &format!("{live} --workload cpu.workload.csv --policy mct"), 2);
    let (_, err) = tandem(lab.path(), "live index --queries queries.tsv --gpu none --compare cpu-only", 2);
    assert!(err.contains("--compare: expected two different policies"), "{err}");
}

#[test]
fn a_sequential_search_says_what_it_reached_or_both_bounds() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    with_replayed_gpu(&lab.path().join("cpu.workload.csv"));
    let question = "validate index --queries queries.tsv --workload cpu.workload.csv --limit 24 --gpu replay --cpus 1 --policy mct --seeds 1:3 --out precise \
                    --objective miss-share=0.01 --deadline-ms 10 --live-seconds 0.3 --precision 20%";
    let output = command(lab.path(), question).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{err}");
    let capacity = &rows(&lab.path().join("precise/validation_capacity.csv"))[0];
    match capacity["half_width"].parse::<f64>() {
        Ok(reached) => assert!(reached <= 0.2 || err.contains("reached of the 20 % asked for"), "{reached}: {err}"),
        Err(_) => assert!(err.contains("no capacity was measured"), "{capacity:?}: {err}"),
    }
    let output = command(lab.path(), "capacity --precision 0").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && err.contains("expected 1% to 50%"), "{err}");
}
