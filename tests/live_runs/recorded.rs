//! Recorded live runs: what is kept of them, and the simulator judged by them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::tiny_lab::{tandem, tiny_lab};

/// One CPU worker under a loose objective, so that some runs hold on a busy machine, too.
const VALIDATE: &str = "validate index --queries queries.tsv --limit 24 --gpu none --policy cpu-only --cpus 1 --seeds 1:3 \
                        --objective miss-share=0.5 --deadline-ms 50 --live-seconds 0.3 --out v";

/// The provenance lines of a CSV file, and its rows by column.
fn read(path: &Path) -> (String, Vec<BTreeMap<String, String>>) {
    let text = std::fs::read_to_string(path).unwrap();
    let (head, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('#'));
    let columns: Vec<&str> = rest[0].split(',').collect();
    let row = |line: &&str| {
        let cells = cells(line);
        assert_eq!(cells.len(), columns.len(), "{line}");
        columns.iter().map(|column| (*column).to_owned()).zip(cells).collect()
    };
    (head.join("\n"), rest[1..].iter().map(row).collect())
}

/// The cells of a line, some of which hold commas in quotes.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

fn write(path: &Path, head: &str, rows: &[BTreeMap<String, String>]) {
    let columns: Vec<&str> = rows[0].keys().map(String::as_str).collect();
    let line = |row: &BTreeMap<String, String>| {
        let quoted: Vec<String> = columns.iter().map(|column| format!("\"{}\"", row[*column])).collect();
        quoted.join(",")
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    std::fs::write(path, format!("{head}\n{}\n{}\n", columns.join(","), lines.join("\n"))).unwrap();
}

/// The files of cells in a record.
fn cell_files(record: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(record).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "csv")).collect();
    files.retain(|path| !path.ends_with("baseline.csv"));
    files.sort();
    files
}

/// `TANDEM_MEASURED=write` writes the table anew after runs were recorded.
#[test]
fn the_table_of_what_was_measured_is_that_of_the_record() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let alone = ["priorities", "replicas", "shards", "streams"].map(|dimension| format!("{dimension},1"));
    let mut kinds: BTreeSet<String> = alone.into();
    for file in cell_files(&root.join("recorded")) {
        for row in read(&file).1 {
            kinds.extend(["arrivals", "gpus", "policy"].map(|dimension| format!("{dimension},{}", row[dimension])));
        }
    }
    let table: String = kinds.into_iter().map(|kind| kind + "\n").collect();
    let path = root.join("crates/model/src/study/measured.csv");
    if std::env::var("TANDEM_MEASURED").is_ok_and(|what| what == "write") {
        std::fs::write(&path, &table).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), table);
}

