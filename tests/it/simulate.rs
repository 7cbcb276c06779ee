//! `tandem simulate`, the whole binary.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use tandem::base::machine::{Class, Idle};
use tandem::base::time::Nanos;
use tandem::cost::machine_profile::{DispatcherProfile, LaneProfile, Power};
use tandem::cost::{MachineProfile, Workload};
use tandem::report::policies::compare;
use tandem::sched::{PolicyKind, PolicyOptions};
use tandem::study::{Comparison, Estimates, Silent, SimulatedMachine, experiment};
use tandem::traffic::Mode;

/// Forty OR queries of one to three terms, of which long ones are much faster on the GPU, and one AND query.
fn workload() -> String {
    let mut text =
        String::from("# docs: 1000000\nquery_id,mode,terms,shortest,second_shortest,postings,cpu_us,gpu_us,results\n");
    for i in 0..40_u32 {
        let (postings, shortest) = (100 + i * i * 500, 30 + i * 10);
        let (cpu_us, gpu_us) = (100.0 + f64::from(postings) / 40.0, 900.5 + f64::from(postings) / 400.0);
        text += &format!("{i},or,2,{shortest},{},{postings},{cpu_us},{gpu_us},10\n", postings - shortest);
    }
    text + "40,and,2,10,90,100,50,60,1\n"
}

/// Runs the binary in `dir`, with the workload in `w.csv`.
fn simulate(dir: &Path, arguments: &str) -> Output {
    std::fs::write(dir.join("w.csv"), workload()).unwrap();
    Command::new(env!("CARGO_BIN_EXE_tandem"))
        .arg("simulate")
        .args(arguments.split_whitespace())
        .current_dir(dir)
        .output()
        .unwrap()
}

/// The words of a text that was wrapped.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Every file below `dir`, by its path.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            found.insert(name, std::fs::read(&path).unwrap());
        }
    }
    found
}

/// The lines of a CSV file as maps from column to value.
fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    lines.map(|line| header.iter().cloned().zip(line.split(',').map(str::to_owned)).collect()).collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_every_file() {
    let run = |seed: &str| {
        let dir = tempfile::tempdir().unwrap();
        let output = simulate(
            dir.path(),
            &format!(
                "--workload w.csv --num-queries 300 --seeds {seed} --rate 100,400:900:2 --cpus 2 --log --policy stealing,mct"
            ),
        );
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (files(dir.path()), output.stdout)
    };
    let (first, second, other) = (run("1,2"), run("1,2"), run("1,3"));
    let names: Vec<&String> = first.0.keys().collect();
    // There are two policies, three rates and two seeds; also three tables, one picture, and the workload.
    assert_eq!(names.len(), 2 * 3 * 2 + 5, "{names:?}");
    assert!(first == second, "two equal runs differ");
    assert_ne!(first.0["out/summary.csv"], other.0["out/summary.csv"]);
}

