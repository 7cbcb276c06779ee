//! `--estimates`: what a policy is told of each query's cost.

use std::path::Path;

use super::Failure;
use crate::cost::{CostModel, Measured, ModelFile, TrainOptions, Workload, cross_validated_estimates, shipped};
use crate::files::InputError;
use crate::machine::{Class, Machine, PerClass};
use crate::sim::SimQuery;

/// Trees that no query in the tree's own fold has been seen by: see [`cross_validated_estimates`].
const FOLDS: usize = 5;

/// Gives each row of `workload` its true times and its estimates on `machine`.
///
/// `choice` is `model` (each query estimated by a tree fitted to the others: five-fold cross-validation, so that the
/// error is that of queries never seen), `oracle` (the measured times), the name of a shipped model or a model file.
///
/// # Errors
/// If a query lacks a measurement or an estimate on a kind that the machine has, or the model can't be had.
pub(super) fn sim_queries(workload: &Workload, choice: &str, machine: &Machine) -> Result<Vec<SimQuery>, Failure> {
    let kinds: Vec<Class> = Class::ALL.into_iter().filter(|&kind| machine.count(kind) > 0).collect();
    for row in &workload.rows {
        if let Some(kind) = kinds.iter().find(|&&kind| row.measured[kind].is_none()) {
            return Err(Failure::input(format!(
                "query {} ({}) has no measured {kind} time, and the machine has a {kind} (profile it there, or leave \
                 the kind out with --{kind}s 0)",
                row.query_id, row.mode
            )));
        }
    }
    let estimates = estimates_us(workload, choice)?;
    let on = |mode, alone_us: PerClass<Option<f64>>| {
        let known = PerClass::from_fn(|class| alone_us[class].filter(|_| kinds.contains(&class)));
        workload.batches.costs(mode, known)
    };
    let rows = workload.rows.iter().zip(estimates);
    rows.map(|(row, estimate)| {
        if let Some(kind) = kinds.iter().find(|&&kind| estimate[kind].is_none()) {
            let why =
                format!("--estimates {choice}: knows nothing of {kind} and mode {} (query {})", row.mode, row.query_id);
            return Err(Failure::input(why));
        }
        Ok(SimQuery {
            id: row.query_id,
            service: on(row.mode, measured_us(&row.measured)),
            estimate: on(row.mode, estimate),
        })
    })
    .collect()
}

/// Whether `choice` is one that there is: for commands that measure for long before they need it.
pub(super) fn check(choice: &str) -> Result<(), Failure> {
    if !matches!(choice, "model" | "oracle") {
        models(choice)?;
    }
    Ok(())
}

/// The model file of this name, else the shipped one.
fn models(name: &str) -> Result<ModelFile, InputError> {
    let path = Path::new(name);
    if path.exists() {
        return ModelFile::read(path);
    }
    // A name with an extension is surely meant as a file: its absence is then what to report.
    shipped::model(name).or_else(|e| if path.extension().is_some() { ModelFile::read(path) } else { Err(e) })
}

fn measured_us(measured: &PerClass<Option<Measured>>) -> PerClass<Option<f64>> {
    PerClass::from_fn(|kind| measured[kind].map(|time| time.median_us))
}

/// By row: the estimates that `choice` gives.
fn estimates_us(workload: &Workload, choice: &str) -> Result<Vec<PerClass<Option<f64>>>, Failure> {
    match choice {
        "oracle" => Ok(workload.rows.iter().map(|row| measured_us(&row.measured)).collect()),
        "model" => {
            let options = TrainOptions { folds: FOLDS, ..TrainOptions::default() };
            cross_validated_estimates(workload, &options)
                .map_err(|e| Failure::input(format!("--estimates model: {e} (or take --estimates oracle)")))
        }
        name => {
            let models = models(name)?;
            let predict = |kind, row: &crate::cost::WorkloadRow| models.predict_us(kind, row.mode, &row.features);
            Ok(workload.rows.iter().map(|row| PerClass::from_fn(|kind| predict(kind, row))).collect())
        }
    }
}
