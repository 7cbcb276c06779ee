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

use super::batches::{Alone, BatchModel, BatchModels, BatchOptions, BatchSample, fit_batches, fit_bus};
use super::{BatchLoad, Cost, Far, Measured, TierModel, Workload, WorkloadRow};
use crate::cache::FarCurve;
use crate::exec::Executor;
use crate::files::Provenance;
use crate::ids::QueryId;
use crate::index::Index;
use crate::machine::{Class, PerClass};
use crate::query::{Features, IndexFeatures, Mode, Query, Sketch};

/// Queries of a batch with all lists far: from those in which reads wait for each other to those in which the bus binds.
const FAR_SIZES: [u32; 5] = [4, 16, 256, 1024, 4096];

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
                far: None,
                results: measurement.results,
            }
        })
        .collect();
    Ok(Workload { provenance, rows, batches, ..Workload::default() })
}

/// Measures a GPU with all lists in the host's memory, and adds to a workload that was measured of the same queries, with the
/// same options and all lists near, what any budget between the two costs. `index_bytes` are those that stay in GPU memory and
/// those that a budget may leave out; `reads` tells what a query reads.
///
/// `progress` is told as by [`profile`].
///
/// # Errors
/// If a search fails or finds another number of documents than before, or there are too few batches to fit the bus to.
pub fn profile_far(
    executor: Box<dyn Executor>,
    queries: &[Query],
    workload: &mut Workload,
    options: &ProfileOptions,
    index_bytes: (u64, u64),
    reads: &dyn Fn(&Query, Mode) -> Option<FarReads>,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<(), ProfileError> {
    let class = executor.class();
    let few = |batches: &BatchOptions| BatchOptions { sizes: FAR_SIZES.into(), ..batches.clone() };
    let options = &ProfileOptions { batches: options.batches.as_ref().map(few), ..options.clone() };
    let (measurements, samples) = measure_all(&mut [executor], queries, options, progress)?;
    let (mut longer, mut read) = (Vec::new(), Vec::new());
    for (row, found) in workload.rows.iter_mut().zip(&measurements) {
        let query = &queries[found.query];
        if found.results != row.results {
            let difference = format!("{} documents with lists near, {} with lists far", row.results, found.results);
            return Err(ProfileError::Differ { query: query.label.clone(), mode: row.mode, difference });
        }
        let Some((near, far)) = row.measured[class].zip(found.measured[class]) else { continue };
        longer.push((row.mode, (far.median_us - near.median_us).max(0.0)));
        let of_row = reads(query, row.mode);
        read.push((row.mode, of_row.map_or(0.0, |reads| reads.sectors)));
        row.far = of_row.map(|FarReads { curve, .. }| Far { all_far_us: far.median_us, bus_us: None, curve });
    }
    let near_us = near_device_us(workload, class, &samples[class]);
    let samples: Vec<(&BatchSample, f64)> = samples[class].iter().zip(near_us).collect();
    let fitted = |work: &[(Mode, f64)]| fit_bus(&samples, work).map_err(|e| ProfileError::Options(e.to_string()));
    let [bus_and, bus_or, bus_and_or] = fitted(&longer)?.shares;
    let bus = fitted(&read)?;
    let far = workload.rows.iter_mut().filter(|row| row.measured[class].is_some()).filter_map(|row| row.far.as_mut());
    for (far, (mode, sectors)) in far.zip(read) {
        far.bus_us = Some(bus.shares[mode.index()] * sectors);
    }
    workload.tiers = Some(TierModel {
        staying_bytes: index_bytes.0,
        rows_bytes: index_bytes.1,
        bus_and,
        bus_or,
        bus_and_or,
        crowding: bus.crowding,
        samples: bus.samples,
        mean_relative_error: bus.mean_relative_error,
    });
    Ok(())
}

/// What the device would take for batches of a workload's queries with all lists near, in microseconds.
fn near_device_us(workload: &Workload, class: Class, samples: &[BatchSample]) -> Vec<f64> {
    let measured = |row: &&WorkloadRow| row.measured[class].is_some();
    let costs = workload.rows.iter().filter(measured).map(|row| {
        let alone_us = row.measured.map(|measured| measured.map(|measured| measured.median_us));
        workload.batches.costs(row.mode, alone_us)[class]
    });
    let costs: Vec<Cost> = costs.collect();
    let model = workload.batches.0[class].as_ref();
    let near_us = |sample: &BatchSample| {
        let load = sample.work.iter().fold(BatchLoad::default(), |load, &i| load.with(costs[i as usize]));
        model.map_or(0.0, |model| model.cost.time(&load).device.as_us())
    };
    samples.iter().map(near_us).collect()
}

/// What a query reads of lists, as far as it matters where these lie.
#[derive(Clone, Copy, Debug)]
pub struct FarReads {
    /// What share of its reads is far under a budget,
    pub curve: FarCurve,
    /// and the sectors of 32 bytes that it reads.
    pub sectors: f64,
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
