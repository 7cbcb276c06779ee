//! What an estimate costs a scheduler.

use super::{Arguments, Measurement, input};
use crate::cli::Failure;
use crate::cost::{ModelKind, TrainOptions, shipped, train};
use crate::measure::time_estimates;
use crate::query::Mode;

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let (index, queries) = input(arguments)?;
    let name = shipped::model_names().next().unwrap_or_default();
    let models = shipped::model(name)?;
    // The tree that the default had been before, of the same queries.
    let options = TrainOptions { model: ModelKind::Cart, folds: 2, ..TrainOptions::default() };
    let (workload_name, workload) = shipped::default_workload()?;
    let tree = train(&workload, &options).map_err(|e| Failure::input(format!("{workload_name}: {e}")))?;
    let k = arguments.k.first().copied().unwrap_or(10);
    let times = time_estimates(&index, &queries, &[&models, &tree], Mode::Or, k, arguments.rounds as usize);
    let row = |name: &str, value| Measurement { part: "estimates", name: name.to_owned(), metric: "mean_us", value };
    let note = format!(
        "estimates: {} queries, {name}; the sketch of the index takes {:.1} MB and {:.2} s once\n",
        times.predicted,
        times.sketch_bytes as f64 / 1e6,
        times.sketch_s,
    );
    let predictions = |n: usize| times.predictions_us.get(n).copied().unwrap_or(f64::NAN);
    let rows = vec![
        row("features of the index", times.features_us),
        row("predictions for CPU and GPU, boosted trees", predictions(0)),
        row("predictions for CPU and GPU, one tree each", predictions(1)),
        row("features and predictions, boosted trees", times.features_us + predictions(0)),
    ];
    Ok((note, rows))
}
