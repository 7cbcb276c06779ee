//! `tandem plan`: answers, refusals with their places, and impossible deadlines.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::machine_of_queries;

const HEADER: &str = "name,cores,gpus,memory_gb,price_per_hour";

fn plan(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(dir).args("plan --workload own.csv --policy cpu-only -o o".split(' '));
    command.args(arguments.split_whitespace()).output().unwrap()
}

/// A folder with own service times, of 1 or 3 ms, and a catalogue of a small and a large type.
fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let times = (0..40).map(|id| format!("{id},{}\n", 1000 + id % 2 * 2000)).collect::<String>();
    fs::write(dir.path().join("own.csv"), format!("query_id,cpu_us\n{times}")).unwrap();
    fs::write(dir.path().join("machines.csv"), format!("{HEADER}\nsmall,3,0,16,0.5\nlarge,8,0,64,1.6\n")).unwrap();
    dir
}

#[test]
fn own_service_times_spare_groups_and_shards_are_planned() {
    let dir = world();
    let output = plan(dir.path(), "--rate 4000 --deadline-ms 50 --catalogue machines.csv --spare 1 --index-gb 20");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let written = fs::read_to_string(dir.path().join("o/plan.csv")).unwrap();
    let mut lines = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(written.as_bytes());
    let rows: Vec<std::collections::BTreeMap<String, String>> = lines.deserialize().map(Result::unwrap).collect();
    let of = |name: &str| rows.iter().find(|row| row["machine"] == name).unwrap();
    let number = |name: &str, column: &str| of(name)[column].parse::<f64>().unwrap();
    // 20 GB exceed 90 % of 16 GB, not those of 64 GB. Own service times use all 8 cores: 4000 q/s of 2 ms on average.
    assert_eq!((number("small", "workers"), number("large", "workers")), (3.0, 8.0));
    assert_eq!((number("small", "shards"), number("large", "shards")), (2.0, 1.0));
    assert!((3700.0..=4000.0).contains(&number("large", "group_qps")), "{written}");
    for name in ["small", "large"] {
        let (machines, groups) = (number(name, "machines"), number(name, "groups"));
        assert_eq!((machines, number(name, "spare")), (groups * number(name, "shards"), 1.0));
        let price = if name == "small" { 0.5 } else { 1.6 };
        assert!((number(name, "price_per_month") / (machines * price * 730.5) - 1.0).abs() < 1e-3, "{written}");
        let (served, group_qps) = (number(name, "served_share"), number(name, "group_qps"));
        assert!(served >= 0.9 && (groups - 1.0) * group_qps > 4000.0, "{written}");
        // Neither power in the catalogue nor a machine profile: no estimate takes their place.
        assert_eq!((of(name)["joules_per_query"].as_str(), of(name)["gpu_mj_per_query"].as_str()), ("", ""));
    }
    let cheapest =
        if number("small", "price_per_month") < number("large", "price_per_month") { "small" } else { "large" };
    assert_eq!(rows[0]["machine"], cheapest);
    let count = rows[0]["machines"].as_str();
    assert!(said.starts_with(&format!("{count} machines {cheapest} under cpu-only")), "{said}");
    assert!(said.contains("1 of ") && said.contains(" groups spare") && said.contains(" loses to "), "{said}");
    assert!(
        said.replace('\n', " ").contains(" machines hold 4000 q/s after the loss of 1: ") && !said.contains("GPU"),
        "{said}"
    );
    assert!(fs::read_to_string(dir.path().join("o/machines.csv")).unwrap().contains(",true,"), "{said}");
    assert!(dir.path().join("o/plan.svg").exists());
}

