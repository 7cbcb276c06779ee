//! GPUs by documents: each has the lists of its range of documents.
//!
//! ```text
//! query ──▶ its terms in part 0 ──▶ GPU 0 ──▶ k best below N/2 ──┐
//!       └─▶ its terms in part 1 ──▶ GPU 1 ──▶ k best from N/2 on ─┴──▶ k best
//! ```
//!
//! Parts keep the documents' numbers and norms; weights and the thresholds to start with are the whole's. AND+OR is decided
//! by what all parts find. A part whose GPU has failed is missing for good: every later query is refused.

use std::sync::Arc;

use super::super::GpuExecutor;
use super::drive;
use crate::exec::cpu::multicore::{Part, PartitionedIndex};
use crate::exec::{Answers, ExecError, Execution, Executor, Hit, Request, TopK};
use crate::gpu::GpuError;
use crate::ids::DeviceId;
use crate::index::{Bm25, Index};
use crate::machine::Class;
use crate::query::{Mode, Query, QueryTerm};

/// Several GPUs, each with a part of the index.
#[derive(Debug)]
pub struct GpuShards {
    shards: Vec<(Part, GpuExecutor)>,
    /// Why nothing can be answered any more.
    lost: Option<String>,
}

impl GpuShards {
    /// Copies each part of `index` to a GPU; there are as many of the one as of the other.
    ///
    /// # Errors
    /// As [`GpuExecutor::new`].
    ///
    /// # Panics
    /// If there are not as many GPUs as parts, or none.
    pub fn new(
        ordinals: &[DeviceId],
        index: &Arc<Index>,
        parts: PartitionedIndex,
        bm25: Bm25,
    ) -> Result<Self, ExecError> {
        assert!(
            ordinals.len() == parts.parts.len() && !ordinals.is_empty(),
            "{} GPUs for {}",
            ordinals.len(),
            parts.parts.len()
        );
        let shard = |(&ordinal, part): (&DeviceId, Part)| {
            let gpu = GpuExecutor::of_part(ordinal, &part, index, bm25)?;
            Ok((part, gpu))
        };
        let shards = ordinals.iter().zip(parts.parts).map(shard).collect::<Result<_, ExecError>>()?;
        Ok(Self { shards, lost: None })
    }

    /// Device memory of the fullest GPU's lists and norms.
    #[must_use]
    pub fn device_bytes(&self) -> u64 {
        self.shards.iter().map(|(_, gpu)| gpu.upload_report().device_bytes).max().unwrap_or(0)
    }

    /// The best of all parts for each request, in order; none of them is AND+OR.
    fn run(&mut self, batch: &[Request<'_>]) -> Result<Vec<Vec<Hit>>, ExecError> {
        if let Some(message) = &self.lost {
            return Err(
                GpuError::Failed { doing: "a part of the index is lost".to_owned(), message: message.clone() }.into()
            );
        }
        // Each part's queries, and whose they are.
        let queries: Vec<Vec<(usize, Query)>> = self
            .shards
            .iter()
            .map(|(part, _)| {
                let in_part = |(place, request): (usize, &Request<'_>)| Some((place, query_of(part, request)?));
                batch.iter().enumerate().filter_map(in_part).collect()
            })
            .collect();
        let requests: Vec<Vec<Request<'_>>> = queries
            .iter()
            .map(|queries| queries.iter().map(|(place, query)| Request { query, ..batch[*place] }).collect())
            .collect();
        let mut gpus: Vec<&mut GpuExecutor> = self.shards.iter_mut().map(|(_, gpu)| gpu).collect();
        let outcomes = drive::all(&mut gpus, &requests);
        let mut found: Vec<Vec<u64>> = vec![Vec::new(); batch.len()];
        for (outcome, queries) in outcomes.into_iter().zip(&queries) {
            let answers = outcome.inspect_err(|error| {
                if matches!(error, ExecError::Gpu(_)) {
                    self.lost = Some(error.to_string());
                }
            })?;
            for ((place, _), hits) in queries.iter().zip(answers.iter()) {
                found[*place].extend(hits.iter().map(|hit| TopK::key(hit.doc.0, hit.score)));
            }
        }
        let best = |(mut keys, request): (Vec<u64>, &Request<'_>)| {
            keys.sort_unstable_by(|a, b| b.cmp(a));
            keys.truncate(request.k);
            keys.into_iter().map(TopK::hit).collect()
        };
        Ok(found.into_iter().zip(batch).map(best).collect())
    }
}

/// The query in a part's own terms, in the order of the whole's; `None` if it finds nothing there.
fn query_of(part: &Part, request: &Request<'_>) -> Option<Query> {
    let Query { id, label, terms, dropped_terms } = request.query;
    let own = |term: &QueryTerm| {
        let own = part.own_term(term.term)?;
        Some(QueryTerm { term: own, doc_freq: part.index.list(own).doc_freq(), qtf: term.qtf })
    };
    let terms: Vec<QueryTerm> = if request.mode == Mode::And {
        terms.iter().map(own).collect::<Option<_>>()?
    } else {
        terms.iter().filter_map(own).collect()
    };
    (!terms.is_empty()).then(|| Query { id: *id, label: label.clone(), terms, dropped_terms: *dropped_terms })
}

impl Executor for GpuShards {
    fn class(&self) -> Class {
        Class::GPU
    }

    fn device(&self) -> String {
        let name = self.shards.first().map(|(_, gpu)| gpu.device()).unwrap_or_default();
        format!("{} x {name}, by documents", self.shards.len())
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        let mut answers = Answers::default();
        let execution = self.search_batch(&[Request { query, mode, k }], &mut answers)?;
        hits.clear();
        hits.extend(answers.iter().flatten().copied());
        Ok(execution)
    }

    fn search_batch(&mut self, batch: &[Request<'_>], answers: &mut Answers) -> Result<Execution, ExecError> {
        answers.clear();
        let first: Vec<Request<'_>> = batch
            .iter()
            .map(|request| match request.mode {
                Mode::AndOr => Request { mode: Mode::And, ..*request },
                _ => *request,
            })
            .collect();
        let mut found = self.run(&first)?;
        // Where too few documents have all terms, those with any.
        let again: Vec<usize> =
            (0..batch.len()).filter(|&i| batch[i].mode == Mode::AndOr && found[i].len() < batch[i].k).collect();
        if !again.is_empty() {
            let second: Vec<Request<'_>> = again.iter().map(|&i| Request { mode: Mode::Or, ..batch[i] }).collect();
            for (place, hits) in again.into_iter().zip(self.run(&second)?) {
                found[place] = hits;
            }
        }
        found.iter().for_each(|hits| answers.push(hits));
        Ok(Execution::default())
    }
}
