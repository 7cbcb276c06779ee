//! Options and results of running a log on the device.

use crate::wang::cache::model::MeasuredBatch;
use crate::wang::data::MAX_BATCH;
use crate::wang::ranker::Best;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOptions {
    pub(crate) k: usize,
    /// Threads that post-process. With 0 the main thread does it between batches.
    pub(crate) post_threads: usize,
    /// Maximum number of batches that wait for post-processing; with more, the main thread waits.
    pub(crate) backlog: usize,
    /// Maximum number of queries of a batch, even if the buffer holds more.
    pub(crate) batch_limit: usize,
}

impl RunOptions {
    /// The paper's options: one thread post-processes, and batches grow until the buffer is full.
    pub(crate) fn new(k: usize) -> Self {
        Self { k, post_threads: 1, backlog: 4, batch_limit: MAX_BATCH }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) answers: Vec<Best>,
    /// Seconds from the start of the first batch to the last answer.
    pub(crate) seconds: f64,
    pub(crate) batches: Vec<MeasuredBatch>,
    /// Queries that the CPU resumed.
    pub(crate) post_processed: usize,
    /// Seconds of all threads for resumed queries.
    pub(crate) post_seconds: f64,
    /// Queries too large for the buffer, which the main thread answered.
    pub(crate) oversized: usize,
    /// Number of waits of the main thread for a full backlog.
    pub(crate) full_backlogs: usize,
}

impl Report {
    pub(crate) fn qps(&self) -> f64 {
        self.answers.len() as f64 / self.seconds
    }

    pub(crate) fn mean_batch(&self) -> MeasuredBatch {
        let mean = |value: fn(&MeasuredBatch) -> f64| {
            self.batches.iter().map(value).sum::<f64>() / self.batches.len().max(1) as f64
        };
        MeasuredBatch {
            queries: mean(|b| b.queries),
            calculation_us: mean(|b| b.calculation_us),
            mb: mean(|b| b.mb),
            transfer_us: mean(|b| b.transfer_us),
        }
    }

    pub(crate) fn gpu_ms(&self) -> f64 {
        self.batches.iter().map(|b| b.calculation_us + b.transfer_us).sum::<f64>() / 1e3
    }

    /// Returns the milliseconds of a query's batch, on average over queries.
    pub(crate) fn batch_ms(&self) -> f64 {
        let weighed = self.batches.iter().map(|b| b.queries * (b.calculation_us + b.transfer_us)).sum::<f64>();
        weighed / self.batches.iter().map(|b| b.queries).sum::<f64>().max(1.0) / 1e3
    }
}