#[test]
fn machine_files_of_other_queries_are_named_everywhere() {
    let dir = world();
    // The queries of `own.csv` take 2 ms on average.
    machine_of_queries(&dir.path().join("short.json"), "100.0");
    machine_of_queries(&dir.path().join("alike.json"), "1500.0");
    let warning = "short.json was measured with queries that take 100 us on a CPU worker, and these take 2000 us";
    for (file, expected) in [("short.json", Some(warning)), ("alike.json", None)] {
        let catalogue = format!("{HEADER},profile\nsmall,4,0,16,0.5,{file}\n");
        fs::write(dir.path().join("machines.csv"), catalogue).unwrap();
        let output = plan(dir.path(), "--rate 100 --catalogue machines.csv");
        let said = String::from_utf8_lossy(&output.stdout).replace('\n', " ");
        let written = fs::read_to_string(dir.path().join("o/plan.csv")).unwrap();
        let json = plan(dir.path(), "--rate 100 --catalogue machines.csv --format json");
        let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        // No live run of the record had several machines.
        let is_of_file =
            |warning: &&serde_json::Value| !warning.as_str().unwrap().starts_with("simulated, never measured");
        let warnings: Vec<_> = document["results"]["warnings"].as_array().unwrap().iter().filter(is_of_file).collect();
        match expected {
            Some(warning) => {
                assert!(said.contains(&format!("warning: {warning}")), "{said}");
                assert!(written.contains(&format!("# warning: {warning}")), "{written}");
                assert!(warnings.len() == 1 && warnings[0].as_str().unwrap().starts_with(warning), "{document}");
            }
            None => assert!(
                warnings.is_empty() && !said.contains("measured with queries") && !written.contains("measured with"),
                "{said}"
            ),
        }
        let answer = &document["results"]["answer"];
        assert!(
            answer["machine"] == "small" && answer["group_qps"].is_number() && answer["served_share"].is_number(),
            "{answer}"
        );
    }
}

#[test]
fn impossible_deadlines_exit_with_3_and_name_the_nearest() {
    let dir = world();
    let output = plan(dir.path(), "--rate 100 --deadline-ms 2 --catalogue machines.csv");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(3), true), "{errors}");
    let expected = "error: no machine of the catalogue serves any rate within 2 ms (small: no policy sustains any rate within the \
                    deadline; large: no policy sustains any rate within the deadline); nearest: 1 machine small under \
                    cpu-only within 3.464 ms, 365.2 per month\n";
    assert_eq!(errors, expected);
    assert!(!dir.path().join("o/plan.csv").exists());
    let output = plan(dir.path(), "--rate 100 --deadline-ms 2 --catalogue machines.csv --format json");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = &document["results"];
    assert_eq!((output.status.code(), &results["answer"]), (Some(3), &serde_json::Value::Null), "{document}");
    let nearest = &results["nearest"];
    assert!(
        nearest["machine"] == "small" && nearest["deadline_ms"].as_f64().is_some_and(|ms| (3.0..4.0).contains(&ms))
    );
}

#[test]
fn own_executors_need_cores_and_catalogues_name_workers() {
    let dir = world();
    fs::write(dir.path().join("machines.csv"), format!("{HEADER}\nsmall,1,0,16,0.5\n")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    let arguments = "plan --rate 10 --catalogue machines.csv --estimates oracle -o p";
    let output = command.current_dir(dir.path()).args(arguments.split(' ')).output().unwrap();
    let expected = "error: machine type small: its number of cores is 1, expected at least 2: the dispatcher of Tandem's own executors needs one and a \
                    query needs another one\n";
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr)), (Some(2), expected.into()));
    fs::write(dir.path().join("machines.csv"), format!("{HEADER},workers\nc1,1,0,16,0.5,\nc2,2,0,16,0.6,1\n")).unwrap();
    let output = plan(dir.path(), "--rate 100 --catalogue machines.csv --format json");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let plans = document["results"]["plan"].as_array().unwrap();
    assert_eq!(plans.iter().map(|plan| &plan["workers"]).collect::<Vec<_>>(), [1, 1]);
    fs::write(dir.path().join("machines.csv"), format!("{HEADER},workers\nc1,2,0,16,0.5,3\n")).unwrap();
    fs::remove_dir_all(dir.path().join("o")).unwrap();
    refuses(
        dir.path(),
        "--rate 10 --catalogue machines.csv",
        "machines.csv:2:15: `workers` is \"3\", expected 1 to 2 (cores)",
    );
}

#[test]
fn a_type_that_runs_no_policy_or_takes_too_many_shards_says_so() {
    let dir = world();
    for (arguments, why) in [
        ("--rate 10 --policy gpu-only", "none of the policies can run on it"),
        ("--rate 10 --index-gb 2000", "the index needs 139 such machines for one copy, and at most 64 are planned"),
    ] {
        fs::write(dir.path().join("machines.csv"), format!("{HEADER}\nsmall,4,0,16,0.5\n")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
        command.current_dir(dir.path()).args("plan --workload own.csv --catalogue machines.csv -o o".split(' '));
        let output = command.args(arguments.split(' ')).output().unwrap();
        let expected = format!("error: no machine of the catalogue serves any rate within 50 ms (small: {why})\n");
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr)), (Some(3), expected.into()));
    }
}