/// The shipped workload of this name, with or without its measured batches.
fn shipped(name: &str, batches: bool) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("traces/{name}.workload.csv.zst"));
    let text = zstd::stream::decode_all(std::fs::File::open(path).unwrap()).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.lines().any(|line| line.starts_with("# batches_gpu")));
    text.lines().filter(|line| batches || !line.starts_with("# batches_gpu")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn only_policies_with_batches_sustain_what_batches_do() {
    let dir = tempfile::tempdir().unwrap();
    let found = |batches: bool| {
        std::fs::write(dir.path().join("gov2.csv"), shipped("synthetic-gov2-h200", batches)).unwrap();
        let output = simulate(
            dir.path(),
            "--workload gov2.csv --policy stealing-adaptive,greedy --deadline-ms 10 --what capacity --seeds 1 --estimates oracle --verbose",
        );
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (rows(&dir.path().join("out/capacity.csv")), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let number = |row: &BTreeMap<String, String>, column: &str| row[column].parse::<f64>().unwrap();
    let ((with, said), (without, said_without)) = (found(true), found(false));
    let limit_qps = number(&without[0], "region_qps");
    for row in with.iter().filter(|row| row["policy"] == "stealing-adaptive") {
        // A lane of four batches prepares one query while its device works on another, which doubles its rate without
        // batches.
        let stable_qps = number(row, "stable_qps");
        assert!(stable_qps >= limit_qps && stable_qps < 2.0 * limit_qps, "{row:?}");
        assert!(number(row, "max_rate_qps") <= stable_qps && number(row, "seeds_high_qps") <= stable_qps, "{row:?}");
        assert!(number(row, "region_qps") > 10.0 * limit_qps, "{row:?}");
    }
    let greedy = with.iter().find(|row| row["policy"] == "greedy").unwrap();
    assert!(number(greedy, "max_rate_qps") > limit_qps, "{greedy:?}");
    assert!(
        joined(&said).contains("policies with a lower limit of stability: stealing-adaptive above 82360"),
        "{said}"
    );
    // Without batches the limit of most policies is the machine's; greedy, which uses no CPU, has a lower one.
    assert!(joined(&said_without).contains("lower limit of stability: greedy above "), "{said_without}");
}

#[test]
fn tables_have_their_columns_and_agree_with_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let output =
        simulate(dir.path(), "--workload w.csv --num-queries 2000 --seeds 1:3 --deadline-ms 100 --estimates oracle");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(dir.path().join("out/summary.csv")).unwrap();
    let expected = "source,policy,rate_qps,seed,queries,mean_ms,p50_ms,p95_ms,p99_ms,max_ms,missed,cpu_utilisation,\
                    gpu_utilisation,stolen,";
    assert!(text.lines().any(|line| line.starts_with(expected)), "{text}");
    let summaries = rows(&dir.path().join("out/summary.csv"));
    let text = std::fs::read_to_string(dir.path().join("out/capacity.csv")).unwrap();
    let expected = "source,policy,deadline_ms,max_rate_qps,low_qps,high_qps,bound_qps,";
    assert!(text.lines().any(|line| line.starts_with(expected)), "{text}");
    let number = |row: &BTreeMap<String, String>, column: &str| row[column].parse::<f64>().unwrap();
    let capacities = rows(&dir.path().join("out/capacity.csv"));
    assert_eq!(capacities.len(), 6);
    for capacity in &capacities {
        assert_eq!(capacity["objective"], "p99 <= 100 ms and p99.9 <= 1000 ms");
        let [low, qps, high] = ["low_qps", "max_rate_qps", "high_qps"].map(|column| number(capacity, column));
        let [seeds_low, seeds_high] = ["seeds_low_qps", "seeds_high_qps"].map(|column| number(capacity, column));
        // Few queries were measured: another sample may have quite different costs.
        assert!(low < seeds_low && seeds_low <= qps && qps <= seeds_high && seeds_high < high, "{capacity:?}");
        assert!(seeds_low < seeds_high && seeds_high < seeds_low * 1.2, "{capacity:?}");
        assert!(qps <= number(capacity, "region_qps"), "{capacity:?}");
        assert!(number(capacity, "seeds") * number(capacity, "confirmed_queries") >= 2e6, "{capacity:?}");
        let of_policy: Vec<_> = summaries.iter().filter(|row| row["policy"] == capacity["policy"]).collect();
        // Each rate has three seeds, and no rate is far beyond the capacity.
        assert!(of_policy.len() >= 3 * 5 && of_policy.len() % 3 == 0, "{}", of_policy.len());
        for summary in of_policy {
            let rate_qps = number(summary, "rate_qps");
            assert!(rate_qps <= 1.5 * qps, "{summary:?}");
            assert!(rate_qps > 0.9 * low || number(summary, "p99_ms") <= 100.0, "{summary:?}");
            assert!(number(summary, "p50_ms") <= number(summary, "p99_ms"));
        }
    }
    assert!(dir.path().join("out/delay.svg").exists());
}

#[test]
fn too_few_queries_for_a_model_take_exact_estimates() {
    let dir = tempfile::tempdir().unwrap();
    let output =
        simulate(dir.path(), "--workload w.csv --mode and --what delays --rate 10 --num-queries 100 --seeds 1");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        joined(&said).contains("estimates: oracle (a model needs 5 different queries, the workload has "),
        "{said}"
    );
    let text = std::fs::read_to_string(dir.path().join("out/summary.csv")).unwrap();
    for line in ["# estimates: oracle", "# gpu_lane_depth: 4", "# machine profile: none", "# measured_cpus: 1"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn the_library_compares_policies_as_the_command_does() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = "--workload w.csv --policy cpu-only,mct --seeds 1,2 --deadline-ms 100 --estimates oracle --cpus 1 --gpus 1 --verbose";
    let output = simulate(dir.path(), arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let workload = Workload::read(&dir.path().join("w.csv")).unwrap().only(Mode::Or);
    let experiment =
        experiment(&workload, &Estimates::Oracle, &SimulatedMachine::new(1, 1), Nanos::from_ms(100.0), &[1, 2])
            .unwrap();
    let policy = |kind: PolicyKind| Box::new(kind.with(PolicyOptions::default()));
    let comparison = Comparison::new(experiment, vec![policy(PolicyKind::CpuOnly), policy(PolicyKind::Mct)]);
    let own = dir.path().join("own");
    let said = compare(&comparison, "two policies", &own, &Silent).unwrap();
    let tables = |text: &str| text[text.find("Capacity: ").unwrap()..text.find("\nwritten: ").unwrap()].to_owned();
    assert_eq!(tables(&said), tables(&String::from_utf8(output.stdout).unwrap()));
    for file in ["summary.csv", "capacity.csv"] {
        assert_eq!(rows(&own.join(file)), rows(&dir.path().join("out").join(file)), "{file}");
    }
    assert!(own.join("delay.svg").exists());
}

#[test]
fn a_trace_is_played_as_it_is_and_its_log_written() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.csv"), "arrival_us,query_id\n1000.5,3\n1000.5,39\n5000,0\n").unwrap();
    let output = simulate(dir.path(), "--workload w.csv --trace t.csv --policy cpu-only --log");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Three arrivals do not determine a capacity, and a note says so.
    let said = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains(
            "no capacity: 3 arrivals are too few to tell what rate is sustained (p99 <= 50 ms and p99.9 <= 500 ms)"
        ),
        "{said}"
    );
    assert!(!dir.path().join("out/capacity.csv").exists());
    let log = rows(&dir.path().join("out/log.csv"));
    let of = |column: &str| log.iter().map(|row| row[column].clone()).collect::<Vec<_>>();
    assert_eq!(of("query_id"), ["3", "39", "0"]);
    assert_eq!(of("arrival_us"), ["1000.500", "1000.500", "5000.000"]);
    // Query 3 takes 100 + 4600 / 40 = 215 us, and query 39 starts when it is done.
    assert_eq!(of("started_us")[..2], ["1000.500", "1215.500"]);
    assert_eq!(rows(&dir.path().join("out/summary.csv"))[0]["queries"], "3");
}

#[test]
fn a_drawn_trace_plays_in_the_mode_that_it_was_drawn_for() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("w.csv"), workload()).unwrap();
    for (mode, other) in [("or", "and"), ("and", "or")] {
        let trace = ["trace", "--workload", "w.csv", "--mode", mode, "--num-queries", "100", "-o", "t.csv"];
        let drawn = Command::new(env!("CARGO_BIN_EXE_tandem")).args(trace).current_dir(dir.path()).output().unwrap();
        assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
        let play =
            |mode| simulate(dir.path(), &format!("--workload w.csv --estimates oracle --trace t.csv --mode {mode}"));
        assert_eq!(play(mode).status.code(), Some(0));
        let refused = play(other);
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(message.contains(&format!("(`tandem trace --mode {other}` draws from")), "{message}");
    }
}

