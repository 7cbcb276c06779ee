//! What an estimate costs: the features of a query from the index, and what models make of them.

use std::hint::black_box;
use std::time::Instant;

use crate::cost::{CostModel, Inputs, ModelFile};
use crate::index::Index;
use crate::machine::Class;
use crate::query::{Features, IndexFeatures, Mode, Query, Sketch};

/// Mean times of a query, in microseconds, and what the sketch behind its features takes.
#[derive(Clone, Debug, PartialEq)]
pub struct EstimateTimes {
    /// Its features.
    pub features_us: f64,
    /// By model file, its predictions for a CPU and a GPU, of the features.
    pub predictions_us: Vec<f64>,
    /// Queries for which all of them gave both.
    pub predicted: usize,
    /// Making the sketch, in seconds.
    pub sketch_s: f64,
    /// The sketch in memory.
    pub sketch_bytes: usize,
}

/// Estimates all `queries` in `mode` by each of `models`, `rounds` times in turn; the least mean over the rounds counts, of each
/// step.
#[must_use]
pub fn time_estimates(
    index: &Index,
    queries: &[Query],
    models: &[&ModelFile],
    mode: Mode,
    k: usize,
    rounds: usize,
) -> EstimateTimes {
    let began = Instant::now();
    let sketch = Sketch::of(index);
    let sketch_s = began.elapsed().as_secs_f64();
    let mut features_us = f64::INFINITY;
    let mut predictions_us = vec![f64::INFINITY; models.len()];
    let mut predicted = queries.len();
    let mut inputs: Vec<Inputs> = Vec::with_capacity(queries.len());
    let mean_us = |began: Instant| began.elapsed().as_secs_f64() * 1e6 / queries.len().max(1) as f64;
    for _ in 0..rounds {
        inputs.clear();
        let began = Instant::now();
        for query in queries {
            let of_index = IndexFeatures::of(query, index, &sketch, k);
            inputs.push(Inputs::of(&Features::of(query, index), Some(&of_index)));
        }
        features_us = mean_us(began).min(features_us);
        for (model, least_us) in models.iter().zip(&mut predictions_us) {
            let began = Instant::now();
            let mut by_model = 0;
            for inputs in &inputs {
                let both = [Class::CPU, Class::GPU].map(|class| black_box(model.predict_us(class, mode, inputs)));
                by_model += usize::from(both.iter().all(Option::is_some));
            }
            *least_us = mean_us(began).min(*least_us);
            predicted = predicted.min(by_model);
        }
    }
    EstimateTimes { features_us, predictions_us, predicted, sketch_s, sketch_bytes: sketch.bytes() }
}