#[test]
fn faults_of_a_catalogue_have_file_line_and_column() {
    let dir = world();
    for (text, expected) in [
        ("a,four,0,16,1", "machines.csv:2:3: `cores` is \"four\", expected a whole number from 0"),
        ("a,4,0,16 GB,1", "machines.csv:2:7: `memory_gb` is \"16 GB\", expected a number"),
        ("a,4,0,65536,1", "machines.csv:2:7: `memory_gb` is \"65536\", expected at most 800 (gigabytes, 200 per core)"),
        ("a,4,0,16,", "machines.csv:2:10: `price_per_hour` is \"\", expected a number"),
        ("a,4,0,16,1 USD", "machines.csv:2:10: `price_per_hour` is \"1 USD\", expected a number"),
        ("a,4,0,16,-1", "machines.csv:2:10: `price_per_hour` is \"-1\", expected a number above 0 (any one currency)"),
        ("", "machines.csv: has no machine type, expected a header and a line for each"),
    ] {
        fs::write(dir.path().join("machines.csv"), format!("{HEADER}\n{text}\n")).unwrap();
        refuses(dir.path(), "--rate 10 --catalogue machines.csv", expected);
    }
    for (more, text, expected) in [
        (
            "idle_watts,busy_watts",
            "0.1,0.3",
            "machines.csv:2:16: `busy_watts` is \"0.3\", expected 1 to 1000000 (watts)",
        ),
        (
            "profile",
            "x.json",
            "machines.csv:2:12: `profile` is \"x.json\", expected the path of a machine profile from the folder of the catalogue",
        ),
        ("profile", "own.csv", "machine type a: own.csv:1:1: expected value"),
        ("workload", "x.csv", "machine type a: x.csv: cannot open: No such file or directory (os error 2)"),
    ] {
        fs::write(dir.path().join("machines.csv"), format!("{HEADER},{more}\na,4,0,16,1,{text}\n")).unwrap();
        refuses(dir.path(), "--rate 10 --catalogue machines.csv", expected);
    }
    fs::write(dir.path().join("machines.csv"), "name,cores,gpus,memory_gb\na,4,0,16\n").unwrap();
    refuses(dir.path(), "--rate 10 --catalogue machines.csv", "machines.csv:1:1: the header lacks `price_per_hour`");
    let missing = "missing.csv: cannot open: No such file or directory (os error 2)";
    refuses(dir.path(), "--rate 10 --catalogue missing.csv", missing);
}

#[test]
fn questions_that_cannot_be_meant_are_refused() {
    let dir = world();
    for (arguments, expected) in [
        ("--rate 100:50", "--rate: \"100:50\", expected the lower rate first, then a higher one"),
        ("--rate 1:2:3", "--rate: \"1:2:3\", expected queries per second (0.001 to 10^12), or LOW:HIGH"),
        ("--rate 10 --spare 1000000", "--spare is 1000000, expected 0 to 100000"),
        ("--rate fast", "--rate: \"fast\", expected queries per second (0.001 to 10^12), or LOW:HIGH"),
        ("--rate 10 --index-gb 0", "--index-gb is 0, expected 0.000001 to 1000000000"),
        ("--rate 10 --speed-spread 2", "--speed-spread is 2, expected 0 to 1"),
        ("--rate 10 --shortage 0", "--shortage is 0, expected 1 to 1000000"),
    ] {
        refuses(dir.path(), arguments, expected);
    }
    fs::write(dir.path().join("own.csv"), "query_id,cpu_us\n0,12\n1,12ms\n").unwrap();
    refuses(dir.path(), "--rate 10", "own.csv:3:3: `cpu_us` is \"12ms\", expected microseconds above 0");
}

#[track_caller]
fn refuses(dir: &Path, arguments: &str, expected: &str) {
    let output = plan(dir, arguments);
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("error: {expected}\n"), "{arguments}");
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{arguments}");
    assert!(!dir.join("o").exists(), "{arguments}");
}
