//! Profiling: what every query costs on each kind of processor, and whether the processors agree.
//!
//! ```text
//! for each processor, alone:   check and warm up: all queries once        | hits compared between processors
//!                              then `repeats` times: all queries, shuffled | |--- search ---| timed by the host's clock
//! for each that batches:       batches of 1 to 4096 drawn from them        | fitted: `batches`
//! ```
//!
//! The time is the one that a scheduler experiences: from the call of [`Executor::search`] to hits in host memory,
//! for a GPU with submission, transfers and synchronisation. The device's own time stands beside it. A repetition
//! runs all queries in a new random order, so that no query profits from its neighbour in the log, and a slow moment
//! of the machine is spread over different queries. The median of a query's repetitions is its cost, their
//! interquartile range its spread.
//!
//! Measuring runs on a thread of its own, pinned to one core, so that it does not migrate between timings.

mod error;
mod session;

use std::time::Duration;

pub use error::ProfileError;
use session::measure_all;

use super::batches::{Alone, BatchModel, BatchModels, BatchOptions, BatchSample, fit_batches};
use super::{Measured, Workload, WorkloadRow};
use crate::base::ids::QueryId;
use crate::base::machine::{Class, PerClass};
use crate::files::Provenance;
use crate::index::Index;
use crate::query::{Features, IndexFeatures, Mode, Query, Sketch};
use crate::search::Executor;

/// How long a processor is kept busy, unmeasured, before its repetitions begin: clocks rise from idle within it.
const WARM_UP: Duration = Duration::from_millis(200);

/// What is measured, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileOptions {
    /// The modes, each a row for every query; at least one.
    pub modes: Vec<Mode>,
    /// Documents that a query asks for.
    pub k: usize,
    /// Measured repetitions, at least 1.
    pub repeats: usize,
    /// Draws the orders.
    pub seed: u64,
    /// Which batches are measured, on the classes that gain by them; `None` for none.
    pub batches: Option<BatchOptions>,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        Self { modes: Mode::ALL.to_vec(), k: 10, repeats: 5, seed: 1, batches: Some(BatchOptions::default()) }
    }
}

impl ProfileOptions {
    /// How many searches [`profile`] runs and reports (those that keep a clock busy are not counted).
    #[must_use]
    pub fn searches(&self, executors: usize, queries: usize) -> u64 {
        (executors * queries * self.modes.len() * (1 + self.repeats)) as u64
    }
}

/// Measures every query in every mode on each executor, of which there is at most one a kind, one after another.
///
/// What one of them refuses and another takes (a GPU, a query of very many terms) is measured on the other alone.
///
/// `progress` is told, now and then, how many of [`ProfileOptions::searches`] are done. Rows are in order of mode, then
/// query; the provenance names devices, index and options, not the command.
///
/// # Errors
/// If an option is out of range, a search fails, all executors refuse a query, or two executors' hits are not equal bit for bit.
pub fn profile(
    executors: &mut [Box<dyn Executor>],
    queries: &[Query],
    index: &Index,
    options: &ProfileOptions,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Workload, ProfileError> {
    let (measurements, batches) = measure(executors, queries, options, progress)?;
    let mut provenance = Provenance::new();
    for executor in executors.iter() {
        provenance = provenance.with(executor.class().name(), executor.device());
    }
    let provenance = provenance
        .with("index", format!("{:016x}", index.fingerprint()))
        .with("docs", index.num_docs())
        .with("k", options.k)
        .with("repeats", options.repeats)
        .with("seed", options.seed);
    let sketch = Sketch::of(index);
    let rows = measurements
        .into_iter()
        .zip(0..)
        .map(|(measurement, id)| {
            let query = &queries[measurement.query];
            WorkloadRow {
                query_id: QueryId(id),
                log_id: query.id.0,
                mode: measurement.mode,
                features: Features::of(query, index),
                index_features: Some(IndexFeatures::of(query, index, &sketch, options.k)),
                measured: measurement.measured,
                results: measurement.results,
            }
        })
        .collect();
    Ok(Workload { provenance, rows, batches, ..Workload::default() })
}

/// One query in one mode, measured.
#[derive(Debug)]
struct Measurement {
    /// Position among the queries.
    query: usize,
    mode: Mode,
    results: u32,
    measured: PerClass<Option<Measured>>,
}

/// Measures, and fits models to batches.
fn measure(
    executors: &mut [Box<dyn Executor>],
    queries: &[Query],
    options: &ProfileOptions,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<(Vec<Measurement>, BatchModels), ProfileError> {
    let (measurements, samples) = measure_all(executors, queries, options, progress)?;
    let models = PerClass::from_fn(|class| fit(&samples[class], &measurements, class));
    Ok((measurements, BatchModels(models)))
}

/// A model of a class's batches; `None` if there is too little to fit one to.
fn fit(samples: &[BatchSample], measurements: &[Measurement], class: Class) -> Option<BatchModel> {
    let alone = measurements.iter().filter_map(|measurement| {
        let alone = measurement.measured[class]?;
        Some(Alone { mode: measurement.mode, total_us: alone.median_us, device_us: alone.device_us })
    });
    fit_batches(samples, &alone.collect::<Vec<_>>()).ok()
}

fn check(executors: &[Box<dyn Executor>], queries: &[Query], options: &ProfileOptions) -> Result<(), ProfileError> {
    let wrong = |message: &str| Err(ProfileError::Options(message.to_owned()));
    let count = |kind| executors.iter().filter(|executor| executor.class() == kind).count();
    if executors.is_empty() || Class::ALL.iter().any(|&kind| count(kind) > 1) {
        return wrong("a profile takes one processor of a kind, and at least one");
    }
    if queries.is_empty() {
        return wrong("there are no queries to measure");
    }
    if options.modes.is_empty() {
        return wrong("there is no mode to measure");
    }
    if options.repeats == 0 {
        return wrong("repeats is 0, expected 1 or more");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