#[test]
fn a_machine_of_one_kind_needs_no_times_of_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = workload()
        .lines()
        .map(|line| {
            let mut fields: Vec<&str> = line.split(',').collect();
            if fields.len() > 1 && fields[0] != "query_id" {
                fields[7] = "";
            }
            fields.join(",") + "\n"
        })
        .collect();
    std::fs::write(dir.path().join("cpu.csv"), text).unwrap();
    let output = simulate(dir.path(), "--workload cpu.csv --cpus 3 --seeds 1 --objective no-miss --what capacity");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let policies: Vec<String> =
        rows(&dir.path().join("out/capacity.csv")).iter().map(|r| r["policy"].clone()).collect();
    assert_eq!(policies, ["cpu-only", "stealing-adaptive"]);
    assert!(!dir.path().join("out/summary.csv").exists() && !dir.path().join("out/delay.svg").exists());
    let output = simulate(dir.path(), "--workload cpu.csv --gpus 1 --num-queries 200");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && message.contains("cpu.csv: no GPU was measured"), "{message}");

    let output = simulate(dir.path(), "--workload cpu.csv --num-queries 200 --gpu replay --what delays --rate 100");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let source =
        "times that a model of an NVIDIA H200 predicts for these queries (traces/enwiki-tb05-h200.workload.csv.zst)";
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("The workload has no GPU times; replayed: {source}.")), "{said}");
    assert_eq!(rows(&dir.path().join("out/summary.csv")).len(), 6 * 10);
    let delays = std::fs::read_to_string(dir.path().join("out/summary.csv")).unwrap();
    assert!(delays.contains(&format!("# gpu: replay of {source}\n")), "{delays}");
    let output = simulate(dir.path(), "--workload w.csv --gpu replay");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && message.contains("w.csv: has its own GPU times"), "{message}");
}

