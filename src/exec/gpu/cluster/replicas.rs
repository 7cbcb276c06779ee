//! GPUs by queries: each has the whole index.
//!
//! A batch is cut into as many runs of requests as there are GPUs, of equally many postings. If a GPU fails, the others answer
//! its share.

use std::sync::Arc;

use super::super::GpuExecutor;
use super::drive;
use crate::exec::{Answers, ExecError, Execution, Executor, Hit, Request};
use crate::gpu::GpuError;
use crate::ids::DeviceId;
use crate::index::{Bm25, Index};
use crate::machine::Class;
use crate::query::{Mode, Query};

/// Several GPUs with the same index.
#[derive(Debug)]
pub struct GpuReplicas {
    /// Those that have not failed.
    gpus: Vec<GpuExecutor>,
    /// The one that is asked next for a query alone.
    next: usize,
    /// Why the last one failed.
    lost: Option<String>,
    /// By GPU, the answers to its share; the memory is used again.
    answers: Vec<Answers>,
}

impl GpuReplicas {
    /// Copies `index` to these GPUs.
    ///
    /// # Errors
    /// As [`GpuExecutor::new`]; [`ExecError::UnequalGpus`] if they are of several models: then equal shares would not end
    /// together.
    pub fn new(ordinals: &[DeviceId], index: &Arc<Index>, bm25: Bm25) -> Result<Self, ExecError> {
        let open = |&ordinal| GpuExecutor::on_device(ordinal, index, bm25, None, &|_, _| ());
        Self::of(ordinals.iter().map(open).collect::<Result<_, _>>()?)
    }

    /// These executors, which hold the same index.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn of(gpus: Vec<GpuExecutor>) -> Result<Self, ExecError> {
        let names: Vec<String> = gpus.iter().map(GpuExecutor::device).collect();
        match names.iter().find(|&name| *name != names[0]) {
            Some(other) => Err(ExecError::UnequalGpus(names[0].clone(), other.clone())),
            None if gpus.is_empty() => Err(GpuError::NoGpu("none was named".to_owned()).into()),
            None => Ok(Self { gpus, next: 0, lost: None, answers: Vec::new() }),
        }
    }

    /// How many GPUs have not failed.
    #[must_use]
    pub fn num_gpus(&self) -> usize {
        self.gpus.len()
    }

    /// Why the last GPU that failed did.
    #[must_use]
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Answers `batch` by all GPUs, a run of requests each. Those that fail are gone afterwards; what came of each run.
    fn run(&mut self, batch: &[Request<'_>], cuts: &[usize]) -> Vec<Result<(), ExecError>> {
        self.answers.resize_with(self.gpus.len(), Answers::default);
        let share = |((gpu, answers), cut): ((_, _), &[usize])| drive::Share {
            gpu,
            requests: batch[cut[0]..cut[1]].to_vec(),
            answers,
        };
        let mut shares: Vec<drive::Share<'_, '_>> =
            self.gpus.iter_mut().zip(&mut self.answers).zip(cuts.windows(2)).map(share).collect();
        let outcomes = if batch.len() <= drive::FEW {
            drive::by_one_thread(&mut shares)
        } else {
            drive::at_once(shares.into_iter().map(|share| || share.run()))
        };
        let mut failed = outcomes.iter().map(|outcome| match outcome {
            Err(error @ ExecError::Gpu(_)) => Some(error.to_string()),
            _ => None,
        });
        self.gpus.retain(|_| match failed.next().flatten() {
            Some(why) => {
                self.lost = Some(why);
                false
            }
            None => true,
        });
        outcomes
    }

    fn none_left(&self) -> ExecError {
        let message = self.lost.clone().unwrap_or_default();
        GpuError::Failed { doing: "every GPU has failed".to_owned(), message }.into()
    }
}

impl Executor for GpuReplicas {
    fn class(&self) -> Class {
        Class::GPU
    }

    fn device(&self) -> String {
        match self.gpus.first() {
            Some(gpu) => format!("{} x {}", self.gpus.len(), gpu.device()),
            None => String::from("no GPU left"),
        }
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        while !self.gpus.is_empty() {
            self.next = (self.next + 1) % self.gpus.len();
            match self.gpus[self.next].search(query, mode, k, hits) {
                Err(error @ ExecError::Gpu(_)) => {
                    self.lost = Some(error.to_string());
                    self.gpus.remove(self.next);
                }
                outcome => return outcome,
            }
        }
        Err(self.none_left())
    }

    fn search_batch(&mut self, batch: &[Request<'_>], answers: &mut Answers) -> Result<Execution, ExecError> {
        answers.clear();
        if self.gpus.is_empty() {
            return Err(self.none_left());
        }
        let cuts = equal_work(batch.iter().map(|request| postings(request.query)), self.gpus.len());
        let outcomes = self.run(batch, &cuts);
        let found = std::mem::take(&mut self.answers);
        for ((outcome, found), cut) in outcomes.into_iter().zip(&found).zip(cuts.windows(2)) {
            match outcome {
                Ok(()) => answers.append(found),
                // Those that are left answer its share.
                Err(ExecError::Gpu(_)) => {
                    let mut again = Answers::default();
                    self.search_batch(&batch[cut[0]..cut[1]], &mut again)?;
                    answers.append(&again);
                }
                // The request's fault, not the GPU's.
                Err(error) => return Err(error),
            }
        }
        self.answers = found;
        Ok(Execution::default())
    }
}

/// Postings in a query's lists.
fn postings(query: &Query) -> u64 {
    query.terms.iter().map(|term| u64::from(term.doc_freq)).sum()
}

/// Where to cut pieces of these lengths into `parts` runs of about equal work: `parts + 1` places, the first 0, the last their
/// number. Each piece has a fixed part, too, of about as much as the mean.
fn equal_work(lengths: impl Iterator<Item = u64>, parts: usize) -> Vec<usize> {
    let lengths: Vec<u64> = lengths.collect();
    let mean = lengths.iter().sum::<u64>() / (lengths.len().max(1) as u64);
    let mut sums = vec![0];
    for length in &lengths {
        sums.push(sums[sums.len() - 1] + length + mean + 1);
    }
    let total = sums[lengths.len()];
    (0..=parts as u64).map(|part| sums.partition_point(|&sum| sum < total * part / parts as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_of_equal_work_and_leave_nothing_out() {
        assert_eq!(equal_work([1_u64; 10].into_iter(), 2), [0, 5, 10]);
        // The long one alone: 118 against 95 with the fixed parts, where one more would make it 137 against 76.
        assert_eq!(equal_work([100, 1, 1, 1, 1, 1].into_iter(), 2)[1], 1);
        assert_eq!(equal_work(std::iter::empty(), 3), [0, 0, 0, 0]);
        for parts in 1..6 {
            let cuts = equal_work([5, 0, 9, 2, 7].into_iter(), parts);
            assert_eq!((cuts[0], cuts[parts], cuts.is_sorted()), (0, 5, true), "{cuts:?}");
        }
    }
}
