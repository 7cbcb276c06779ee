//! Cost models are fitted, stored and read back; damaged files are refused with their place.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use tandem::base::ids::QueryId;
use tandem::base::machine::{Class, PerClass};
use tandem::cost::{
    CostModel, Inputs, Measured, ModelFile, ModelKind, TrainOptions, Workload, WorkloadRow, cross_validated_estimates,
    shipped, train,
};
use tandem::files::Provenance;
use tandem::traffic::{Features, Mode};

/// Costs by a formula: CPUs pay for postings, GPUs for a launch and a little for blocks; noise of ±5 % is explained by no
/// feature.
fn workload(rows: u32) -> Workload {
    let mut next = 7_u64;
    let mut random = move |below: u64| {
        next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (next >> 33) % below
    };
    let rows = (0..rows)
        .map(|i| {
            let mut lengths: Vec<u64> = (0..1 + random(4)).map(|_| 1 << random(18)).collect();
            lengths.iter_mut().for_each(|n| *n += random(*n));
            lengths.sort_unstable();
            let features = Features::from_lengths(&lengths, 300_000);
            let noise = 0.95 + random(1000) as f64 / 10_000.0;
            let time = |us: f64| Some(Measured { median_us: us * noise, spread_us: 0.0, device_us: None });
            WorkloadRow {
                query_id: QueryId(i),
                log_id: i,
                mode: if i % 2 == 0 { Mode::And } else { Mode::Or },
                features,
                index_features: None,
                predicted_us: None,
                measured: PerClass::two(
                    time(5.0 + features.postings as f64 / 100.0),
                    time(80.0 + features.blocks as f64 / 20.0),
                ),
                results: 10,
            }
        })
        .collect();
    Workload { provenance: Provenance::new().with("machine", "a test"), rows, ..Workload::default() }
}

fn trained() -> ModelFile {
    train(&workload(1200), &TrainOptions::default()).unwrap()
}

#[test]
fn a_model_estimates_unseen_queries_far_better_than_their_mean() {
    let models = trained();
    assert_eq!(models.models().len(), 4);
    for model in models.models() {
        let evaluation = model.evaluation.as_ref().unwrap();
        assert!(evaluation.mean_relative_error < 0.12, "{evaluation:?}");
        assert!(evaluation.mean_relative_error < evaluation.baseline_mean_relative_error / 3.0, "{evaluation:?}");
        assert!(evaluation.mean_relative_error < evaluation.baseline_geometric_relative_error / 2.0, "{evaluation:?}");
        // The noise swaps neighbours, more so on the GPU, where most queries cost about a launch.
        assert!(evaluation.rank_correlation > 0.8, "{evaluation:?}");
    }
    let features = Features::from_lengths(&[50_000], 300_000);
    let us = models.predict_us(Class::CPU, Mode::Or, &Inputs::of(&features, None)).unwrap();
    assert!((400.0..620.0).contains(&us), "{us}");
    assert_eq!(models.predict_us(Class::CPU, Mode::AndOr, &Inputs::of(&features, None)), None);
}

#[test]
fn equal_workloads_and_options_give_equal_files() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.json"), dir.path().join("b.json"));
    trained().write(&a).unwrap();
    trained().write(&b).unwrap();
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
}

#[test]
fn a_stored_model_predicts_what_it_did() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.json");
    let models = trained();
    models.write(&path).unwrap();
    assert_eq!(ModelFile::read(&path).unwrap(), models);
}

#[test]
fn every_kind_of_model_learns_and_reads_back_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let workload = workload(600);
    for model in ModelKind::ALL {
        let models = train(&workload, &TrainOptions { model, folds: 3, ..TrainOptions::default() }).unwrap();
        let path = dir.path().join("m.json");
        models.write(&path).unwrap();
        assert_eq!(ModelFile::read(&path).unwrap(), models, "{model}");
        for found in models.models() {
            assert_eq!(found.model(), model);
            let evaluation = found.evaluation.as_ref().unwrap();
            assert!(evaluation.mean_relative_error < 0.35, "{model}, {}: {evaluation:?}", found.kind);
        }
    }
}

