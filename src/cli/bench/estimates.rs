//! What an estimate costs a scheduler.

use super::{Arguments, Measurement, input};
use crate::cli::Failure;
use crate::cost::shipped;
use crate::measure::time_estimates;
use crate::query::Mode;

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let (index, queries) = input(arguments)?;
    let name = shipped::model_names().next().unwrap_or_default();
    let models = shipped::model(name)?;
    let k = arguments.k.first().copied().unwrap_or(10);
    let times = time_estimates(&index, &queries, &models, Mode::Or, k, arguments.rounds as usize);
    let row = |name: &str, value| Measurement { part: "estimates", name: name.to_owned(), metric: "mean_us", value };
    let note = format!(
        "estimates: {} queries, {name}; the sketch of the index takes {:.1} MB and {:.2} s once\n",
        times.predicted,
        times.sketch_bytes as f64 / 1e6,
        times.sketch_s,
    );
    let both = times.features_us + times.predictions_us;
    let rows = vec![
        row("features of the index", times.features_us),
        row("predictions for CPU and GPU", times.predictions_us),
        row("both", both),
    ];
    Ok((note, rows))
}
