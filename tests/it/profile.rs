//! `tandem profile`, the whole binary: its measurements and its refusals.

use std::path::Path;
use std::process::Command;

use tandem::base::machine::Class;
use tandem::cost::{ModelFile, TrainOptions};
use tandem::cost::{Workload, train};
use tandem::index::{Bm25, IndexBuilder};
use tandem::traffic::Mode;

const DOCS: u32 = 5000;

/// An index in which term `tN` is in every N-th document, and a log of one- to three-word queries.
fn world(dir: &Path) {
    let lengths = (0..DOCS).map(|doc| 20 + doc % 30).collect();
    let ids = (0..DOCS).map(|doc| format!("d{doc}")).collect();
    let mut builder = IndexBuilder::new(lengths, ids, Bm25::default());
    let mut terms: Vec<(String, u32)> = (1..40).map(|step| (format!("t{step}"), step)).collect();
    terms.sort();
    for (term, step) in &terms {
        let postings: Vec<(u32, u32)> =
            (0..DOCS).step_by(*step as usize).map(|doc| (doc, 1 + (doc / step) % 3)).collect();
        builder.add(term, &postings).unwrap();
    }
    builder.write(&dir.join("index")).unwrap();
    let log: String = (1..38).map(|i| format!("q{i}\tt{i} t{} t{}\n", 1 + i * 7 % 39, 1 + i * 5 % 39)).collect();
    std::fs::write(dir.join("log.tsv"), log + "none\tunknown words\n").unwrap();
}

fn tandem(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tandem")).current_dir(dir).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn queries_are_measured_in_every_mode_for_a_model() {
    let dir = tempfile::tempdir().unwrap();
    world(dir.path());
    let command = ["profile", "index", "--queries", "log.tsv", "--on", "cpu", "--repeats", "3", "-o", "x.workload.csv"];
    let (code, stdout, stderr) = tandem(dir.path(), &command);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("workload: x.workload.csv"), "{stdout}");

    let workload = Workload::read(&dir.path().join("x.workload.csv")).unwrap();
    // The log has 37 queries; the one of unknown words is left out.
    assert_eq!(workload.rows.len(), 3 * 37);
    assert!(workload.rows.iter().all(|row| row.measured[Class::CPU].is_some() && row.measured[Class::GPU].is_none()));
    for mode in Mode::ALL {
        assert_eq!(workload.only(mode).rows.len(), 37);
    }
    for (key, value) in [("docs", "5000"), ("repeats", "3"), ("k", "10"), ("queries", "log.tsv")] {
        assert_eq!(workload.provenance.get(key), Some(value));
    }
    assert_eq!(
        workload.provenance.get("command"),
        Some(command.join(" ").as_str()).map(|c| format!("tandem {c}")).as_deref()
    );

    let models: ModelFile = train(&workload, &TrainOptions { folds: 5, ..TrainOptions::default() }).unwrap();
    assert_eq!(models.models().len(), 3);
}

#[test]
fn modes_and_limits_choose_what_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    world(dir.path());
    let (code, _, stderr) = tandem(
        dir.path(),
        &[
            "profile",
            "index",
            "--queries",
            "log.tsv",
            "--on",
            "cpu",
            "--mode",
            "or,and",
            "--limit",
            "7",
            "--repeats",
            "1",
        ],
    );
    assert_eq!(code, Some(0), "{stderr}");
    let workload = Workload::read(&dir.path().join("out/profile.workload.csv")).unwrap();
    let modes: Vec<Mode> = workload.rows.iter().map(|row| row.mode).collect();
    assert_eq!(modes, [[Mode::And; 7], [Mode::Or; 7]].concat());
}

#[test]
fn bad_options_are_refused_with_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    world(dir.path());
    let refused = |more: &[&str]| {
        let (code, _, stderr) = tandem(dir.path(), &[&["profile"], more].concat());
        assert_eq!(code, Some(2), "{stderr}");
        stderr
    };
    let usual = ["index", "--queries", "log.tsv", "--on", "cpu"];
    assert_eq!(refused(&[&usual[..], &["-k", "0"]].concat()), "error: k is 0, expected 1 to 10000\n");
    assert_eq!(refused(&[&usual[..], &["--repeats", "0"]].concat()), "error: --repeats is 0, expected 1 or more\n");
    assert_eq!(refused(&[&usual[..], &["--limit", "0"]].concat()), "error: --limit is 0, expected 1 or more\n");
    assert_eq!(refused(&["index"]), "error: what to measure on this index? name a query log: --queries FILE\n");
    assert!(refused(&["index", "--queries", "log.tsv", "--on", "tpu"]).contains("invalid value 'tpu'"));
    assert!(refused(&["nowhere", "--queries", "log.tsv"]).starts_with("error: nowhere"));
    let missing = refused(&["index", "--queries", "nowhere.tsv", "--on", "cpu"]);
    assert!(missing.starts_with("error: nowhere.tsv: cannot open"), "{missing}");
    assert!(!dir.path().join("out").exists());
}
