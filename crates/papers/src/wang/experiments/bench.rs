//! Runs on the GPU with checked answers, and the model fitted to them.

use rayon::prelude::*;

use crate::wang::cache::admission::{Admission, AdmissionPolicy};
use crate::wang::cache::model::{Division, MeasuredBatch, ThroughputModel};
use crate::wang::cache::prefixes::Prefixes;
use crate::wang::cpu::answer;
use crate::wang::data::{ExperimentData, MAX_BATCH, SHARE, policies};
use crate::wang::gpu::{CachedGpu, Session};
use crate::wang::ranker::Best;
use crate::wang::report::{Report, RunOptions};
use crate::{ExperimentError, Findings, Result};

/// Batch sizes to which the model is fitted.
const BATCHES: [usize; 6] = [64, 256, 1024, 4096, 16_384, MAX_BATCH];
/// Maximum number of runs of a division, of which the fastest counts.
const REPEATS: usize = 3;
/// Total duration of runs after which no other one starts.
const MOST_SECONDS: f64 = 0.5;
/// Shares of the memory that are tried as cache.
pub(crate) const CACHE_SHARES: [f64; 14] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.99];

#[derive(Debug)]
pub(crate) struct Bench<'d> {
    pub(crate) data: &'d ExperimentData,
    pub(crate) gpu: CachedGpu<'d>,
    expected: Vec<Best>,
}

/// Divisions of memories for one policy.
#[derive(Debug)]
pub(crate) struct Planner<'d> {
    data: &'d ExperimentData,
    pub(crate) policy: AdmissionPolicy,
    /// Order learned from the whole training half, for measurements.
    admission: Admission,
    /// Order learned from the first half of the training half, for the model, which passes over the second.
    probe: Admission,
    pub(crate) model: ThroughputModel,
}

impl<'d> Bench<'d> {
    /// Opens the GPU; `None`, with a note, on a machine without one.
    pub(crate) fn open(data: &'d ExperimentData, findings: &mut Findings) -> Result<Option<Self>> {
        let Some(gpu) = findings.gpu_if_any(CachedGpu::open(data, true))? else { return Ok(None) };
        findings.provenance("gpu", gpu.name());
        if let Some(why) = gpu.why_staged() {
            findings.note(format!("Lists go by staged copies: {why}."));
        }
        let ranker = data.ranker();
        let expected = data.test.par_iter().map(|query| answer(&ranker, &data.lists, query, data.k)).collect();
        Ok(Some(Self { data, gpu, expected }))
    }

    /// Runs the measured half once, and checks the documents and the bits of scores of every answer.
    pub(crate) fn run(
        &self,
        prefixes: Prefixes,
        cache_bytes: u64,
        buffer_bytes: u64,
        post_threads: usize,
    ) -> Result<Report> {
        let mut session = Session::new(&self.gpu, prefixes, cache_bytes, buffer_bytes)?;
        let options = RunOptions { post_threads, ..RunOptions::new(self.data.k) };
        let report = session.run(&self.data.test, options)?;
        self.check(&report)?;
        Ok(report)
    }

    fn check(&self, report: &Report) -> Result<()> {
        match report.answers.iter().zip(&self.expected).position(|(found, expected)| found != expected) {
            None => Ok(()),
            Some(query) => Err(ExperimentError::Wrong(format!(
                "query {query} of the measured half gets other documents or scores on the GPU than on the CPU"
            ))),
        }
    }

    /// Returns the fastest of a few runs of a division with one thread that post-processes.
    pub(crate) fn measure(&self, planner: &Planner<'_>, division: &Division) -> Result<Report> {
        self.measure_with(planner.prefixes(division.cache_bytes), division, 1)
    }

    /// Returns the fastest of a few runs with a cache of `prefixes` and any number of threads that post-process.
    pub(crate) fn measure_with(&self, prefixes: Prefixes, division: &Division, post_threads: usize) -> Result<Report> {
        let mut session = Session::new(&self.gpu, prefixes, division.cache_bytes, division.buffer_bytes)?;
        let options = RunOptions { post_threads, ..RunOptions::new(self.data.k) };
        let mut best: Option<Report> = None;
        let mut seconds = 0.0;
        for _ in 0..REPEATS {
            if seconds > MOST_SECONDS {
                break;
            }
            let report = session.run(&self.data.test, options)?;
            self.check(&report)?;
            seconds += report.seconds;
            if best.as_ref().is_none_or(|best| report.seconds < best.seconds) {
                best = Some(report);
            }
        }
        Ok(best.unwrap_or_default())
    }

    /// Returns a planner with the model fitted to batches of the training half, and these batches; half the memory is cache.
    pub(crate) fn planner(
        &self,
        policy: AdmissionPolicy,
        memory_bytes: u64,
    ) -> Result<(Planner<'d>, Vec<MeasuredBatch>)> {
        let mut planner = Planner::new(self.data, policy)?;
        let cache_bytes = memory_bytes / 2;
        let prefixes = planner.prefixes(cache_bytes);
        let mut session = Session::new(&self.gpu, prefixes, cache_bytes, memory_bytes - cache_bytes)?;
        let mut batches = Vec::new();
        for batch_limit in BATCHES {
            // The first run of a size warms up.
            for run in 0..2 {
                let options = RunOptions { batch_limit, ..RunOptions::new(self.data.k) };
                let report = session.run(&self.data.train, options)?;
                if run > 0 {
                    batches.push(report.mean_batch());
                }
            }
        }
        planner.model = ThroughputModel::fit(&batches);
        Ok((planner, batches))
    }
}

impl<'d> Planner<'d> {
    pub(crate) fn new(data: &'d ExperimentData, policy: AdmissionPolicy) -> Result<Self> {
        let (admission, probe) = (data.admission(policy)?, data.probe_admission(policy)?);
        Ok(Self { data, policy, admission, probe, model: ThroughputModel::default() })
    }

    /// Returns the contents of a cache of this size.
    pub(crate) fn prefixes(&self, cache_bytes: u64) -> Prefixes {
        self.admission.within(cache_bytes, &self.data.lists)
    }

    /// Models a cache of this share of a memory with the largest buffer within the limit; `None` if no buffer is.
    pub(crate) fn division(&self, memory_bytes: u64, cache_share: f64, limit_ms: f64) -> Option<Division> {
        let cache_bytes = (memory_bytes as f64 * cache_share) as u64;
        let held = self.probe.within(cache_bytes, &self.data.lists);
        self.model.with_cache(memory_bytes, cache_bytes, limit_ms, |buffer_bytes| {
            self.data.probe_trace(&held, buffer_bytes).ok()
        })
    }

    /// Returns all divisions, those with the highest modelled throughput first.
    pub(crate) fn best(&self, memory_bytes: u64, limit_ms: f64) -> Vec<Division> {
        let mut divisions: Vec<Division> =
            CACHE_SHARES.iter().filter_map(|&share| self.division(memory_bytes, share, limit_ms)).collect();
        divisions.sort_by(|a, b| b.qps.total_cmp(&a.qps));
        divisions
    }
}

/// Returns the policies with the λ of figures 4, 5 and 7.
pub(crate) fn usual_policies() -> [AdmissionPolicy; 3] {
    policies(SHARE)
}
