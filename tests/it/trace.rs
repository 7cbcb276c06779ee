//! `tandem trace` and `tandem index synth` from the user's view.

use std::path::Path;
use std::process::{Command, Output};

use tandem::traffic::Trace;

fn tandem(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tandem")).args(arguments).current_dir(dir).output().expect("tandem runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_trace_is_drawn_summarised_and_drawn_again_alike() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = ["trace", "--ids", "50", "--rate", "200", "--num-queries", "5000", "--seed", "9"];
    let output = tandem(dir.path(), &[&drawn[..], &["-o", "a.trace.csv"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("busiest second"), "{}", text(&output.stdout));
    let again = tandem(dir.path(), &[&drawn[..], &["-o", "a.trace.csv"]].concat());
    assert_eq!(output.stdout, again.stdout);
    let trace = Trace::read(&dir.path().join("a.trace.csv")).unwrap();
    assert_eq!(trace.rows.len(), 5000);
    assert!(trace.rows.iter().all(|(_, query)| query.0 < 50));

    // Our own traces serve as recordings too, at any rate.
    let replayed = ["trace", "--ids", "50", "--rate", "10", "--num-queries", "6000", "--arrivals", "a.trace.csv"];
    let replayed = [&replayed[..], &["--replay", "compress"]].concat();
    let output = tandem(dir.path(), &replayed);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let trace = Trace::read(&dir.path().join("out/arrivals.trace.csv")).unwrap();
    let (last, _) = trace.rows[4999];
    // The trace has one mean gap, then the 4999 recorded gaps.
    assert!((last.as_secs() - 500.0).abs() < 1e-3, "{last:?}");
}

#[test]
fn bad_options_and_recordings_end_with_code_2_and_the_place() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("r.csv"), "arrival_s\n1\n0.5\n").unwrap();
    for (arguments, expected) in [
        (
            &["--rate", "0"][..],
            "error: --rate: rate 0 is out of range: expected 0.000001 to 1000000000 queries per second",
        ),
        (&["--arrivals", "r.csv"], "error: r.csv:3:1: arrivals go backwards: 0.5 s after 1 s (sort by arrival_s)"),
        (
            &["--arrivals", "sometimes"],
            "error: sometimes: no such file, and none of poisson, bursty, uniform, smooth-100qps, bursty-100qps",
        ),
    ] {
        let output = tandem(dir.path(), &[&["trace", "--ids", "5"], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(text(&output.stderr).trim_end(), expected);
    }
}

#[test]
fn a_synthetic_index_answers_its_own_queries() {
    let dir = tempfile::tempdir().unwrap();
    let output = tandem(dir.path(), &["index", "synth", "--docs", "3000", "--num-queries", "20", "-o", "s"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let index = tandem::index::Index::open(&dir.path().join("s")).unwrap();
    let tokenizer = tandem::corpus::Tokenizer::from_name(index.tokenizer_name()).unwrap();
    let log = tandem::query::prepare_queries(&dir.path().join("s/queries.tsv"), &Default::default(), &index, |text| {
        tokenizer.terms(text)
    });
    let log = log.unwrap();
    assert_eq!((log.queries.len(), log.dropped_terms, log.empty_queries), (20, 0, 0));

    let output = tandem(dir.path(), &["index", "synth", "--docs", "10", "-o", "t"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--docs is 10, expected 1000 to"), "{}", text(&output.stderr));
}

#[test]
fn workloads_that_ship_are_known_by_name() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["enwiki-tb05-h200", "synthetic-1m-h200", "traces/synthetic-gov2-h200.workload.csv.zst"] {
        let output = tandem(dir.path(), &["trace", "--workload", name, "--rate", "500", "--num-queries", "100"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(name), "{}", text(&output.stdout));
    }
}