#[test]
fn shipped_trees_read_lengths_and_are_what_train_fits() {
    // Two folds are the fewest; a file's models are fitted to all queries.
    let options = TrainOptions { model: ModelKind::Lengths, folds: 2, ..TrainOptions::default() };
    for path in shipped::workload_names() {
        let name = path.strip_prefix("traces/").unwrap().split('.').next().unwrap();
        let workload = shipped::workload(path).unwrap();
        let (trees, fitted) =
            (shipped::model(&format!("{name}-lengths")).unwrap(), train(&workload, &options).unwrap());
        assert_eq!(trees.models().len(), 6);
        for model in trees.models() {
            assert_eq!(model.model(), ModelKind::Lengths);
            assert_eq!(model.features(), ["terms", "shortest", "second_shortest", "postings"], "{name}");
        }
        for row in &workload.rows {
            let lengths_only = Inputs::of(&row.features, None);
            for kind in [Class::CPU, Class::GPU] {
                let us = |models: &ModelFile| models.predict_us(kind, row.mode, &lengths_only).unwrap();
                assert!((us(&trees) / us(&fitted) - 1.0).abs() < 1e-9, "{name}: query {}", row.query_id);
            }
        }
    }
}

#[test]
fn estimates_for_a_workload_are_made_without_the_query_itself() {
    let workload = workload(400);
    let options = TrainOptions { model: ModelKind::Cart, min_leaf: 1, max_depth: 40, ..TrainOptions::default() };
    let estimates = cross_validated_estimates(&workload, &options).unwrap();
    assert_eq!(estimates.len(), workload.rows.len());
    // A tree with a leaf for each sample reproduces the training queries; these are other queries.
    let seen = train(&workload, &options).unwrap();
    let repeats = |estimate: &dyn Fn(usize) -> f64| {
        let exact = |i: &usize| {
            let truth = workload.rows[*i].measured[Class::CPU].unwrap().median_us;
            (estimate(*i) - truth).abs() < truth * 1e-3
        };
        (0..workload.rows.len()).filter(exact).count()
    };
    let by_seen = repeats(&|i| {
        let row = &workload.rows[i];
        seen.predict_us(Class::CPU, row.mode, &row.inputs()).unwrap()
    });
    let held_back = repeats(&|i| estimates[i][Class::CPU].unwrap());
    assert!(by_seen > 300 && held_back < 40, "{by_seen} {held_back}");
}

