//! Time of a cost estimate: reading the features of a query from the index, and the predictions of two models.

use std::hint::black_box;
use std::time::Instant;

use super::{Arguments, Measurement, input};
use crate::Failure;
use tandem_core::base::machine::Class;
use tandem_core::cost::{CostModel, Inputs, ModelKind, TrainOptions, shipped, train};
use tandem_core::query::{Features, IndexFeatures, Mode, Sketch};

/// Estimates all queries in several rounds. The lowest mean over the rounds counts for each step.
pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let (index, queries) = input(arguments)?;
    let name = shipped::model_names().next().unwrap_or_default();
    let boosted = shipped::model(name)?;
    // A single tree for comparison, trained on the same queries.
    let options = TrainOptions { model: ModelKind::Cart, folds: 2, ..TrainOptions::default() };
    let (workload_name, workload) = shipped::default_workload()?;
    let tree = train(&workload, &options).map_err(|e| Failure::input(format!("{workload_name}: {e}")))?;
    let k = arguments.k.first().copied().unwrap_or(10);

    let began = Instant::now();
    let sketch = Sketch::of(&index);
    let sketch_s = began.elapsed().as_secs_f64();
    let (mut features_us, mut predictions_us) = (f64::INFINITY, [f64::INFINITY; 2]);
    // Queries for which both models predict both processors' times.
    let mut predicted = queries.len();
    let mut inputs: Vec<Inputs> = Vec::with_capacity(queries.len());
    let mean_us = |began: Instant| began.elapsed().as_secs_f64() * 1e6 / queries.len() as f64;
    for _ in 0..arguments.rounds {
        inputs.clear();
        let began = Instant::now();
        for query in &queries {
            let of_index = IndexFeatures::of(query, &index, &sketch, k);
            inputs.push(Inputs::of(&Features::of(query, &index), Some(&of_index)));
        }
        features_us = mean_us(began).min(features_us);
        for (model, least_us) in [&boosted, &tree].into_iter().zip(&mut predictions_us) {
            let began = Instant::now();
            let mut by_model = 0;
            for inputs in &inputs {
                let both = [Class::CPU, Class::GPU].map(|class| black_box(model.predict_us(class, Mode::Or, inputs)));
                by_model += usize::from(both.iter().all(Option::is_some));
            }
            *least_us = mean_us(began).min(*least_us);
            predicted = predicted.min(by_model);
        }
    }
    let row = |name: &str, value| Measurement { part: "estimates", name: name.to_owned(), metric: "mean_us", value };
    let note = format!(
        "estimates: {predicted} queries, {name}; the sketch of the index takes {:.1} MB and {sketch_s:.2} s once\n",
        sketch.bytes() as f64 / 1e6,
    );
    let rows = vec![
        row("features of the index", features_us),
        row("predictions for CPU and GPU, boosted trees", predictions_us[0]),
        row("predictions for CPU and GPU, one tree each", predictions_us[1]),
        row("features and predictions, boosted trees", features_us + predictions_us[0]),
    ];
    Ok((note, rows))
}
