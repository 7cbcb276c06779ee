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

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::batches::{
    Alone, BatchModel, BatchModels, BatchOptions, BatchSample, fit_batches, fit_bus, measure_batches,
};
use super::{Far, Measured, TierModel, Workload, WorkloadRow};
use crate::cache::FarCurve;
use crate::exec::{ExecError, Executor, Hit};
use crate::files::Provenance;
use crate::ids::QueryId;
use crate::index::Index;
use crate::machine::{Class, PerClass};
use crate::quantile::interpolated;
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

/// Why a profile could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Nothing to run, or an option is out of range.
    #[error("{0}")]
    Options(String),
    /// A search failed.
    #[error("query {query}, {mode}, on {kind}: {source}")]
    Search {
        /// The query's name in its log.
        query: String,
        /// The mode.
        mode: Mode,
        /// The processor.
        kind: Class,
        /// What went wrong.
        source: ExecError,
    },
    /// A batch failed.
    #[error("a batch on {class}: {source}")]
    Batch {
        /// The processor.
        class: Class,
        /// What went wrong.
        source: ExecError,
    },
    /// Two processors found different documents or scores: one of them is wrong.
    #[error("query {query}, {mode}: {difference}")]
    Differ {
        /// The query's name in its log.
        query: String,
        /// The mode.
        mode: Mode,
        /// Where the results part.
        difference: String,
    },
}

