//! `tandem sweep` from outside: parts, interruptions, threads.

use std::path::Path;
use std::process::{Command, Output};

use crate::machine_of_queries;

const TANDEM: &str = env!("CARGO_BIN_EXE_tandem");
const SMALL: [&str; 9] =
    ["--policy", "mct,cpu-only", "--cpus", "1,2", "--noise", "0,0.5", "--seeds", "1:2", "--rate=60000"];

fn sweep(out: &Path, more: &[&str]) -> Output {
    Command::new(TANDEM).arg("sweep").args(SMALL).arg("-o").arg(out).args(more).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The results without the line that names their folder.
fn results(out: &Path) -> String {
    let text = std::fs::read_to_string(out.join("sweep.csv")).unwrap();
    text.lines().filter(|line| !line.starts_with("# command")).collect::<Vec<_>>().join("\n")
}

#[test]
fn parts_threads_and_a_sweep_that_goes_on_write_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let [whole, one_thread, parts, resumed] = ["whole", "one", "parts", "resumed"].map(|name| dir.path().join(name));
    let text = stdout(&sweep(&whole, &[]));
    assert!(text.contains("8 of 8 points are simulated, 0 of them by earlier runs"), "{text}");
    assert_eq!(results(&whole).lines().filter(|line| !line.starts_with('#')).count(), 9);

    let mut command = Command::new(TANDEM);
    command.arg("sweep").args(SMALL).arg("-o").arg(&one_thread).env("RAYON_NUM_THREADS", "1");
    stdout(&command.output().unwrap());
    assert_eq!(results(&one_thread), results(&whole));

    for part in ["2/3", "1/3"] {
        assert!(stdout(&sweep(&parts, &["--part", part])).contains("the parts are not joined yet"));
    }
    let early = sweep(&parts, &["--merge"]);
    assert_eq!(early.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&early.stderr).contains("6 of 8 points are simulated"), "{early:?}");
    assert!(stdout(&sweep(&parts, &["--part=3/3"])).contains("--merge in place of --part"));
    stdout(&sweep(&parts, &["--merge"]));
    assert_eq!(results(&parts), results(&whole));
    let command = |out: &Path| {
        let text = std::fs::read_to_string(out.join("sweep.csv")).unwrap();
        text.lines().find(|line| line.starts_with("# command")).unwrap().to_owned()
    };
    assert!(!command(&parts).contains("--merge") && command(&parts).contains("--rate=60000"), "{}", command(&parts));

    stdout(&sweep(&resumed, &[]));
    for lost in ["000003.csv", "000007.csv"] {
        std::fs::remove_file(resumed.join("points").join(lost)).unwrap();
    }
    assert!(stdout(&sweep(&resumed, &[])).contains("8 of 8 points are simulated, 6 of them by earlier runs"));
    assert_eq!(results(&resumed), results(&whole));
}

#[test]
fn a_folder_holds_one_sweep() {
    let dir = tempfile::tempdir().unwrap();
    stdout(&sweep(dir.path(), &[]));
    let other = sweep(dir.path(), &["--deadline-ms", "20"]);
    assert_eq!(other.status.code(), Some(2));
    let message = String::from_utf8_lossy(&other.stderr);
    assert!(message.contains("points/000000.csv:") && message.contains("of another sweep"), "{message}");
    // Damage is reported with its place.
    let path = dir.path().join("points/000001.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("cpu-only,", "cpu-only,x").replace("mct,", "mct,x")).unwrap();
    let damaged = sweep(dir.path(), &[]);
    let message = String::from_utf8_lossy(&damaged.stderr);
    assert!(damaged.status.code() == Some(2) && message.contains("points/000001.csv:4"), "{message}");
}

#[test]
fn the_fewest_machines_for_a_rate_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let arguments =
        ["sweep", "--policy", "cpu-only", "--gpus", "0", "--seeds", "1:3", "--rate", "60000", "--shards", "2"];
    let output =
        Command::new(TANDEM).args(arguments).args(["--replicas", "1:4", "-o"]).arg(dir.path()).output().unwrap();
    let text = stdout(&output);
    let fewest = text.split("fewest machines").nth(1).unwrap_or_else(|| panic!("{text}"));
    let row: Vec<&str> = fewest.lines().find(|line| line.starts_with("cpu-only")).unwrap().split_whitespace().collect();
    // One CPU sustains 27,000 a second here: two do not sustain 60,000, three do.
    assert_eq!(row[..5], ["cpu-only", "60000", "2", "3", "6"], "{text}");
}

/// Service times of 9 and 11 ms: the work of two machines at 200 q/s.
fn own_times(dir: &Path) -> String {
    let path = dir.join("mine.csv");
    std::fs::write(&path, "query_id,cpu_us\n1,9000\n2,11000\n").unwrap();
    path.display().to_string()
}

#[test]
fn how_many_machines_serve_own_times_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let mine = own_times(dir.path());
    let arguments = ["sweep", "--workload", &mine, "--rate", "200", "--deadline-ms", "200", "--replicas", "1:4"];
    let mut command = Command::new(TANDEM);
    command.args(arguments).args(["--policy", "cpu-only", "--seeds", "1:2", "-o"]).arg(dir.path().join("out"));
    let text = stdout(&command.output().unwrap());
    // Two machines have exactly the capacity of the work: no queue is stable.
    let first = "The fewest machines that meet p99 <= 200 ms and p99.9 <= 2000 ms";
    assert!(
        text.contains(first) && text.replace('\n', " ").contains("at 200 q/s: 3, under cpu-only, 66.7 % busy"),
        "{text}"
    );
    assert!(
        text.contains("they also hold with the spread of machines") && text.contains("least-outstanding"),
        "{text}"
    );
    let model = ["sweep", "--workload", &mine, "--rate", "200", "--estimates", "gpu", "-o"];
    let output = Command::new(TANDEM).args(model).arg(dir.path().join("other")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn machine_files_of_other_queries_are_named_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let (mine, machine) = (own_times(dir.path()), dir.path().join("m.json"));
    machine_of_queries(&machine, "200.0");
    let mut command = Command::new(TANDEM);
    command.args(["sweep", "--workload", &mine, "--rate", "50", "--policy", "cpu-only", "--seeds", "1", "--machine"]);
    command.arg(&machine).args(["--format", "json", "-o"]).arg(dir.path().join("out"));
    let output = command.output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let warning = "was measured with queries that take 200 us on a CPU worker, and these take 10000 us";
    let named = document["results"]["warnings"][0].as_str().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert!(named.contains(warning) && said.contains("warning: ") && said.contains("these take 10000 us"), "{said}");
    assert!(results(&dir.path().join("out")).contains(&format!("# warning: {named}")));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (more, expected) in [
        (&["--part", "4/3"][..], "--part: \"4/3\", expected I/N"),
        (&["--replicas", "0"], "--replicas: \"0\", expected whole numbers"),
        (&["--shards", "64", "--replicas", "64"], "at most 1024 machines"),
        (&["--set", "shard-costs=alike=-1"], "shard-costs: \"alike=-1\""),
        (&["--deadline-ms", "50,50"], "--deadline-ms: 50 is given twice"),
        (&["--merge", "--part", "1/2"], "cannot be used with"),
    ] {
        let output = sweep(dir.path(), more);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains(expected), "{more:?}: {message}");
    }
}