/// The stored form of a small model, which tests then damage.
fn stored() -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.json");
    let options = TrainOptions { model: ModelKind::Cart, max_depth: 2, ..TrainOptions::default() };
    train(&workload(200), &options).unwrap().write(&path).unwrap();
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn damaged_models_are_refused_with_what_is_wrong() {
    let good = stored();
    let parse = |text: &str| ModelFile::parse("models/gpu.json", text.as_bytes());
    assert!(parse(&good).is_ok());
    let threshold = good.find("\"threshold\":").unwrap();
    let value_end = threshold + good[threshold..].find(',').unwrap();
    let with_threshold = |value: &str| format!("{}\"threshold\":{value}{}", &good[..threshold], &good[value_end..]);
    for (text, expected) in [
        (
            good.replace("\"version\":2", "\"version\":1"),
            "models/gpu.json: model format 1, this build reads 2 (retrain: `tandem train`)",
        ),
        ("{}".to_owned(), "models/gpu.json: not a model file: no \"format\": \"tandem-model\" with a version"),
        (good.replacen("\"postings\"", "\"moon\"", 1), "models[0].features: unknown feature `moon`"),
        (good.replacen("\"feature\":\"", "\"feature\":\"x", 1), "which is none of the model's features"),
        (with_threshold("null"), "models[0].tree: neither a question"),
        (with_threshold("1e999"), "number out of range"),
        (with_threshold("NaN"), "expected value"),
        (good.replacen("ln(us)", "ms", 1), "models[0].target is \"ms\", expected \"ln(us)\""),
        (good.replace("\"gpu\"", "\"cpu\""), "models[2]: a second model for cpu, and"),
        (good.replacen("\"samples\"", "\"sample\"", 1), "unknown field `sample`"),
        (good[..good.rfind('}').unwrap()].to_owned(), "EOF while parsing"),
        (format!("{{\"format\":\"tandem-model\",\"version\":2,\"x\":{}", "[".repeat(100_000)), "models/gpu.json:1:"),
    ] {
        let message = parse(&text).expect_err(expected).to_string();
        assert!(message.contains(expected), "{message}\nexpected: {expected}");
        assert!(message.starts_with("models/gpu.json:"), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reading_a_damaged_model_never_panics(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = stored_once().as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if cut {
            bytes.truncate(at + 1);
        }
        if let Ok(models) = ModelFile::parse("m.json", &bytes) {
            for model in models.models() {
                let inputs = Inputs::of(&Features::from_lengths(&[3, 9], 10), None);
                let us = models.predict_us(model.kind, model.mode, &inputs).unwrap();
                prop_assert!(us.is_finite() && us > 0.0);
            }
        }
    }
}

fn stored_once() -> &'static str {
    static STORED: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    STORED.get_or_init(stored)
}

fn tandem(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tandem")).current_dir(dir).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_command_prints_errors_by_kind_and_mode_and_stores_models() {
    let dir = tempfile::tempdir().unwrap();
    workload(300).write(&dir.path().join("x.workload.csv")).unwrap();
    let (code, stdout, stderr) = tandem(dir.path(), &["train", "x.workload.csv", "-o", "deep/m.json"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let rows: Vec<Vec<&str>> = stdout.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert!(rows.contains(&vec!["cpu", "and", "150"]) && rows.contains(&vec!["gpu", "or", "150"]), "{stdout}");
    let models = ModelFile::read(&dir.path().join("deep/m.json")).unwrap();
    assert_eq!(models.provenance["workload"], "x.workload.csv");
    assert_eq!(models.provenance["workload_machine"], "a test");
    assert_eq!(models.provenance["command"], "tandem train x.workload.csv -o deep/m.json");
}

#[test]
fn the_command_refuses_bad_input_with_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.workload.csv");
    workload(8).write(&path).unwrap();
    let train = |more: &[&str]| {
        let (code, _, stderr) = tandem(dir.path(), &[&["train", "x.workload.csv"], more].concat());
        assert_eq!(code, Some(2), "{stderr}");
        assert!(!dir.path().join("out").exists());
        stderr
    };
    assert_eq!(
        train(&[]),
        "error: x.workload.csv: cpu, and: 4 distinct of 4 measured queries, too few for 10 folds (lower --folds, or measure more queries)\n"
    );
    assert_eq!(train(&["--folds", "1"]), "error: --folds is 1, expected 2 or more\n");
    assert_eq!(train(&["--max-depth", "0"]), "error: --max-depth is 0, expected 1 to 40\n");
    assert_eq!(train(&["nowhere.csv"]), "error: nowhere.csv: cannot open: No such file or directory (os error 2)\n");

    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen(",10,0,", ",ten,0,", 1)).unwrap();
    let message = train(&[]);
    assert!(message.starts_with("error: x.workload.csv:4:"), "{message}");
    assert!(message.ends_with(": `results` is \"ten\", expected a whole number from 0\n"), "{message}");
}

type Row = BTreeMap<String, String>;

fn table(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    lines.map(|row| names.iter().cloned().zip(row).collect()).collect()
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap()
}

#[test]
fn the_report_tells_how_models_err() {
    let dir = tempfile::tempdir().unwrap();
    workload(300).write(&dir.path().join("x.workload.csv")).unwrap();
    let arguments = "train x.workload.csv -o m.json --folds 3 --report errors";
    let (code, _, stderr) = tandem(dir.path(), &arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(code, Some(0), "{stderr}");
    let of = |name: &str| table(&dir.path().join("errors").join(name));

    // There is a row for each kind of model, two processors and two modes, including the model file's own figures.
    let errors = of("model_errors.csv");
    assert_eq!(errors.len(), ModelKind::ALL.len() * 4);
    let models = ModelFile::read(&dir.path().join("m.json")).unwrap();
    for model in models.models() {
        let is_it = |row: &&Row| {
            (row["model"].as_str(), row["kind"].as_str(), row["mode"].as_str())
                == ("boosting", model.kind.name(), model.mode.name())
        };
        let row = errors.iter().find(is_it).unwrap();
        assert_eq!(number(row, "mean_relative_error"), model.evaluation.as_ref().unwrap().mean_relative_error);
    }
    assert_eq!(of("model_deciles.csv").len(), ModelKind::ALL.len() * 4 * 10);
    let of_cpu = |rows: &[Row]| -> Vec<_> {
        rows.iter().filter(|row| row["kind"] == "cpu" && row["mode"] == "or").cloned().collect()
    };
    // Features that determine the costs have the greatest importance.
    let worth = of_cpu(&of("model_importance.csv"));
    assert!(["postings", "blocks", "longest"].contains(&worth[0]["feature"].as_str()), "{worth:?}");
    assert!(number(&worth[0], "error_added") > 0.1, "{worth:?}");
    let learnt = of_cpu(&of("model_learning.csv"));
    let error_of = |row| number(row, "mean_relative_error");
    assert!(learnt.len() == 4 && error_of(&learnt[3]) < error_of(&learnt[0]), "{learnt:?}");
    assert_eq!(of("model_scatter.csv").len(), 600);

    let (code, _, stderr) = tandem(dir.path(), &["report", "errors", "-o", "page.html"]);
    assert_eq!(code, Some(0), "{stderr}");
}
