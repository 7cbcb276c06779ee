//! What running a log on the device took and gave.

use crate::wang::cache::MeasuredBatch;
use crate::wang::data::MAX_BATCH;
use crate::wang::ranker::Best;

/// How a log is run.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "what runs on a GPU reads it"))]
pub(crate) struct RunOptions {
    /// Documents that a query asks for.
    pub(crate) k: usize,
    /// Threads that post-process; with none it is done between batches.
    pub(crate) post_threads: usize,
    /// Batches whose post-processing may wait; the main thread waits, too, when there are more.
    pub(crate) backlog: usize,
    /// Queries of a batch at most, however many the buffer holds.
    pub(crate) batch_limit: usize,
}

impl RunOptions {
    /// As in the paper: one thread post-processes, and batches grow until the buffer is full.
    pub(crate) fn new(k: usize) -> Self {
        Self { k, post_threads: 1, backlog: 4, batch_limit: MAX_BATCH }
    }
}

/// What a run took and gave.
#[derive(Clone, Debug, Default)]
#[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "what runs on a GPU fills it"))]
pub(crate) struct Report {
    /// By query.
    pub(crate) answers: Vec<Best>,
    /// From the first batch's begin to the last answer.
    pub(crate) seconds: f64,
    /// Of each batch.
    pub(crate) batches: Vec<MeasuredBatch>,
    /// Queries that the CPU went on with,
    pub(crate) post_processed: usize,
    /// and the threads' seconds for them, together.
    pub(crate) post_seconds: f64,
    /// Queries that no buffer holds: a CPU answered them, on the main thread.
    pub(crate) oversized: usize,
    /// Times that the main thread waited because the backlog was full.
    pub(crate) full_backlogs: usize,
}

impl Report {
    /// Queries a second.
    pub(crate) fn qps(&self) -> f64 {
        self.answers.len() as f64 / self.seconds
    }

    /// The mean batch.
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

    /// Milliseconds of the batches, together.
    pub(crate) fn gpu_ms(&self) -> f64 {
        self.batches.iter().map(|b| b.calculation_us + b.transfer_us).sum::<f64>() / 1e3
    }

    /// Milliseconds that a query waits for its batch, in the mean over queries.
    pub(crate) fn batch_ms(&self) -> f64 {
        let weighed = self.batches.iter().map(|b| b.queries * (b.calculation_us + b.transfer_us)).sum::<f64>();
        weighed / self.batches.iter().map(|b| b.queries).sum::<f64>().max(1.0) / 1e3
    }
}
