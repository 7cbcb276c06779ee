//! Measuring on the GPU: runs whose answers are checked, and the model fitted to them.

use rayon::prelude::*;

use crate::wang::cache::{Admission, AdmissionPolicy, Division, MeasuredBatch, Prefixes, ThroughputModel};
use crate::wang::cpu::answer;
use crate::wang::data::{MAX_BATCH, SHARE, World};
use crate::wang::gpu::{CachedGpu, Session};
use crate::wang::ranker::Best;
use crate::wang::report::{Report, RunOptions};
use crate::{ExperimentError, Findings};
use tandem_core::search::device::GpuError;

/// Queries of a batch that the model is fitted to.
const BATCHES: [usize; 6] = [64, 256, 1024, 4096, 16_384, MAX_BATCH];
/// Runs of a division, of which the fastest counts; fewer where they have taken so long together.
const REPEATS: usize = 3;
const MOST_SECONDS: f64 = 0.5;
/// Shares of the memory that are tried as cache.
pub(super) const CACHE_SHARES: [f64; 14] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.99];

/// The GPU, with what its answers must be.
#[derive(Debug)]
pub(super) struct Bench<'w> {
    pub(super) world: &'w World,
    pub(super) gpu: CachedGpu<'w>,
    expected: Vec<Best>,
}

/// A policy, as it divides memories.
#[derive(Debug)]
pub(super) struct Planner<'w> {
    world: &'w World,
    pub(super) policy: AdmissionPolicy,
    /// Learned from the whole training half: what is measured.
    admission: Admission,
    /// Learned from its first half, for the model, which walks through the second.
    probe: Admission,
    /// Fitted.
    pub(super) model: ThroughputModel,
}

impl<'w> Bench<'w> {
    /// Opens the GPU; `None`, said in the findings, where there is none.
    pub(super) fn open(world: &'w World, findings: &mut Findings) -> Result<Option<Self>, ExperimentError> {
        let gpu = match CachedGpu::open(world, true) {
            Ok(gpu) => gpu,
            Err(GpuError::NoGpu(reason)) => {
                findings.note(format!("No GPU here ({reason}): what it would do is left empty."));
                return Ok(None);
            }
            Err(e) => return Err(e.into()),
        };
        findings.provenance("gpu", gpu.name());
        if let Some(why) = gpu.why_staged() {
            findings.note(format!("Lists go by staged copies: {why}."));
        }
        let ranker = world.ranker();
        let expected = world.test.par_iter().map(|query| answer(&ranker, &world.lists, query, world.k)).collect();
        Ok(Some(Self { world, gpu, expected }))
    }

    /// Runs the measured half once, and checks every answer: the same documents, the same bits.
    pub(super) fn run(
        &self,
        prefixes: Prefixes,
        cache_bytes: u64,
        buffer_bytes: u64,
        post_threads: usize,
    ) -> Result<Report, ExperimentError> {
        let mut session = Session::new(&self.gpu, prefixes, cache_bytes, buffer_bytes)?;
        let options = RunOptions { post_threads, ..RunOptions::new(self.world.k) };
        let report = session.run(&self.world.test, options)?;
        self.check(&report)?;
        Ok(report)
    }

    fn check(&self, report: &Report) -> Result<(), ExperimentError> {
        match report.answers.iter().zip(&self.expected).position(|(found, expected)| found != expected) {
            None => Ok(()),
            Some(query) => Err(ExperimentError::Wrong(format!(
                "query {query} of the measured half gets other documents or scores on the GPU than on the CPU"
            ))),
        }
    }

    /// The fastest of a few runs of a division, in which one thread post-processes.
    pub(super) fn measure(&self, planner: &Planner<'_>, division: &Division) -> Result<Report, ExperimentError> {
        self.measure_with(planner.prefixes(division.cache_bytes), division, 1)
    }

    /// The same with any number of threads, and a cache that holds `prefixes`.
    pub(super) fn measure_with(
        &self,
        prefixes: Prefixes,
        division: &Division,
        post_threads: usize,
    ) -> Result<Report, ExperimentError> {
        let mut session = Session::new(&self.gpu, prefixes, division.cache_bytes, division.buffer_bytes)?;
        let options = RunOptions { post_threads, ..RunOptions::new(self.world.k) };
        let mut best: Option<Report> = None;
        let mut seconds = 0.0;
        for _ in 0..REPEATS {
            if seconds > MOST_SECONDS {
                break;
            }
            let report = session.run(&self.world.test, options)?;
            self.check(&report)?;
            seconds += report.seconds;
            if best.as_ref().is_none_or(|best| report.seconds < best.seconds) {
                best = Some(report);
            }
        }
        Ok(best.unwrap_or_default())
    }

    /// A policy with the model fitted to batches of the training half, in a memory of which half is cache.
    pub(super) fn planner(
        &self,
        policy: AdmissionPolicy,
        memory_bytes: u64,
    ) -> Result<(Planner<'w>, Vec<MeasuredBatch>), ExperimentError> {
        let mut planner = Planner::new(self.world, policy)?;
        let cache_bytes = memory_bytes / 2;
        let prefixes = planner.prefixes(cache_bytes);
        let mut session = Session::new(&self.gpu, prefixes, cache_bytes, memory_bytes - cache_bytes)?;
        let mut batches = Vec::new();
        for batch_limit in BATCHES {
            // The first run of a size warms up.
            for run in 0..2 {
                let options = RunOptions { batch_limit, ..RunOptions::new(self.world.k) };
                let report = session.run(&self.world.train, options)?;
                if run > 0 {
                    batches.push(report.mean_batch());
                }
            }
        }
        planner.model = ThroughputModel::fit(&batches);
        Ok((planner, batches))
    }
}

impl<'w> Planner<'w> {
    /// Without a model yet.
    pub(super) fn new(world: &'w World, policy: AdmissionPolicy) -> Result<Self, ExperimentError> {
        let (admission, probe) = (world.admission(policy)?, world.probe_admission(policy)?);
        Ok(Self { world, policy, admission, probe, model: ThroughputModel::default() })
    }

    /// What a cache of this size holds.
    pub(super) fn prefixes(&self, cache_bytes: u64) -> Prefixes {
        self.admission.within(cache_bytes, &self.world.lists)
    }

    /// What the model expects of a cache of this share of a memory, with the largest buffer within the limit; `None` if no
    /// buffer is.
    pub(super) fn division(&self, memory_bytes: u64, cache_share: f64, limit_ms: f64) -> Option<Division> {
        let cache_bytes = (memory_bytes as f64 * cache_share) as u64;
        let held = self.probe.within(cache_bytes, &self.world.lists);
        self.model.with_cache(memory_bytes, cache_bytes, limit_ms, |buffer_bytes| {
            self.world.probe_walk(&held, buffer_bytes).ok()
        })
    }

    /// The divisions that the model expects most of, best first.
    pub(super) fn best(&self, memory_bytes: u64, limit_ms: f64) -> Vec<Division> {
        let mut divisions: Vec<Division> =
            CACHE_SHARES.iter().filter_map(|&share| self.division(memory_bytes, share, limit_ms)).collect();
        divisions.sort_by(|a, b| b.qps.total_cmp(&a.qps));
        divisions
    }
}

/// The policies with λ as in figures 4, 5 and 7.
pub(super) fn usual_policies() -> [AdmissionPolicy; 3] {
    crate::wang::data::policies(SHARE)
}
