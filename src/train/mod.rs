//! `tandem train`: fits cost models to measured workloads and reports their error.

mod report;

use std::path::PathBuf;

use serde_json::json;
use tandem_model::cost::{Model, ModelFile, ModelKind, TrainError, TrainOptions, Workload, train};
use tandem_model::files::{Provenance, check_writable};
use tandem_model::study::named_workload;

use crate::failure::Failure;
use crate::options::names::choice;
use crate::origin::check_same_machine;
use crate::output::{is_verbose, result};
use tandem_report::table::Table;

/// Fit cost models to a workload and report their error.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem train mine.workload.csv -o mine.json\n  tandem train mine.workload.csv --report errors"
)]
pub(super) struct Arguments {
    /// Workloads that `profile` measured on one machine, read as one: files, or names of shipped workloads [default: the
    /// shipped Wikipedia slice]
    workloads: Vec<String>,
    /// Model file to write
    #[arg(short, long, value_name = "FILE", default_value = "out/model.json")]
    out: PathBuf,
    /// Kind of model
    #[arg(long, value_parser = choice::<ModelKind>(), default_value = ModelKind::default().name())]
    model: ModelKind,
    /// Folder for a study of the errors: by kind of model and by tenth of the queries, the worth of each feature, and the gain
    /// of more queries
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Number of folds of the cross-validation
    #[arg(long, default_value_t = TrainOptions::default().folds)]
    folds: usize,
    /// Largest depth of a tree, for the models cart and lengths
    #[arg(long, default_value_t = TrainOptions::default().max_depth)]
    max_depth: u16,
    /// Least number of queries in a leaf, for the models cart and lengths
    #[arg(long, default_value_t = TrainOptions::default().min_leaf)]
    min_leaf: usize,
    /// Seed of the folds and of random fits
    #[arg(long, default_value_t = TrainOptions::default().seed)]
    seed: u64,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_writable(&arguments.out)?;
    if let Some(dir) = &arguments.report {
        check_writable(&dir.join(report::ERRORS))?;
    }
    let (names, workload) = read(&arguments.workloads)?;
    let options = TrainOptions {
        model: arguments.model,
        folds: arguments.folds,
        max_depth: arguments.max_depth,
        min_leaf: arguments.min_leaf,
        seed: arguments.seed,
    };
    let mut models = train(&workload, &options).map_err(|e| {
        Failure::input(match e {
            TrainError::Option { .. } => e.to_string(),
            TrainError::TooFew { distinct: 2.., .. } => {
                format!("{names}: {e} (lower --folds, or measure more queries)")
            }
            TrainError::TooFew { .. } => format!("{names}: {e} (measure more queries)"),
            _ => format!("{names}: {e}"),
        })
    })?;
    let here = Provenance::new().with_command_and_machine();
    for key in ["tandem", "command", "commit", "date", "machine"] {
        if let Some(value) = here.get(key) {
            models.provenance.insert(key.to_owned(), value.to_owned());
        }
    }
    models.provenance.insert("workload".to_owned(), names.clone());
    print_table(&names, &models);
    give(&models);
    models.write(&arguments.out)?;
    outln!("models: {}", arguments.out.display());
    arguments.report.as_deref().map_or(Ok(()), |dir| report::write(dir, &names, &workload, &options))
}

/// Reads the workloads as one, with their names. Rows are identified by position, so that ids of different files may be
/// equal.
fn read(names: &[String]) -> Result<(String, Workload), Failure> {
    let Some((first, others)) = names.split_first() else { return Ok(named_workload(None)?) };
    let mut all = vec![named_workload(Some(first))?];
    for name in others {
        all.push(named_workload(Some(name))?);
    }
    check_same_machine(&all)?;
    let mut workloads = all.into_iter().map(|(_, workload)| workload);
    let mut whole = workloads.next().unwrap_or_default();
    whole.rows.extend(workloads.flat_map(|workload| workload.rows));
    Ok((names.join(", "), whole))
}

/// Adds the errors of all models to the JSON document.
fn give(models: &ModelFile) {
    let model = |model: &Model| {
        let evaluation = model.evaluation.as_ref();
        let (size, of) = model.size();
        json!({
            "kind": model.kind,
            "mode": model.mode.name(),
            "model": model.model().name(),
            "size": size,
            "of": of,
            "evaluation": evaluation,
        })
    };
    result("models", models.models().iter().map(model).collect::<Vec<_>>());
}

fn print_table(names: &str, models: &ModelFile) {
    outln!("{names}: relative error on held-out queries, in percent\n");
    let mut table =
        Table::new(["kind", "mode", "samples", "mean", "median", "p95", "bias", "constant", "rank", "model"]);
    for model in models.models() {
        let Some(evaluation) = &model.evaluation else { continue };
        let biases = || evaluation.decile_bias.iter().map(|bias| 100.0 * (bias - 1.0));
        let (low, high) = (biases().fold(f64::INFINITY, f64::min), biases().fold(f64::NEG_INFINITY, f64::max));
        let (size, of) = model.size();
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        let if_all = |cell: String| if is_verbose() { cell } else { String::new() };
        table.row([
            model.kind.name().to_owned(),
            model.mode.name().to_owned(),
            evaluation.samples.to_string(),
            percent(evaluation.mean_relative_error),
            percent(evaluation.median),
            percent(evaluation.p95),
            if_all(format!("{low:+.1} to {high:+.1}")),
            percent(evaluation.baseline_mean_relative_error),
            if_all(format!("{:.2}", evaluation.rank_correlation)),
            if_all(format!("{size} {of}")),
        ]);
    }
    outln!("{}constant: the error if every query is estimated by the mean", table.without_empty_columns());
    if !is_verbose() {
        return;
    }
    outln!(
        "bias: estimated over true time, less 1, of the lowest and highest tenth of the queries; rank: Spearman's correlation"
    );
    for model in models.models() {
        if let Some(words) = model.words() {
            outln!("\n{}, {}:\n{words}", model.kind, model.mode);
        }
    }
}