impl ProfileError {
    /// Whether a processor does not take the query, and another may.
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Search { source: ExecError::BeyondGpu { .. }, .. })
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
/// those that a budget may leave out; `curve` tells of a query what share of its reads is far.
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
    curve: &dyn Fn(&Query) -> Option<FarCurve>,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<(), ProfileError> {
    let class = executor.class();
    let few = |batches: &BatchOptions| BatchOptions { sizes: FAR_SIZES.into(), ..batches.clone() };
    let options = &ProfileOptions { batches: options.batches.as_ref().map(few), ..options.clone() };
    let (measurements, samples) = measure_all(&mut [executor], queries, options, progress)?;
    let mut longer = Vec::new();
    for (row, found) in workload.rows.iter_mut().zip(&measurements) {
        let query = &queries[found.query];
        if found.results != row.results {
            let difference = format!("{} documents with lists near, {} with lists far", row.results, found.results);
            return Err(ProfileError::Differ { query: query.label.clone(), mode: row.mode, difference });
        }
        let Some((near, far)) = row.measured[class].zip(found.measured[class]) else { continue };
        longer.push((row.mode, (far.median_us - near.median_us).max(0.0)));
        row.far = curve(query).map(|curve| Far { all_far_us: far.median_us, curve });
    }
    let bus = fit_bus(&samples[class], &longer).map_err(|e| ProfileError::Options(e.to_string()))?;
    let [bus_and, bus_or, bus_and_or] = bus.shares;
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

/// Everything that is measured: queries alone, and by class batches of them.
type Everything = (Vec<Measurement>, PerClass<Vec<BatchSample>>);

fn measure_all(
    executors: &mut [Box<dyn Executor>],
    queries: &[Query],
    options: &ProfileOptions,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Everything, ProfileError> {
    check(executors, queries, options)?;
    std::thread::scope(|scope| {
        let measuring = scope.spawn(move || {
            // The last core: the first one tends to serve the system's interrupts. Unpinned where the system refuses.
            if let Some(core) = core_affinity::get_core_ids().and_then(|cores| cores.last().copied()) {
                core_affinity::set_for_current(core);
            }
            let work: Vec<(usize, Mode)> =
                options.modes.iter().flat_map(|&mode| (0..queries.len()).map(move |query| (query, mode))).collect();
            let (hits, refused) = (Vec::new(), PerClass::default());
            let mut session = Session { queries, options, work, hits, refused, progress, done: 0 };
            let mut measurements = session.check_results(executors)?;
            for executor in executors.iter_mut() {
                session.measure(executor.as_mut(), &mut measurements)?;
            }
            let mut batches: PerClass<Vec<BatchSample>> = PerClass::default();
            for executor in executors.iter_mut().filter(|executor| executor.class().is_gpu()) {
                batches[executor.class()] = session.measure_batches(executor.as_mut(), &measurements)?;
            }
            Ok((measurements, batches))
        });
        measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
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

/// What one thread measures.
struct Session<'a> {
    queries: &'a [Query],
    options: &'a ProfileOptions,
    /// Positions of queries, with modes: every search of a round.
    work: Vec<(usize, Mode)>,
    hits: Vec<Hit>,
    /// Positions in the work, of what a processor does not take.
    refused: PerClass<HashSet<usize>>,
    progress: &'a mut (dyn FnMut(u64) + Send),
    done: u64,
}

impl Session<'_> {
    /// Runs everything once on each executor and compares the hits.
    fn check_results(&mut self, executors: &mut [Box<dyn Executor>]) -> Result<Vec<Measurement>, ProfileError> {
        let mut measurements = Vec::with_capacity(self.work.len());
        let mut expected = Vec::new();
        for i in 0..self.work.len() {
            let (query, mode) = self.work[i];
            let mut first = None;
            let mut refusal = None;
            for executor in executors.iter_mut() {
                match self.search(executor.as_mut(), query, mode) {
                    Err(error) if error.is_refusal() => {
                        self.refused[executor.class()].insert(i);
                        refusal = Some(error);
                        self.count_one();
                        continue;
                    }
                    found => found?,
                };
                match first {
                    None => {
                        first = Some(executor.class());
                        std::mem::swap(&mut expected, &mut self.hits);
                    }
                    Some(kind) => {
                        if let Some(difference) = difference((kind, &expected), (executor.class(), &self.hits)) {
                            let query = self.queries[query].label.clone();
                            return Err(ProfileError::Differ { query, mode, difference });
                        }
                    }
                }
                self.count_one();
            }
            if let (None, Some(error)) = (first, refusal) {
                return Err(error);
            }
            let results = expected.len() as u32;
            measurements.push(Measurement { query, mode, results, measured: PerClass::default() });
        }
        Ok(measurements)
    }

    /// Measures everything on one executor, into the rows of the same positions.
    fn measure(&mut self, executor: &mut dyn Executor, measurements: &mut [Measurement]) -> Result<(), ProfileError> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.options.seed);
        let refused = std::mem::take(&mut self.refused[executor.class()]);
        let mut order: Vec<usize> = (0..self.work.len()).filter(|i| !refused.contains(i)).collect();
        order.shuffle(&mut random);
        let began = Instant::now();
        for &i in order.iter().cycle() {
            let (query, mode) = self.work[i];
            self.search(executor, query, mode)?;
            if began.elapsed() >= WARM_UP {
                break;
            }
        }
        let mut host_us = vec![Vec::with_capacity(self.options.repeats); self.work.len()];
        let mut device_us: Vec<Vec<f64>> = vec![Vec::new(); self.work.len()];
        for _ in 0..self.options.repeats {
            order.shuffle(&mut random);
            for &i in &order {
                let (query, mode) = self.work[i];
                let (elapsed, device) = self.search(executor, query, mode)?;
                // A clock too coarse to see a search still saw more than nothing.
                host_us[i].push((elapsed.as_nanos() as f64 / 1e3).max(0.001));
                device_us[i].extend(device);
                if self.hits.len() as u32 != measurements[i].results {
                    let (was, is) = (measurements[i].results, self.hits.len());
                    let difference = format!("{} returned {was} documents, then {is}", executor.class());
                    return Err(ProfileError::Differ { query: self.queries[query].label.clone(), mode, difference });
                }
                self.count_one();
            }
        }
        for ((measurement, mut host), mut device) in measurements.iter_mut().zip(host_us).zip(device_us) {
            if host.is_empty() {
                continue;
            }
            host.sort_by(f64::total_cmp);
            device.sort_by(f64::total_cmp);
            measurement.measured[executor.class()] = Some(Measured {
                median_us: interpolated(&host, 0.5),
                spread_us: interpolated(&host, 0.75) - interpolated(&host, 0.25),
                device_us: (!device.is_empty()).then(|| interpolated(&device, 0.5)),
            });
        }
        Ok(())
    }

    /// Measures batches of what was measured alone, by position among these; none if none are asked for.
    fn measure_batches(
        &mut self,
        executor: &mut dyn Executor,
        measurements: &[Measurement],
    ) -> Result<Vec<BatchSample>, ProfileError> {
        let Some(options) = &self.options.batches else { return Ok(Vec::new()) };
        let class = executor.class();
        // What it does not take alone, it does not take in a batch.
        let taken = measurements.iter().filter(|measurement| measurement.measured[class].is_some());
        let work: Vec<_> = taken.map(|taken| (&self.queries[taken.query], taken.mode)).collect();
        if work.is_empty() {
            return Ok(Vec::new());
        }
        measure_batches(executor, &work, self.options.k, options)
            .map_err(|source| ProfileError::Batch { class, source })
    }

    /// Runs one search: what it took on the host's clock and on the device's.
    fn search(
        &mut self,
        executor: &mut dyn Executor,
        query: usize,
        mode: Mode,
    ) -> Result<(Duration, Option<f64>), ProfileError> {
        let query = &self.queries[query];
        let began = Instant::now();
        let result = executor.search(query, mode, self.options.k, &mut self.hits);
        let elapsed = began.elapsed();
        match result {
            Ok(execution) => Ok((elapsed, execution.device_us)),
            Err(source) => {
                Err(ProfileError::Search { query: query.label.clone(), mode, kind: executor.class(), source })
            }
        }
    }

    /// Reports every 64th search: between timings, but drawing a bar for each would cool the caches.
    fn count_one(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(64) {
            (self.progress)(self.done);
        }
    }
}

/// Where two result lists part first, in words; `None` if they are equal bit for bit.
fn difference((first, expected): (Class, &[Hit]), (second, found): (Class, &[Hit])) -> Option<String> {
    let same = |(a, b): (&Hit, &Hit)| a.doc == b.doc && a.score.to_bits() == b.score.to_bits();
    let rank = expected.iter().zip(found).position(|pair| !same(pair));
    match rank {
        Some(rank) => {
            let (a, b) = (expected[rank], found[rank]);
            let rank = rank + 1;
            Some(format!(
                "{first} and {second} differ at rank {rank}: document {} with score {}, and document {} with score {}",
                a.doc, a.score, b.doc, b.score
            ))
        }
        None if expected.len() != found.len() => {
            Some(format!("{first} returns {} documents, {second} {}", expected.len(), found.len()))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::Execution;
    use crate::ids::{DocId, TermId};
    use crate::query::QueryTerm;

    /// Returns as many documents as the query's list is long, and may be wrong from some search on.
    struct Mock {
        kind: Class,
        searches: usize,
        score_from: (usize, f32),
    }

    impl Executor for Mock {
        fn class(&self) -> Class {
            self.kind
        }

        fn device(&self) -> String {
            "mock".to_owned()
        }

        fn search(&mut self, query: &Query, _: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
            self.searches += 1;
            let score = if self.searches > self.score_from.0 { self.score_from.1 } else { 1.0 };
            let len = (query.terms[0].doc_freq as usize).min(k);
            hits.clear();
            hits.extend((0..len as u32).map(|doc| Hit { doc: DocId(doc), score }));
            if k > crate::exec::MAX_K {
                return Err(ExecError::BadK(k));
            }
            Ok(Execution { device_us: (self.kind == Class::GPU).then_some(0.5), ..Execution::default() })
        }
    }

    fn mock(kind: Class, score_from: (usize, f32)) -> Box<dyn Executor> {
        Box::new(Mock { kind, searches: 0, score_from })
    }

    fn queries() -> Vec<Query> {
        (0..5)
            .map(|i| Query {
                id: QueryId(i * 10),
                label: format!("q{i}"),
                terms: vec![QueryTerm { term: TermId(i), doc_freq: i + 1, qtf: 1 }],
                dropped_terms: 0,
            })
            .collect()
    }

    #[test]
    fn every_query_is_measured_in_every_mode_on_every_processor() {
        let batches = BatchOptions { sizes: vec![1, 2, 4], repeats: 4, time_a_size: Duration::ZERO, seed: 1 };
        let options = ProfileOptions { k: 3, repeats: 4, batches: Some(batches), ..ProfileOptions::default() };
        let mut executors = [mock(Class::CPU, (0, 1.0)), mock(Class::GPU, (0, 1.0))];
        let mut last = 0;
        let (rows, batches) = measure(&mut executors, &queries(), &options, &mut |done| last = done).unwrap();
        assert_eq!(rows.len(), 15);
        for (i, row) in rows.iter().enumerate() {
            assert_eq!((row.query, row.mode), (i % 5, Mode::ALL[i / 5]));
            assert_eq!(row.results, (row.query as u32 + 1).min(3));
            let (cpu, gpu) = (row.measured[Class::CPU].unwrap(), row.measured[Class::GPU].unwrap());
            assert!(cpu.median_us > 0.0 && cpu.spread_us >= 0.0 && cpu.device_us.is_none());
            assert_eq!(gpu.device_us, Some(0.5));
        }
        assert!(batches.0[Class::GPU].is_some() && batches.0[Class::CPU].is_none());
        assert_eq!(options.searches(2, 5), 150);
        assert_eq!(last, 128);
    }

    #[test]
    fn what_one_processor_refuses_is_measured_on_the_others_alone() {
        /// Refuses the query of four postings.
        struct Picky(Mock);
        impl Executor for Picky {
            fn class(&self) -> Class {
                self.0.class()
            }
            fn device(&self) -> String {
                self.0.device()
            }
            fn search(
                &mut self,
                query: &Query,
                mode: Mode,
                k: usize,
                hits: &mut Vec<Hit>,
            ) -> Result<Execution, ExecError> {
                if query.terms[0].doc_freq == 4 {
                    return Err(ExecError::BeyondGpu {
                        what: "the number of the query's terms is",
                        count: 65,
                        most: 64,
                        cpu_most: 1024,
                    });
                }
                self.0.search(query, mode, k, hits)
            }
        }
        let picky =
            || Box::new(Picky(Mock { kind: Class::GPU, searches: 0, score_from: (0, 1.0) })) as Box<dyn Executor>;
        let batches = BatchOptions { sizes: vec![1, 2, 4], repeats: 4, time_a_size: Duration::ZERO, seed: 1 };
        let options = ProfileOptions { batches: Some(batches), ..ProfileOptions::default() };
        let mut executors = [picky(), mock(Class::CPU, (0, 1.0))];
        let (rows, batches) = measure(&mut executors, &queries(), &options, &mut |_| ()).unwrap();
        for row in &rows {
            assert_eq!(row.measured[Class::GPU].is_some(), row.query != 3);
            assert!(row.measured[Class::CPU].is_some());
            assert_eq!(row.results, row.query as u32 + 1);
        }
        assert!(batches.0[Class::GPU].is_some());
        let error = measure(&mut [picky()], &queries(), &options, &mut |_| ()).unwrap_err().to_string();
        assert!(error.starts_with("query q3, and, on gpu: "), "{error}");
    }

    #[test]
    fn processors_that_disagree_are_an_error_that_names_the_query() {
        let mut executors = [mock(Class::CPU, (0, 1.0)), mock(Class::GPU, (7, 2.0))];
        let error = measure(&mut executors, &queries(), &ProfileOptions::default(), &mut |_| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "query q2, or: cpu and gpu differ at rank 1: document 0 with score 1, and document 0 with score 2"
        );
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let cpu = || mock(Class::CPU, (0, 1.0));
        let refused = |executors: &mut [Box<dyn Executor>], queries: &[Query], options: ProfileOptions| {
            measure(executors, queries, &options, &mut |_| ()).unwrap_err().to_string()
        };
        let usual = ProfileOptions::default;
        let queries = queries();
        assert!(refused(&mut [], &queries, usual()).starts_with("a profile takes one processor of a kind"));
        assert!(refused(&mut [cpu(), cpu()], &queries, usual()).starts_with("a profile takes one processor of a kind"));
        assert_eq!(refused(&mut [cpu()], &[], usual()), "there are no queries to measure");
        let none = ProfileOptions { repeats: 0, ..usual() };
        assert_eq!(refused(&mut [cpu()], &queries, none), "repeats is 0, expected 1 or more");
        let many = ProfileOptions { k: 10_001, ..usual() };
        assert_eq!(refused(&mut [cpu()], &queries, many), "query q0, and, on cpu: k is 10001, expected 1 to 10000");
    }
}
