//! `tandem reproduce` from the user's view, on an index so small that every figure takes seconds.

use std::path::Path;
use std::process::{Command, Output};

fn tandem(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    // Real collections would be indexed if present, which takes long.
    command.args(arguments).current_dir(dir).env_remove("TANDEM_DATA").output().expect("tandem runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks that the rows of a run have the declared forms, which recorded files are compared with.
fn has_declared_rows(output: &Output) {
    assert!(!text(&output.stderr).contains("would refuse this file"), "{}", text(&output.stderr));
}

#[test]
fn recorded_claims_follow_from_recorded_numbers() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reproduced");
    let dir = tempfile::tempdir().unwrap();
    let output = tandem(dir.path(), &["reproduce", "--claims", "--results", root, "--check"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = tandem(dir.path(), &["reproduce", "--claims", "--results", root, "--out", "out"]);
    let listed = text(&output.stdout);
    assert!(listed.contains("not testable here") && listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
    let csv = std::fs::read_to_string(dir.path().join("out/claims.csv")).unwrap();
    assert!(csv.contains("paper,experiment,recorded_in,statement,verdict,evidence,reason\n"), "{csv}");
    let output = tandem(dir.path(), &["reproduce", "--claims"]);
    assert_eq!(output.status.code(), Some(2), "a folder without results: {}", text(&output.stderr));
}

#[test]
fn statements_in_the_text_of_ding_are_measured_and_judged() {
    let dir = tempfile::tempdir().unwrap();
    let names = "ding-skipping,ding-quantised,ding-costs";
    let output = tandem(dir.path(), &["reproduce", names, "--docs", "20000", "--limit", "60", "--out", "r"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    has_declared_rows(&output);
    let claims = std::fs::read_to_string(dir.path().join("r/claims.csv")).unwrap();
    let skipped = "ding,ding-skipping,ding-skipping,The blocks skipped equal those of document-at-a-time forward seeks (1 %),confirmed,";
    assert!(claims.contains(skipped), "{claims}");
    assert!(text(&output.stdout).contains("statement of the paper"));
}

#[test]
fn all_tables_and_figures_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let short = text(&tandem(dir.path(), &["reproduce", "--list"]).stdout);
    assert!(short.lines().count() <= 40 && short.lines().all(|line| line.chars().count() <= 80), "{short}");
    let output = tandem(dir.path(), &["reproduce", "--list", "--verbose"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let list = text(&output.stdout);
    let papers = ["ding-", "wang-", "huang-", "wei-", "tatikonda-"];
    let named: Vec<&str> = list.lines().filter(|line| papers.iter().any(|paper| line.starts_with(paper))).collect();
    assert_eq!(named.len(), 38, "{list}");
    let says = |name: &str, words: &[&str]| {
        let line = named.iter().find(|line| line.starts_with(name)).unwrap();
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    };
    says("ding-table3", &["yes", "needed", "25.2 M docs"]);
    says("wang-fig8", &["needed", "0.5 M docs"]);
    says("ding-fig7", &["no", "recorded costs"]);
    assert!(list.contains("needed, nothing is measured\nwithout one"), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    for name in ["ding-fig3", "wang-fig10", "huang-table2", "wei-table4", "tatikonda-fig7"] {
        assert!(list.contains(name), "{name} should be in\n{list}");
    }
}

#[test]
fn what_cannot_be_run_is_refused_with_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (vec!["reproduce", "tatikonda-fig"], "did you mean tatikonda-fig4"),
        (vec!["reproduce", "moon"], "--list"),
        (vec!["reproduce", "wei-table5,moon", "--docs", "1000"], "\"moon\""),
        (vec!["reproduce", "ding-fig3", "--docs", "20000", "--limit", "20", "--data", "."], "expected corpus/"),
        (vec!["reproduce", "tatikonda-fig7", "-k", "0"], "expected 1 to 1000"),
        (vec!["reproduce", "tatikonda-fig4", "--seconds", "-1"], "--seconds"),
        (vec!["reproduce", "wang-fig3", "-k", "17"], "expected 1 to 16"),
    ] {
        let output = tandem(dir.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
        // No measurement starts if a later name is wrong.
        assert!(!text(&output.stdout).contains("paper"), "{arguments:?}: {}", text(&output.stdout));
    }
}

#[test]
fn figures_named_together_are_those_named_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let rows = |names: &str, out: &str| {
        let small = ["--docs", "20000", "--limit", "1000", "--cpus", "2", "--out", out];
        let output = tandem(dir.path(), &[&["reproduce", names], &small[..]].concat());
        assert!(output.status.success(), "{names}: {}", text(&output.stderr));
        let rows = |name: &str| {
            let table = std::fs::read_to_string(dir.path().join(format!("{out}/{name}.csv")));
            let is_same = |line: &&str| !line.starts_with("# command: ");
            table.map(|table| table.lines().filter(is_same).collect::<Vec<_>>().join("\n")).unwrap_or_default()
        };
        // These tables hold counts, which don't vary.
        ["wang-fig3", "wang-fig7"].map(rows)
    };
    let [fig3, fig7] = rows("wang-fig3,wang-fig7", "together");
    assert!(fig3.contains(" queries train, ") && fig7.contains("VFB: moved, over Qtf"), "{fig3}\n{fig7}");
    let [alone, none] = rows("wang-fig3", "alone");
    assert_eq!((alone, none.as_str()), (fig3.clone(), ""));
    assert_eq!(rows("wang-fig7", "alone")[1], fig7);
    // Figures of another paper in between leave no state of the first behind.
    assert_eq!(rows("wang-fig7,wei-table6,wang-fig3", "other"), [fig3, fig7]);
}

#[test]
fn benchmarks_of_a_missing_gpu_say_why_and_exit_with_2() {
    let dir = tempfile::tempdir().unwrap();
    // These need a GPU's times alone: without them no index is made and no empty table shown.
    for name in [
        "ding-table3",
        "huang-fig5",
        "huang-fig6",
        "huang-table2",
        "huang-table3",
        "wang-fig5",
        "wang-fig8",
        "wang-fig9",
        "wei-table5",
    ] {
        let output = tandem(dir.path(), &["reproduce", name, "--docs", "2000", "--limit", "5"]);
        if !output.status.success() {
            assert_eq!(output.status.code(), Some(2), "{name}");
            let said = text(&output.stderr);
            assert!(
                said.contains("error: no GPU to use: ") && !said.contains("made a synthetic index"),
                "{name}: {said}"
            );
            assert!(!text(&output.stdout).contains("quantity"), "{name}");
        }
    }
    for part in ["gpu", "gpu-queries"] {
        // With a GPU, the error is the missing index.
        let output = tandem(dir.path(), &["bench", "nowhere", "--queries", "none.tsv", "--what", part]);
        assert_eq!(output.status.code(), Some(2), "{part}");
        let said = text(&output.stderr);
        assert!(said.contains("error: no GPU to use: ") || said.contains("nowhere"), "{part}: {said}");
    }
}

#[test]
fn tatikondas_figures_are_measured_written_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    for (name, charts) in [
        (
            "tatikonda-fig4",
            &["throughput", "latency", "latency-quiet", "threshold-throughput", "threshold-latency"][..],
        ),
        ("tatikonda-fig5", &["delay", "length-latency", "length-throughput"]),
        ("tatikonda-fig6", &["delay"]),
        ("tatikonda-fig7", &["tasks"]),
    ] {
        let small = ["--docs", "20000", "--limit", "50", "--seconds", "0.001", "--cpus", "2", "--out", "results"];
        let output = tandem(dir.path(), &[&["reproduce", name], &small[..]].concat());
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        has_declared_rows(&output);
        let shown = text(&output.stdout);
        assert!(shown.contains("paper") && shown.contains("written: results"), "{shown}");
        let file = |stem: &str| std::fs::read_to_string(dir.path().join("results").join(stem)).unwrap();
        let table = file(&format!("{name}.csv"));
        for expected in ["# tandem: ", "# command: ", "# machine: ", "# seed: 1", "quantity,unit,paper,ours"] {
            assert!(table.contains(expected), "{expected} should be in\n{table}");
        }
        for chart in charts {
            assert!(file(&format!("{name}-{chart}.svg")).contains("</svg>"), "{name} {chart}");
            assert!(
                file(&format!("{name}-{chart}.csv")).lines().any(|line| line.starts_with("ours,")),
                "{name} {chart}"
            );
        }
    }
}

#[test]
fn weis_tables_and_figures_are_measured_written_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    for (name, expected) in [
        ("wei-fig10", "\"parsers alone, M = 1\",MB/s,,"),
        ("wei-table4", "2 CPU over 1"),
        ("wei-fig11", "1 CPU: after it"),
        ("wei-table6", "ClueWeb09 without GPUs: from end to end"),
        ("wei-fig12", "one machine, CPUs: a core"),
        ("wei-regrouping", "regrouping: gain,x,15,"),
        ("wei-caches", "caches: gain"),
    ] {
        let small = ["--docs", "1000", "--cpus", "2", "--out", "results"];
        let output = tandem(dir.path(), &[&["reproduce", name], &small[..]].concat());
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        has_declared_rows(&output);
        let table = std::fs::read_to_string(dir.path().join(format!("results/{name}.csv"))).unwrap();
        assert!(table.contains(expected), "{expected} should be in\n{table}");
        assert!(table.contains("# collection: ") && table.contains("stem=porter"), "{table}");
    }
    let points = std::fs::read_to_string(dir.path().join("results/wei-fig10-parsers.csv")).unwrap();
    let is_measured = |line: &&str| line.starts_with("ours,parsers alone,");
    assert_eq!(points.lines().filter(is_measured).count(), 2, "two cores parse: {points}");
}

#[test]
fn wangs_figures_run_as_far_as_this_machine_can() {
    let dir = tempfile::tempdir().unwrap();
    for (name, charts, row) in [
        ("wang-fig3", &["visits"][..], "queries that name it"),
        ("wang-fig4", &["dq"], "Qtf: dq(S_c), S_c 90 % of M"),
        ("wang-fig6", &["hits"], "\"λ 1, cache 10 % of the index: hit rate\",%,30,"),
        ("wang-fig7", &["moved", "hits"], "VFB: moved, over Qtf"),
        ("wang-fig10", &["throughput"], "k 15, CPU-1"),
    ] {
        let small = ["--docs", "20000", "--limit", "1000", "--cpus", "2", "--out", "results"];
        let output = tandem(dir.path(), &[&["reproduce", name], &small[..]].concat());
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        has_declared_rows(&output);
        let file = |stem: &str| std::fs::read_to_string(dir.path().join("results").join(stem)).unwrap();
        let table = file(&format!("{name}.csv"));
        assert!(table.contains("# seed: 1") && table.contains(row), "{row} should be in\n{table}");
        assert!(table.contains(" queries train, "), "{table}");
        for chart in charts {
            assert!(file(&format!("{name}-{chart}.svg")).contains("</svg>"), "{name} {chart}");
            assert!(
                file(&format!("{name}-{chart}.csv")).lines().any(|line| line.starts_with("ours,")),
                "{name} {chart}"
            );
        }
    }
}

#[test]
fn page_rank_is_read_and_what_is_none_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let made = ["reproduce", "wang-fig3", "--docs", "1000", "--limit", "200", "--out", "results"];
    assert!(tandem(dir.path(), &made).status.success());
    let index = "results/synthetic-1000-1";
    let queries = format!("{index}/queries.tsv");
    let run = |ranks: &str| {
        std::fs::write(dir.path().join("pr.txt"), ranks).unwrap();
        let named =
            ["reproduce", "wang-fig3", index, "--queries", &queries, "--page-rank", "pr.txt", "--out", "results"];
        tandem(dir.path(), &named)
    };
    let output = run(&(0..1000).map(|doc| format!("{}\n", 1.0 / f64::from(1 + doc))).collect::<String>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("PageRank is read"), "{}", text(&output.stdout));
    let output = run("0.1\nNaN\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("pr.txt:2:1: PageRank is \"NaN\""), "{}", text(&output.stderr));
}

#[test]
fn hits_of_cached_lists_are_counted_below_the_table_of_times() {
    let dir = tempfile::tempdir().unwrap();
    let small = ["reproduce", "ding-table2", "--docs", "20000", "--limit", "400", "--out", "results"];
    let output = tandem(dir.path(), &small);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = |name: &str| std::fs::read_to_string(dir.path().join("results").join(name)).unwrap();
    let table = file("ding-table2.csv");
    let value = |name: &str| -> f64 {
        let row = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in\n{table}"));
        row.rsplit(',').next().and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{row}"))
    };
    assert!(value("and: CPU,ms,8.71,") > 0.0, "{table}");
    let hits = [20, 60, 100].map(|percent| value(&format!("lists cached: cache of {percent} %: requests that hit,")));
    assert!(hits.is_sorted() && hits[0] < hits[2] && hits[2] <= 100.0, "{hits:?}");
    assert!(table.contains("cache of 20 %: bytes that hit,%,90,"), "{table}");
    let moved = [20, 60, 100].map(|percent| value(&format!("lists cached: cache of {percent} %: moved a query,")));
    assert!(moved[2] <= moved[1] && moved[1] <= moved[0], "{moved:?}");
    assert!(file("ding-table2-caching-hits.csv").contains("paper,80 %,100,80"), "the paper's range is drawn");
    // The table has query times if there is a GPU, or a note that there is none.
    let timed = table.contains("copies hidden,ms");
    assert!(timed != table.contains("No GPU here"), "{table}");
}

#[test]
fn the_schedulers_figure_holds_what_the_paper_says_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let output = tandem(dir.path(), &["reproduce", "ding-fig7", "-o", "results"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.lines().filter(|line| line.contains(" sustains ")).all(|line| line.chars().count() <= 80), "{shown}");
    let table = std::fs::read_to_string(dir.path().join("results/ding-fig7.csv")).unwrap();
    let sustained = |policy: &str| -> f64 {
        let name = format!("\"size of GOV2, the paper's means: {policy} sustains\"");
        let row = table.lines().find(|line| line.starts_with(&name)).unwrap_or_else(|| panic!("{name} in\n{table}"));
        row.rsplit(',').next().and_then(|value| value.parse().ok()).expect("a rate")
    };
    // With the paper's mean costs a CPU alone sustains less than 100 a second, and both together more than 300 and more
    // than the sum of the two.
    assert!((50.0..100.0).contains(&sustained("cpu-only")), "{table}");
    assert!(sustained("stealing-published") > 300.0, "{table}");
    assert!(sustained("stealing-published") > sustained("cpu-only") + sustained("gpu-only"), "{table}");
}

/// Rows of `name` on a small index: the folder's `name.csv`, or the output if it failed.
fn huang(dir: &Path, name: &str) -> Result<String, Output> {
    let small = ["--docs", "20000", "--limit", "30", "--seconds", "0.001", "--out", "results"];
    let output = tandem(dir, &[&["reproduce", name], &small[..]].concat());
    if !output.status.success() {
        return Err(output);
    }
    has_declared_rows(&output);
    Ok(std::fs::read_to_string(dir.join("results").join(format!("{name}.csv"))).unwrap())
}

#[test]
fn huangs_tables_tell_the_cpus_part_without_a_gpu() {
    let dir = tempfile::tempdir().unwrap();
    // Tables with a CPU part are complete on every machine.
    for (name, expected) in [
        ("huang-fig3", "BMW, "),
        ("huang-fig4", "below 50000 blocks,%,81,"),
        ("huang-table1", "\"BMW, top 10: CPU, one thread\",ms,8.96,"),
        ("huang-fig7", "\"OR: CPU, one thread\",ms,66.08,"),
    ] {
        let table = huang(dir.path(), name).unwrap_or_else(|output| panic!("{name}: {}", text(&output.stderr)));
        let row = table.lines().find(|line| line.contains(expected)).unwrap_or_else(|| panic!("{expected}:\n{table}"));
        assert!(!row.ends_with(','), "{name}: {row}");
    }
    // The others need a GPU: with one they are tables, without one errors.
    for name in ["huang-fig5", "huang-fig6", "huang-table2", "huang-table3"] {
        match huang(dir.path(), name) {
            Ok(table) => assert!(table.contains("# gpu: "), "{name}:\n{table}"),
            Err(output) => {
                assert_eq!(output.status.code(), Some(2), "{name}");
                assert!(text(&output.stderr).contains("no GPU to use: "), "{name}: {}", text(&output.stderr));
            }
        }
    }
}