#[test]
fn live_runs_are_recorded_replayed_and_a_bias_of_five_percent_is_found() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let record = lab.path().join("r");
    tandem(lab.path(), &format!("{VALIDATE} --record r"), 0);
    let files = cell_files(&record);
    assert_eq!(files.len(), 1);
    let (head, mut cells) = read(&files[0]);
    assert!(head.contains("# command: tandem validate index") && head.contains("# date: "), "{head}");
    assert!(cells.len() >= 3, "runs at 20, 50 and 80 % at least");
    for cell in &cells {
        assert_eq!((cell["policy"].as_str(), cell["cpus"].as_str(), cell["fitted"].as_str()), ("cpu-only", "1", "no"));
        let workload = record.join(format!("workloads/{}.workload.csv.zst", cell["workload"]));
        assert!(workload.metadata().unwrap().len() < 300_000);
        for column in ["predicted_half_width", "predicted_mean_half_width", "predicted_p99_half_width"] {
            assert!(cell[column].parse::<f64>().unwrap() >= 0.01, "{column}: {cell:?}");
        }
        for column in [
            "loop_before_us",
            "loop_after_us",
            "rehearsal_qps",
            "linear_qps",
            "decision_us",
            "work_ratio_cpu",
            "mean_ms",
        ] {
            assert!(cell[column].parse::<f64>().unwrap() > 0.0, "{column}: {cell:?}");
        }
    }
    // The live runs of this test say little of the machine: they are set to what is predicted of them.
    let set = |cells: &mut [BTreeMap<String, String>], qps: f64| {
        for (at, cell) in cells.iter_mut().enumerate() {
            for column in ["held_qps", "missed_qps"] {
                cell.insert(column.into(), qps.to_string());
            }
            cell.insert("rate_qps".into(), (qps * if at == 0 { 0.985 } else { 0.5 }).to_string());
            cell.insert("held".into(), "true".into());
            // A run is judged again by its columns.
            cell.insert("late".into(), "0".into());
        }
        write(&files[0], &head, cells);
    };
    let predicted_qps = cells[0]["predicted_qps"].parse().unwrap();
    set(&mut cells, predicted_qps);
    tandem(lab.path(), "validate --recorded r --out w", 0);
    let (_, compared) = read(&lab.path().join("w/recorded.csv"));
    let replayed_qps: f64 = compared[0]["predicted"].parse().unwrap();
    assert!((replayed_qps / predicted_qps - 1.0).abs() < 0.05, "{replayed_qps} {predicted_qps}");
    set(&mut cells, replayed_qps);
    let (out, err) = tandem(lab.path(), "validate --recorded r --out w --verbose", 0);
    assert!(out.contains("capacity") && out.contains("half-width") && out.contains("rehearsal"), "{out}");
    assert!(err.contains("no errors were accepted yet"), "{err}");
    tandem(lab.path(), "validate --recorded r --out w --set accept=true", 0);
    let (_, compared) = read(&record.join("baseline.csv"));
    let of = |what: &str| compared.iter().filter(|row| row["what"] == what).cloned().collect::<Vec<_>>();
    assert_eq!((of("capacity").len(), of("held").len()), (1, cells.len()));
    assert_eq!((of("mean").len(), of("p99").len()), (cells.len() - 1, cells.len() - 1));
    let error: f64 = of("capacity")[0]["error"].parse().unwrap();
    assert!(error.abs() < 0.001 && of("held").iter().all(|row| row["inside"] == "true"), "{compared:?}");
    assert!(of("mean").iter().all(|row| !row["speed_error"].is_empty() && row["limit"] == "load"), "{compared:?}");
    assert!(of("mean").iter().skip(1).all(|row| !row["before_error"].is_empty()), "{compared:?}");
    tandem(lab.path(), "validate --recorded r --out w --given-costs", 0);
    let (_, given) = read(&lab.path().join("w/recorded.csv"));
    assert_eq!(given.len(), compared.len());
    let (_, err) = tandem(lab.path(), "validate --recorded r --out w --set without=beside,noise", 2);
    assert!(err.contains("--set without=noise: expected each, hand-off,"), "{err}");
    // Replays are deterministic.
    tandem(lab.path(), "validate --recorded r --out w", 0);

    // Service times that are 5 % longer.
    for cell in &mut cells {
        for column in ["cpu_slowdown", "cpu_handoff_us"] {
            let value: f64 = cell[column].parse().unwrap();
            cell.insert(column.into(), (1.05 * value).to_string());
        }
    }
    write(&files[0], &head, &cells);
    let (_, err) = tandem(lab.path(), "validate --recorded r --out w", 1);
    assert!(err.contains("predictions are worse") && err.contains("capacity: median bias -"), "{err}");
    assert!(err.contains("the run held, as was predicted, and the opposite is predicted now"), "{err}");
    // A cell that is gone is no improvement.
    write(&files[0], &head, &cells[1..]);
    let (_, err) = tandem(lab.path(), "validate --recorded r --out w", 1);
    assert!(err.contains("and it is missing"), "{err}");
}

