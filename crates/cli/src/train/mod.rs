//! `tandem train`: fits cost models to measured workloads and says how wrong they are.

mod regret;
mod report;

use std::path::PathBuf;

use serde_json::json;

use crate::Failure;
use crate::options::names::choice;
use crate::options::{DeadlineArgument, MachineProfileArgument};
use crate::origin::check_same_machine;
use crate::output::result;
use tandem_core::cost::{Model, ModelFile, ModelKind, TrainError, TrainOptions, Workload, train};
use tandem_core::files::{Provenance, check_writable};
use tandem_core::lab::named_workload;
use tandem_core::query::Mode;

/// Fit cost models to a workload and report their error.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Workloads that `profile` wrote on one machine, read as one: files, or names of those that ship with Tandem; left
    /// out, the first of those
    workloads: Vec<String>,
    /// Where the models go
    #[arg(short, long, value_name = "FILE", default_value = "out/model.json")]
    out: PathBuf,
    /// The kind of model
    #[arg(long, value_parser = choice::<ModelKind>(), default_value = ModelKind::default().name())]
    model: ModelKind,
    /// Also writes how models err to this folder: every kind side by side, by tenth and level, what each feature is
    /// worth, what more queries would gain
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Of the report: CPU workers of the machines on which policies' regret is simulated; none with 0
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 16])]
    regret_cpus: Vec<usize>,
    /// Of the report: GPUs of those machines, each number with each of CPUs [default: 1, or 0 where none was measured]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    regret_gpus: Vec<usize>,
    /// Of the report: which of the workload's rows regret is simulated with
    #[arg(long, value_parser = choice::<Mode>(), default_value = Mode::Or.name())]
    mode: Mode,
    #[command(flatten)]
    deadline: DeadlineArgument,
    #[command(flatten)]
    machine: MachineProfileArgument,
    /// Parts of the cross-validation
    #[arg(long, default_value_t = TrainOptions::default().folds)]
    folds: usize,
    /// Of --model cart and lengths: most questions before an answer
    #[arg(long, default_value_t = TrainOptions::default().max_depth)]
    max_depth: u16,
    /// Of --model cart and lengths: fewest queries behind an answer
    #[arg(long, default_value_t = TrainOptions::default().min_leaf)]
    min_leaf: usize,
    /// Draws the folds, and what a fit draws
    #[arg(long, default_value_t = TrainOptions::default().seed)]
    seed: u64,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_writable(&arguments.out)?;
    arguments.deadline.checked()?;
    if let Some(dir) = &arguments.report {
        check_writable(&dir.join(report::ERRORS))?;
    }
    let (names, workload) = read(&arguments.workloads)?;
    if arguments.regret_gpus.iter().any(|&gpus| gpus > 0) && !regret::has_gpu_times(&workload) {
        return Err(Failure::input(format!("--regret-gpus: no query of {names} was measured on a GPU")));
    }
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
    match &arguments.report {
        Some(dir) => {
            report::write(dir, &names, &workload, &options)?;
            regret::write(dir, &names, &workload.only(arguments.mode), arguments)
        }
        None => Ok(()),
    }
}

/// Reads the workloads as one, and their names. Rows are told apart by position, so ids of
/// different files may be equal.
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

/// The errors of all models, for programs.
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
    outln!("{names}: relative error on queries held back, in percent\n");
    outln!("kind  mode    samples    mean  median     p95  bias of tenths     always the mean  rank  model");
    for model in models.models() {
        let Some(evaluation) = &model.evaluation else { continue };
        let biases = || evaluation.decile_bias.iter().map(|bias| 100.0 * (bias - 1.0));
        let (low, high) = (biases().fold(f64::INFINITY, f64::min), biases().fold(f64::NEG_INFINITY, f64::max));
        let (size, of) = model.size();
        outln!(
            "{:<4}  {:<6}  {:>7}  {:>6.1}  {:>6.1}  {:>6.1}  {:>+6.1} to {:>+5.1}  {:>15.1}  {:.2}  {size} {of}",
            model.kind.name(),
            model.mode.name(),
            evaluation.samples,
            evaluation.mean_relative_error * 100.0,
            evaluation.median * 100.0,
            evaluation.p95 * 100.0,
            low,
            high,
            evaluation.baseline_mean_relative_error * 100.0,
            evaluation.rank_correlation,
        );
    }
    outln!(
        "\nbias of tenths: estimated over true time of each tenth of the queries, from the lowest estimates to the highest, less 1;\n\
         always the mean: the error of estimating every query by the mean; rank: Spearman's correlation"
    );
    for model in models.models() {
        if let Some(words) = model.words() {
            outln!("\n{}, {}:\n{words}", model.kind, model.mode);
        }
    }
    outln!();
}