#[test]
fn bad_input_is_refused_with_code_2_and_nothing_is_written() {
    let cases = [
        ("--rate 0", "--rate: rate 0 is out of range"),
        ("--rate=-5", "--rate: rate -5 is out of range"),
        ("--rate NaN", "--rate: rate NaN is out of range"),
        ("--rate 1:2", "neither a rate nor FROM:TO:COUNT"),
        ("--num-queries 0", "--num-queries is 0"),
        ("--num-queries 99999999999", "is too much"),
        ("--num-queries 18446744073709551615 --seeds 1:9", "is too much"),
        ("--seeds 1:100000", "expected 1 to 1000 seeds"),
        ("--seeds x", "not a whole number"),
        ("--objective p200", "--objective: p200, expected p50 to"),
        ("--objective fast", "--objective: \"fast\": expected no-miss, miss-share=0.01, p99"),
        ("--objective miss-share=0", "--objective: share 0, expected"),
        ("--deadline-ms 0", "--deadline-ms is 0"),
        ("--deadline-ms NaN", "--deadline-ms is NaN"),
        ("--deadline-ms=-1", "--deadline-ms is -1"),
        ("--deadline-ms inf", "--deadline-ms is inf"),
        ("--cpus 0 --gpus 0", "no processors"),
        ("--cpus 100000000000", "at most 1024"),
        (
            "--gpus 0 --policy stealing",
            "policy stealing needs a gpu, the machine has none: add one, or leave the policy out (--gpus 1)",
        ),
        ("--policy fastest", "possible values: gpu-only, cpu-only, best-of, stealing, mct"),
        ("--set threshold-ratio=0.5", "--set threshold-ratio=0.5: expected a number of at least 1"),
        ("--set cost-weight=NaN", "--set cost-weight=NaN: expected a number from 0"),
        ("--mode and-or", "no queries in mode and-or (it has and, or)"),
        ("--arrivals nowhere.csv", "nowhere.csv: no such file"),
        ("--trace nowhere.csv", "nowhere.csv"),
        ("--trace empty.csv", "empty.csv"),
        ("--trace unknown.csv", "unknown.csv:3:1: `query_id` is 77, and the workload has no such query in mode or"),
        ("--trace backwards.csv", "backwards.csv:3"),
        ("--trace zero.csv", "all arrivals are at time 0"),
        ("--estimates nowhere.json", "nowhere"),
        ("--log --num-queries 9999999", "--log would write"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("empty.csv", "");
    write("unknown.csv", "query_id,arrival_us\n1,5\n77,6\n");
    write("backwards.csv", "arrival_us,query_id\n5,1\n4,1\n");
    write("zero.csv", "arrival_us,query_id\n0,1\n");
    for (arguments, expected) in cases {
        let output = simulate(dir.path(), &format!("--workload w.csv {arguments}"));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains(expected), "{arguments}: {message:?} should contain {expected:?}");
        assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
        assert!(!dir.path().join("out").exists(), "{arguments}: wrote something");
    }
    write("bad.csv", "query_id,mode\n1,or\n");
    let output = simulate(dir.path(), "--workload bad.csv");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && message.contains("bad.csv:1"), "{message}");
    let output = simulate(dir.path(), "--workload w.csv --num-queries 10 --out w.csv/out");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_fault_plan_and_shedding_are_played_and_counted() {
    let play = |arguments: &str| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("plan.csv"), "at_ms,processor,fault,lasts_ms\n1000,1,error,\n200,0,stall,300\n")
            .unwrap();
        let output = simulate(
            dir.path(),
            &format!(
                "--workload w.csv --num-queries 3000 --seeds 1 --rate 900 --cpus 1 --policy stealing --deadline-ms 100 \
                 --what delays --estimates oracle --log {arguments}"
            ),
        );
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut summaries = rows(&dir.path().join("out/summary.csv"));
        let outcomes = rows(&dir.path().join("out/log.csv")).into_iter().map(|row| row["outcome"].clone()).collect();
        (summaries.remove(0), outcomes, String::from_utf8(output.stdout).unwrap())
    };
    let count = |outcomes: &[String], wanted: &str| outcomes.iter().filter(|outcome| *outcome == wanted).count();
    let (well, outcomes, text): (BTreeMap<String, String>, Vec<String>, String) = play("");
    assert_eq!((count(&outcomes, "answered"), text.contains("Losses over all runs")), (3000, false), "{text}");
    assert_eq!([&well["shed"], &well["again"], &well["lane_faults"]], ["0", "0", "0"]);
    let (failed, outcomes, text) = play("--faults plan.csv");
    assert_eq!(failed["lane_faults"], "1");
    assert_eq!(failed["again"], count(&outcomes, "again").to_string());
    assert!(failed["again"] != "0" && text.contains("lanes failed"), "{text}");
    // The GPU's queries run on a CPU from then on.
    let mean_ms = |row: &BTreeMap<String, String>| row["mean_ms"].parse::<f64>().unwrap();
    assert!(mean_ms(&failed) > 2.0 * mean_ms(&well), "{failed:?}");
    let (shed, outcomes, text) = play("--faults plan.csv --set shed=late");
    let dropped = count(&outcomes, "shed");
    assert_eq!((shed["shed"].clone(), shed["queries"].clone()), (dropped.to_string(), (3000 - dropped).to_string()));
    assert!(dropped > 0 && text.contains("queries dropped"), "{text}");
    assert!(mean_ms(&shed) < mean_ms(&failed));
    assert_eq!(count(&outcomes, "answered") + count(&outcomes, "again") + dropped, 3000);
}

