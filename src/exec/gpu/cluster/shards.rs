//! GPUs by documents: each has the lists of its range of documents.
//!
//! ```text
//! query ──▶ its terms in part 0 ──▶ GPU 0 ──▶ k best below N/2 ──┐
//!       └─▶ its terms in part 1 ──▶ GPU 1 ──▶ k best from N/2 on ─┴──▶ k best
//! ```
//!
//! Parts keep the documents' numbers and norms; weights and the thresholds to start with are the whole's. AND+OR is decided
//! by what all parts find. A part whose GPU has failed is missing for good: every later query is refused.
//!
//! A thread a GPU puts the queries into its part's terms and asks for them; what they found is merged by the caller's.

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

/// A part of the index, on its GPU.
#[derive(Debug)]
struct Shard {
    part: Part,
    gpu: GpuExecutor,
    /// The queries of a batch in the part's terms, ...
    queries: Vec<Query>,
    /// ... how many of them are this batch's, and the places there of these: others find nothing here.
    places: Vec<usize>,
    answers: Answers,
}

/// Several GPUs, each with a part of the index.
#[derive(Debug)]
pub struct GpuShards {
    shards: Vec<Shard>,
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
            Ok(Shard { part, gpu, queries: Vec::new(), places: Vec::new(), answers: Answers::default() })
        };
        let shards = ordinals.iter().zip(parts.parts).map(shard).collect::<Result<_, ExecError>>()?;
        Ok(Self { shards, lost: None })
    }

    /// Device memory of the fullest GPU's lists and norms.
    #[must_use]
    pub fn device_bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.gpu.upload_report().device_bytes).max().unwrap_or(0)
    }

    /// Replaces `best` by the best of all parts for each request, in order; none of them is AND+OR.
    fn run(&mut self, batch: &[Request<'_>], best: &mut Answers) -> Result<(), ExecError> {
        if let Some(message) = &self.lost {
            return Err(
                GpuError::Failed { doing: "a part of the index is lost".to_owned(), message: message.clone() }.into()
            );
        }
        let outcomes = if batch.len() <= drive::FEW {
            self.shards.iter_mut().for_each(|shard| shard.translate(batch));
            let mut shares: Vec<drive::Share<'_, '_>> =
                self.shards.iter_mut().map(|shard| shard.share(batch)).collect();
            drive::by_one_thread(&mut shares)
        } else {
            drive::at_once(self.shards.iter_mut().map(|shard| {
                || {
                    shard.translate(batch);
                    shard.share(batch).run()
                }
            }))
        };
        for outcome in outcomes {
            outcome.inspect_err(|error| {
                if matches!(error, ExecError::Gpu(_)) {
                    self.lost = Some(error.to_string());
                }
            })?;
        }
        merge(&self.shards, batch, best);
        Ok(())
    }
}
impl Shard {
    /// Puts the queries of a batch into the part's terms.
    fn translate(&mut self, batch: &[Request<'_>]) {
        self.places.clear();
        for (place, request) in batch.iter().enumerate() {
            let number = self.places.len();
            if number == self.queries.len() {
                let (label, terms) = (String::new(), Vec::new());
                self.queries.push(Query { id: request.query.id, label, terms, dropped_terms: 0 });
            }
            if translate(&self.part, request, &mut self.queries[number].terms) {
                self.places.push(place);
            }
        }
    }

    /// What its GPU is asked of `batch`, whose queries have been put into its terms.
    fn share<'a>(&'a mut self, batch: &[Request<'_>]) -> drive::Share<'a, 'a> {
        let Self { gpu, queries, places, answers, .. } = self;
        let request = |(query, &place): (&'a Query, &usize)| {
            let Request { mode, k, .. } = batch[place];
            Request { query, mode, k }
        };
        drive::Share { gpu, requests: queries.iter().zip(places.iter()).map(request).collect(), answers }
    }
}

/// Replaces `terms` by a query's in a part's own terms, in the order of the whole's. `false` if it finds nothing there.
fn translate(part: &Part, request: &Request<'_>, terms: &mut Vec<QueryTerm>) -> bool {
    terms.clear();
    for term in &request.query.terms {
        match part.own_term(term.term) {
            Some(own) => {
                terms.push(QueryTerm { term: own, doc_freq: part.index.list(own).doc_freq(), qtf: term.qtf });
            }
            None if request.mode == Mode::And => return false,
            None => {}
        }
    }
    !terms.is_empty()
}

/// Replaces `best` by what is best of all that the parts have found, request by request.
fn merge(shards: &[Shard], batch: &[Request<'_>], best: &mut Answers) {
    best.clear();
    let mut found: Vec<_> =
        shards.iter().map(|shard| shard.places.iter().zip(shard.answers.iter()).peekable()).collect();
    let mut heads: Vec<&[Hit]> = Vec::with_capacity(shards.len());
    let mut hits: Vec<Hit> = Vec::new();
    let key = |hits: &[Hit]| hits.first().map(|hit| TopK::key(hit.doc.0, hit.score));
    for (place, request) in batch.iter().enumerate() {
        heads.clear();
        heads.extend(found.iter_mut().filter_map(|found| found.next_if(|&(&of, _)| of == place)).map(|(_, hits)| hits));
        hits.clear();
        while hits.len() < request.k
            && let Some(head) = heads.iter_mut().filter(|head| !head.is_empty()).max_by_key(|head| key(head))
            && let Some((&hit, rest)) = head.split_first()
        {
            hits.push(hit);
            *head = rest;
        }
        best.push(&hits);
    }
}

impl Executor for GpuShards {
    fn class(&self) -> Class {
        Class::GPU
    }

    fn device(&self) -> String {
        let name = self.shards.first().map(|shard| shard.gpu.device()).unwrap_or_default();
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
        self.run(&first, answers)?;
        // Where too few documents have all terms, those with any.
        let is_short = |(request, hits): (&Request<'_>, &[Hit])| request.mode == Mode::AndOr && hits.len() < request.k;
        let again: Vec<bool> = batch.iter().zip(answers.iter()).map(is_short).collect();
        if again.contains(&true) {
            let of_those = batch.iter().zip(&again).filter(|&(_, &again)| again);
            let second: Vec<Request<'_>> =
                of_those.map(|(request, _)| Request { mode: Mode::Or, ..*request }).collect();
            let (mut unions, mut all) = (Answers::default(), Answers::default());
            self.run(&second, &mut unions)?;
            let mut unions = unions.iter();
            for (&again, hits) in again.iter().zip(answers.iter()) {
                all.push(if again { unions.next().unwrap_or_default() } else { hits });
            }
            *answers = all;
        }
        Ok(Execution::default())
    }
}
