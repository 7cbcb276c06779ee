//! What running a log on the device took and gave.

use super::ranker::Best;
use super::world::MAX_BATCH;
use crate::cache::MeasuredBatch;

/// How a log is run.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "what runs on a GPU reads it"))]
pub(in crate::papers) struct RunOptions {
    /// Documents that a query asks for.
    pub(in crate::papers) k: usize,
    /// Threads that post-process; with none it is done between batches.
    pub(in crate::papers) post_threads: usize,
    /// Batches whose post-processing may wait; the main thread waits, too, when there are more.
    pub(in crate::papers) backlog: usize,
    /// Queries of a batch at most, however many the buffer holds.
    pub(in crate::papers) batch_limit: usize,
}

impl RunOptions {
    /// As in the paper: one thread post-processes, and batches grow until the buffer is full.
    pub(in crate::papers) fn new(k: usize) -> Self {
        Self { k, post_threads: 1, backlog: 4, batch_limit: MAX_BATCH }
    }
}

/// What a run took and gave.
#[derive(Clone, Debug, Default)]
#[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "what runs on a GPU fills it"))]
pub(in crate::papers) struct Report {
    /// By query.
    pub(in crate::papers) answers: Vec<Best>,
    /// From the first batch's begin to the last answer.
    pub(in crate::papers) seconds: f64,
    /// Of each batch.
    pub(in crate::papers) batches: Vec<MeasuredBatch>,
    /// Queries that the CPU went on with,
    pub(in crate::papers) post_processed: usize,
    /// and the threads' seconds for them, together.
    pub(in crate::papers) post_seconds: f64,
    /// Queries that no buffer holds: a CPU answered them, on the main thread.
    pub(in crate::papers) oversized: usize,
    /// Times that the main thread waited because the backlog was full.
    pub(in crate::papers) full_backlogs: usize,
}

impl Report {
    /// Queries a second.
    pub(in crate::papers) fn qps(&self) -> f64 {
        self.answers.len() as f64 / self.seconds
    }

    /// The mean batch.
    pub(in crate::papers) fn mean_batch(&self) -> MeasuredBatch {
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
    pub(in crate::papers) fn gpu_ms(&self) -> f64 {
        self.batches.iter().map(|b| b.calculation_us + b.transfer_us).sum::<f64>() / 1e3
    }

    /// Milliseconds that a query waits for its batch, in the mean over queries.
    pub(in crate::papers) fn batch_ms(&self) -> f64 {
        let weighed = self.batches.iter().map(|b| b.queries * (b.calculation_us + b.transfer_us)).sum::<f64>();
        weighed / self.batches.iter().map(|b| b.queries).sum::<f64>().max(1.0) / 1e3
    }
}