#[test]
fn the_lanes_that_fail_by_a_fault_plan_are_in_faults_csv() {
    let dir = tempfile::tempdir().unwrap();
    let plan = "at_ms,processor,fault,lasts_ms\n1000,1,error,\n1500,1,panic,\n900000,0,error,\n";
    std::fs::write(dir.path().join("plan.csv"), plan).unwrap();
    let output = simulate(
        dir.path(),
        "--workload w.csv --num-queries 3000 --seeds 1:2 --rate 900 --cpus 1 --policy stealing --deadline-ms 100 --what delays \
         --estimates oracle --faults plan.csv",
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let failed = rows(&dir.path().join("out/faults.csv"));
    assert_eq!(failed.len(), 2, "{failed:?}");
    for (row, seed) in failed.iter().zip(["1", "2"]) {
        let told = ["policy", "seed", "processor", "fault", "retired"].map(|column| row[column].as_str());
        assert_eq!(told, ["stealing", seed, "1", "error", "true"]);
        assert!(row["at_ms"].parse::<f64>().unwrap() >= 1000.0 && row["queries"] != "0", "{row:?}");
    }
}

#[test]
fn a_fault_plan_that_cannot_be_played_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let plan = |name: &str, line: &str| {
        std::fs::write(dir.path().join(name), format!("at_ms,processor,fault,lasts_ms\n{line}\n")).unwrap();
    };
    plan("good.csv", "1,0,error,");
    plan("lane.csv", "1,2,error,");
    plan("kind.csv", "1,0,fire,");
    plan("stall.csv", "1,0,stall,-3");
    for (arguments, expected) in [
        ("--faults nowhere.csv", "nowhere.csv: cannot open: No such file"),
        ("--faults lane.csv --cpus 1", "lane.csv:2:3: `processor` is \"2\", expected a lane of the machine, 0 to 1"),
        ("--faults kind.csv", "kind.csv:2:5: `fault` is \"fire\", expected error, panic, hang, stall or memory"),
        ("--faults stall.csv", "stall.csv:2:11: `lasts_ms` is \"-3\", expected above 0: how long the fault lasts"),
        ("--faults good.csv --cpus 0", "--faults: a CPU replaces a lane that fails: give --cpus at least 1"),
        ("--faults good.csv --shards 2", "--faults: a plan applies to one machine: leave --shards and --replicas out"),
        ("--faults good.csv --set watchdog-ms=0", "watchdog-ms: expected 1 to 600000"),
        ("--set shed=early", "shed: expected nothing or late"),
    ] {
        let output = simulate(dir.path(), &format!("--workload w.csv {arguments}"));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains(expected), "{arguments}: {message:?} should contain {expected:?}");
        assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
        assert!(!dir.path().join("out").exists(), "{arguments}: wrote something");
    }
}