#[test]
fn damaged_cells_are_refused_with_their_place_and_nothing_is_overwritten() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    let record = lab.path().join("r");
    tandem(lab.path(), &format!("{VALIDATE} --record r --set fitted=true"), 0);
    tandem(lab.path(), &format!("{VALIDATE} --record r"), 0);
    let files = cell_files(&record);
    assert_eq!(files.len(), 2);
    // Both calls share the workload, which the first one measured.
    assert_eq!(std::fs::read_dir(record.join("workloads")).unwrap().count(), 1);
    let (out, err) = tandem(lab.path(), "validate --recorded r --out w --format json", 0);
    assert!(out.contains("\"recorded\"") && err.contains("of them fitted"), "{out}{err}");
    let fitted = |path: &PathBuf| read(path).1[0]["fitted"].clone();
    let mut said: Vec<String> = files.iter().map(fitted).collect();
    said.sort();
    assert_eq!(said, ["no", "yes"]);

    let whole = std::fs::read_to_string(&files[0]).unwrap();
    let line = whole.lines().position(|line| line.starts_with("cpu-only,")).unwrap();
    let place = format!("{}:{}:", files[0].display(), line + 1).replace(&format!("{}/", lab.path().display()), "");
    for (found, damaged, message) in [
        ("cpu-only,", "cpu-onIy,", "1: `policy` is \"cpu-onIy\", expected the name of a policy"),
        (",poisson,", ",often,", " `arrivals` is \"often\", expected poisson, bursty or uniform"),
        (",miss-share=0.5,", ",miss-share=7,", " share 7, expected"),
        (",poisson,", ",poisson,1,", " values, expected"),
    ] {
        std::fs::write(&files[0], whole.replacen(found, damaged, 1)).unwrap();
        let (_, err) = tandem(lab.path(), "validate --recorded r --out w", 2);
        let place = if message.contains("values") { place.trim_end_matches(':') } else { &place };
        assert!(err.contains(place) && err.contains(message), "{err} should contain {place}{message}");
    }
    std::fs::write(&files[0], &whole).unwrap();
    let workload = std::fs::read_dir(record.join("workloads")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&workload, "query_id,cpu_us\n1,5\n").unwrap();
    let (_, err) = tandem(lab.path(), "validate --recorded r --out w", 2);
    assert!(err.contains("its content was changed") && err.contains(".workload.csv.zst"), "{err}");
    std::fs::remove_file(&workload).unwrap();
    let (_, err) = tandem(lab.path(), "validate --recorded r --out w", 2);
    assert!(err.contains(".workload.csv.zst"), "{err}");
}

#[test]
fn what_cannot_be_recorded_or_judged_is_refused_before_anything_is_driven() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    std::fs::write(lab.path().join("a.csv"), "arrival_s\n0\n1\n2\n").unwrap();
    std::fs::create_dir(lab.path().join("empty")).unwrap();
    for (arguments, message) in [
        (format!("{VALIDATE} --record r --arrivals a.csv"), "--record: a cell names its arrivals"),
        (
            format!("{} --record r --arrivals bursty --set burst-s=1", VALIDATE.replacen("validate", "capacity", 1)),
            "--record: a cell names its arrivals",
        ),
        (format!("{VALIDATE} --record r --set patience=3"), "--record: a cell names its policy only"),
        (format!("{VALIDATE} --set accept=true"), "--set accept=true: expected --recorded"),
        (String::from("validate --recorded empty"), "empty: holds no cells"),
        (String::from("validate --recorded nothing"), "nothing: cannot read"),
        (String::from("validate --recorded r --record r"), "cannot be used with"),
    ] {
        let (_, err) = tandem(lab.path(), &arguments, 2);
        assert!(err.contains(message), "{arguments}: {err}");
    }
    assert!(!lab.path().join("r").exists());
}

#[test]
fn a_run_that_is_shorter_than_its_recording_says_which_share_it_played() {
    let _alone = crate::alone();
    let lab = tiny_lab();
    // 10 q/s for 200 s, then 30.
    let times = (0..2000).map(|at| f64::from(at) / 10.0).chain((0..6000).map(|at| 200.0 + f64::from(at) / 30.0));
    let recording: String = times.map(|at| format!("{at}\n")).collect();
    std::fs::write(lab.path().join("a.csv"), format!("arrival_s\n{recording}")).unwrap();
    let live = "live index --queries queries.tsv --workload cpu.workload.csv --gpu none --estimates oracle --out l";
    let run = "--arrivals a.csv --rate 200 --seconds 0.4 --seeds 1 --deadline-ms 5000";
    let (out, _) = tandem(lab.path(), &format!("{live} {run}"), 0);
    let words = out.replace('\n', " ");
    assert!(words.contains("of which the shortest runs played 0.1 %: delays are likely too low"), "{out}");
    let (_, rows) = read(&lab.path().join("l/summary.csv"));
    let share: f64 = rows[0]["covered_share"].parse().unwrap();
    assert!((share - 0.001).abs() < 1e-4, "{share}");
    // Drawn arrivals are always typical.
    let (out, _) = tandem(lab.path(), &format!("{live} --rate 200 --seconds 0.4 --deadline-ms 5000"), 0);
    assert!(!out.contains("shortest runs played"), "{out}");
}
