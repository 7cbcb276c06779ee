//! `tandem validate` with pages that follow the queries of a replayed GPU: what is predicted of them is played, and said.

mod tiny_lab;

use std::path::Path;

use tandem::cost::{IndexPages, Workload};
use tiny_lab::{tandem, with_far_times, with_replayed_gpu};

/// A value of the first row of a CSV file.
fn value(path: &Path, column: &str) -> f64 {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let at = lines.next().unwrap().split(',').position(|name| name == column).unwrap();
    lines.next().unwrap().split(',').nth(at).unwrap().parse().unwrap()
}

#[test]
fn validate_plays_pages_that_follow_the_queries_and_says_so() {
    let lab = tempfile::tempdir().unwrap();
    tandem(lab.path(), "index synth --docs 30000 --num-queries 30 -o index", 0);
    let log = "--queries index/queries.tsv";
    let profile = "--mode or --on cpu --repeats 1 -o w.workload.csv --pages w.pages.csv";
    tandem(lab.path(), &format!("profile index {log} {profile}"), 0);
    let pages = IndexPages::read(&lab.path().join("w.pages.csv")).unwrap().layout;
    let page_bytes = 16 * u64::from(pages.page_rows);
    let path = lab.path().join("w.workload.csv");
    let workload = with_replayed_gpu(&path);
    let validate = format!(
        "validate index {log} --workload w.workload.csv --gpu replay --policy gpu-only --cpus 1 --force --runs 0 --seconds 0.1 \
         --deadline-ms 4 --objective p90"
    );
    // Nobody knows what these queries take far: a budget is refused.
    let budget = |bytes: u64| format!("{validate} --gpu-memory {bytes} --gpu-memory-epoch 16");
    let (_, error) = tandem(lab.path(), &budget(1 << 40), 2);
    assert!(error.contains("--gpu-memory: no GPU is driven"), "{error}");

    with_far_times(workload, &path, page_bytes * u64::from(pages.num_pages));
    let predicted = |bytes: u64, out: &str| {
        let (printed, _) = tandem(lab.path(), &format!("{} -o {out}", budget(bytes)), 0);
        let file = lab.path().join(out).join("validation_capacity.csv");
        let head = std::fs::read_to_string(&file).unwrap();
        assert!(head.contains("epochs of 16 queries; "), "{head}");
        // Whether live runs hold is for the machine to say, whoever else uses it.
        assert!(value(&lab.path().join(out).join("validation.csv"), "queries") > 0.0);
        (printed, value(&file, "predicted_qps"))
    };
    let (printed, near_qps) = predicted(1 << 40, "near");
    let all = pages.num_pages;
    assert!(all > 5 && printed.contains(&format!("GPU memory: {all} of {all} pages near at first")), "{printed}");
    // One page near, and 450 us where all is far in place of 50.
    let (printed, far_qps) = predicted(50 + pages.headers_bytes + page_bytes, "far");
    assert!(printed.contains(&format!("GPU memory: 1 of {all} pages near at first")), "{printed}");
    assert!(2.0 * far_qps < near_qps, "{far_qps} q/s with one page near, {near_qps} with all");
    // What was measured elsewhere is not kept as if it had been measured here.
    assert!(!lab.path().join("far/here.workload.csv").exists());
    assert!(Workload::read(&path).unwrap().tiers.is_some());
    let (_, error) = tandem(lab.path(), &budget(60), 2);
    assert!(error.contains("is less than the") && error.contains("where pages follow the queries"), "{error}");
}