#[test]
fn a_capacity_with_shedding_counts_what_is_dropped_as_late() {
    let dir = tempfile::tempdir().unwrap();
    let capacity = |arguments: &str| {
        let output = simulate(
            dir.path(),
            &format!(
                "--workload w.csv --what capacity --policy cpu-only --cpus 2 --seeds 1:3 --deadline-ms 100 \
                 --estimates oracle {arguments}"
            ),
        );
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        rows(&dir.path().join("out/capacity.csv"))[0]["max_rate_qps"].parse::<f64>().unwrap()
    };
    // Shedding late queries does not change the number of late ones: dropped queries would have been late.
    let (all, some) = (capacity(""), capacity("--set shed=late"));
    assert!(some >= 0.98 * all && some < 1.3 * all, "{all} {some}");
    // A third may be late, so a third may be dropped: the arrival rate may exceed the service rate.
    let (all, some) =
        (capacity("--objective miss-share=0.33"), capacity("--objective miss-share=0.33 --set shed=late"));
    assert!(some > 1.1 * all, "{all} {some}");
}

#[test]
fn energy_is_predicted_from_the_machine_profile_and_not_without_its_energy_per_query() {
    let dir = tempfile::tempdir().unwrap();
    let profile = |name: &str, power: Option<Power>| {
        let lanes = LaneProfile { power, ..LaneProfile::default() };
        let classes = BTreeMap::from([(Class::GPU, lanes)]);
        let file = MachineProfile::new(BTreeMap::new(), Idle::Spin, classes, DispatcherProfile::default());
        file.write(&dir.path().join(name)).unwrap();
    };
    let query_mj = vec![(1, 170.0), (16, 20.0)];
    profile("power.json", Some(Power { idle_watts: 80.0, busy_watts: vec![(1, 250.0), (16, 400.0)], query_mj }));
    profile("none.json", None);
    let play = |name: &str| {
        let options =
            "--workload w.csv --policy gpu-only --cpus 1 --gpus 1 --rate 300 --what delays --estimates oracle";
        let output = simulate(dir.path(), &format!("{options} --deadline-ms 100 --machine {name} -o o"));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        (joined(&String::from_utf8_lossy(&output.stdout)), rows(&dir.path().join("o/summary.csv")).remove(0))
    };
    let (said, row) = play("power.json");
    let number = |column: &str| row[column].parse::<f64>().unwrap();
    // By hand: 80 W all the time, and 170 mJ more for each query alone.
    let joules = number("queries") * (80.0 / number("throughput_qps") + 0.17);
    assert!((number("gpu_energy_j") / joules - 1.0).abs() < 1e-3, "{joules}: {row:?}");
    assert!((number("gpu_mj_per_query") / (1e3 * joules / number("queries")) - 1.0).abs() < 1e-3, "{row:?}");
    let expected = "Predicted energy of the GPUs per query, by the machine profile: gpu-only ";
    assert!(said.contains(expected), "{said}");
    let (said, row) = play("none.json");
    assert_eq!((row["gpu_energy_j"].as_str(), row["gpu_mj_per_query"].as_str()), ("", ""));
    assert!(said.contains("Energy of the GPUs is not known: the machine profile has no energy per query;"), "{said}");
}

