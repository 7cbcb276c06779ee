//! Profiling: the cost of every query on each class of processor, and a check that the processors agree.
//!
//! ```text
//! for each processor, alone:   check and warm up: all queries once        | hits compared between processors
//!                              then `repeats` times: all queries, shuffled | |--- search ---| timed by the host's clock
//! for each that batches:       batches of 1 to 4096 drawn from them        | fitted: `cost::batches`
//! ```
//!
//! The measured time is what a scheduler experiences: from the call of [`Executor::search`] to hits in host memory. For a GPU
//! it includes submission, transfers and synchronisation; the device's own time is recorded separately. Each repetition runs
//! all queries in a new random order. So no query gains from its neighbour in the log, and a slow moment of the machine
//! affects different queries. A query's cost is the median of its repetitions, its spread their interquartile range.
//!
//! Measurements run on their own thread, pinned to one core, so that it does not migrate between timings.

mod batches;
mod error;
mod session;

use std::time::Duration;

pub use batches::{BatchOptions, measure_batches};
pub use error::ProfileError;
use session::measure_all;

use tandem_engine::index::Index;
use tandem_engine::query::{Query, Sketch};
use tandem_engine::search::Executor;
use tandem_model::base::ids::QueryId;
use tandem_model::base::interrupt::interrupted;
use tandem_model::base::machine::{Class, PerClass};
use tandem_model::cost::batches::{Alone, BatchModel, BatchModels, BatchSample, fit_batches};
use tandem_model::cost::{Measured, Workload, WorkloadRow};
use tandem_model::files::Provenance;
use tandem_model::traffic::Mode;

/// Unmeasured load before the repetitions of a processor, during which its clock rises from idle.
const WARM_UP: Duration = Duration::from_millis(200);

/// The measurements of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileOptions {
    /// The modes, at least one; each gives a row for every query.
    pub modes: Vec<Mode>,
    /// Documents that a query asks for.
    pub k: usize,
    /// Measured repetitions, at least 1.
    pub repeats: usize,
    /// The seed of the orders.
    pub seed: u64,
    /// The batches to measure, on classes that gain from them; `None` for none.
    pub batches: Option<BatchOptions>,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        Self { modes: Mode::ALL.to_vec(), k: 10, repeats: 5, seed: 1, batches: Some(BatchOptions::default()) }
    }
}

impl ProfileOptions {
    /// Searches that [`profile`] runs and reports, without those of the warm-up load.
    pub fn searches(&self, executors: usize, queries: usize) -> u64 {
        (executors * queries * self.modes.len() * (1 + self.repeats)) as u64
    }
}

/// Measures every query in every mode on each executor in turn. There is at most one executor per class.
///
/// A query that one executor refuses and another takes is measured on the other alone, such as a GPU and a query of very many
/// terms.
///
/// An [interrupt](tandem_model::base::interrupt) ends the measurements. The rows are then those that were measured at least once on one
/// executor, and the provenance has `interrupted` with their number.
///
/// `progress` receives from time to time the number of finished [searches](ProfileOptions::searches). Rows are in order of
/// mode, then query. The provenance names devices, index and options, not the command. Fails if an option is out of
/// range, a search fails, all executors refuse a query, two executors' hits differ in any bit, or an interrupt comes
/// before the first measurement.
pub fn profile(
    executors: &mut [Box<dyn Executor>],
    queries: &[Query],
    index: &Index,
    options: &ProfileOptions,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Workload, ProfileError> {
    let (mut measurements, batches) = measure(executors, queries, options, progress)?;
    let is_cut = interrupted();
    if is_cut {
        measurements.retain(|measurement| measurement.measured.iter().any(|(_, measured)| measured.is_some()));
        if measurements.is_empty() {
            return Err(ProfileError::Interrupted);
        }
    }
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
    let all = queries.len() * options.modes.len();
    let cut = format!("{} of {all} rows are measured, some less than {} times", measurements.len(), options.repeats);
    let provenance = if is_cut { provenance.with("interrupted", cut) } else { provenance };
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
                features: query.features(index),
                index_features: Some(query.index_features(index, &sketch, options.k)),
                predicted_us: None,
                measured: measurement.measured,
                results: measurement.results,
            }
        })
        .collect();
    Ok(Workload { provenance, rows, batches, speed_up: None })
}

#[derive(Debug)]
struct Measurement {
    /// Position among the queries.
    query: usize,
    mode: Mode,
    results: u32,
    measured: PerClass<Option<Measured>>,
}

/// Runs all measurements, and fits models to batches.
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

/// A model of a class's batches; `None` if there are too few samples.
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
