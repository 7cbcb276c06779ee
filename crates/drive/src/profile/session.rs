//! The measuring thread: every query on every processor, in rounds.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use tandem_engine::query::Query;
use tandem_engine::search::{Executor, Hit};
use tandem_model::base::interrupt::interrupted;
use tandem_model::base::machine::{Class, PerClass};
use tandem_model::base::quantile::interpolated;
use tandem_model::cost::Measured;
use tandem_model::cost::batches::BatchSample;
use tandem_model::traffic::Mode;

use super::batches::measure_batches;
use super::{Measurement, ProfileError, ProfileOptions, WARM_UP, check};

/// All measurements: of single queries, and of batches by class.
pub(super) type Everything = (Vec<Measurement>, PerClass<Vec<BatchSample>>);

/// Measures everything on a new thread.
pub(super) fn measure_all(
    executors: &mut [Box<dyn Executor>],
    queries: &[Query],
    options: &ProfileOptions,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Everything, ProfileError> {
    check(executors, queries, options)?;
    std::thread::scope(|scope| {
        let measuring = scope.spawn(move || {
            // The last core is used, since the first often serves the system's interrupts. The thread stays unpinned if the
            // system refuses.
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

struct Session<'a> {
    queries: &'a [Query],
    options: &'a ProfileOptions,
    /// All searches of a round, as positions of queries with modes.
    work: Vec<(usize, Mode)>,
    hits: Vec<Hit>,
    /// By class: positions in the work that a processor refuses.
    refused: PerClass<HashSet<usize>>,
    progress: &'a mut (dyn FnMut(u64) + Send),
    done: u64,
}

impl Session<'_> {
    /// Runs all searches once on each executor and compares the hits.
    fn check_results(&mut self, executors: &mut [Box<dyn Executor>]) -> Result<Vec<Measurement>, ProfileError> {
        let mut measurements = Vec::with_capacity(self.work.len());
        let mut expected = Vec::new();
        for i in 0..self.work.len() {
            let (query, mode) = self.work[i];
            let mut first = None;
            let mut refusal = None;
            if interrupted() {
                self.work.truncate(i);
                break;
            }
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

    /// Measures all searches on one executor, into the rows of the same positions.
    fn measure(&mut self, executor: &mut dyn Executor, measurements: &mut [Measurement]) -> Result<(), ProfileError> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.options.seed);
        let refused = std::mem::take(&mut self.refused[executor.class()]);
        let mut order: Vec<usize> = (0..self.work.len()).filter(|i| !refused.contains(i)).collect();
        order.shuffle(&mut random);
        let began = Instant::now();
        for &i in order.iter().cycle() {
            let (query, mode) = self.work[i];
            self.search(executor, query, mode)?;
            if began.elapsed() >= WARM_UP || interrupted() {
                break;
            }
        }
        let mut host_us = vec![Vec::with_capacity(self.options.repeats); self.work.len()];
        let mut device_us: Vec<Vec<f64>> = vec![Vec::new(); self.work.len()];
        'repeats: for _ in 0..self.options.repeats {
            order.shuffle(&mut random);
            for &i in &order {
                if interrupted() {
                    break 'repeats;
                }
                let (query, mode) = self.work[i];
                let (elapsed, device) = self.search(executor, query, mode)?;
                // The clock may be too coarse for a search, whose time is still above zero.
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

    /// Measures batches of the single queries, by their positions; none if no batches are requested.
    fn measure_batches(
        &mut self,
        executor: &mut dyn Executor,
        measurements: &[Measurement],
    ) -> Result<Vec<BatchSample>, ProfileError> {
        let Some(options) = &self.options.batches else { return Ok(Vec::new()) };
        let class = executor.class();
        // A query that is refused alone is refused in a batch.
        let taken = measurements.iter().filter(|measurement| measurement.measured[class].is_some());
        let work: Vec<_> = taken.map(|taken| (&self.queries[taken.query], taken.mode)).collect();
        if work.is_empty() || interrupted() {
            return Ok(Vec::new());
        }
        measure_batches(executor, &work, self.options.k, options)
            .map_err(|source| ProfileError::Batch { class, source })
    }

    /// Runs one search; returns its time on the host's clock and on the device's.
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

    /// Reports every 64th search. Reports come between timings, but one for each search would cool the caches.
    fn count_one(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(64) {
            (self.progress)(self.done);
        }
    }
}

/// The first difference of two result lists, in words; `None` if they are equal bit for bit.
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