#[test]
fn a_recorded_peak_names_late_times_and_machines() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("own.csv"), "query_id,cpu_us\n1,10000\n2,10000\n").unwrap();
    // A worker serves 100 q/s. 50 q/s arrive, and 190 q/s from 20 to 30 s.
    let stage = |from: f64, to: f64, qps: f64| (0..((to - from) * qps) as usize).map(move |i| from + i as f64 / qps);
    let times = stage(5.0, 20.0, 50.0).chain(stage(20.0, 30.0, 190.0)).chain(stage(30.0, 70.0, 50.0));
    let text = times.fold(String::from("arrival_s\n"), |text, at| format!("{text}{at:.6}\n"));
    std::fs::write(dir.path().join("peak.csv"), text).unwrap();
    let arguments =
        "--workload own.csv --policy cpu-only --arrivals peak.csv --replay repeat --what delays --format json";
    let output = simulate(dir.path(), arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let peak = &document["results"]["peak"];
    // The backlog grows by 90 a second to 900 queries, and shrinks by 50 a second. The deadline is that of 5 queries.
    for (column, expected) in
        [("first_late_s", 20.05), ("longest_at_s", 30.0), ("longest_s", 9.0), ("last_late_s", 47.9), ("clear_s", 18.0)]
    {
        let found = peak[column].as_f64().unwrap();
        assert!((found - expected).abs() < 0.2, "{column} is {found}, expected {expected}: {peak}");
    }
    assert_eq!(peak["machines_that_avoid_it"], 2);
    let said = joined(&String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("2 machines avoid this: at most 1 % late in any minute"), "{said}");
}

#[test]
fn a_pair_of_policies_is_compared_on_the_same_arrivals() {
    let dir = tempfile::tempdir().unwrap();
    let arguments =
        "--workload w.csv --gpus 0 --compare cpu-only,stealing-adaptive --rate 150 --seeds 1:2 --estimates oracle";
    let output = simulate(dir.path(), arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = rows(&dir.path().join("out/pairs.csv"));
    let what: Vec<&str> = found.iter().map(|row| row["what"].as_str()).collect();
    assert_eq!(what, ["capacity q/s", "mean ms", "p99 ms", "p99.9 ms", "longest ms"]);
    assert!(found.iter().all(|row| row["seeds"] == "2" && !row["low"].is_empty()), "{found:?}");
    for (arguments, expected) in [
        ("--compare cpu-only", "--compare: expected two different policies"),
        ("--compare cpu-only,mct --policy mct", "cannot be used with"),
    ] {
        let output = simulate(dir.path(), &format!("--workload w.csv --gpus 0 {arguments}"));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains(expected), "{errors}");
    }
}
