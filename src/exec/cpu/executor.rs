//! The executor: checks, dispatch, and scratch memory that is kept from query to query.

use std::ops::Range;
use std::sync::Arc;

use super::algorithm::Algorithm;
use super::and::Candidates;
use super::blocks::{ImpactBounds, Term};
use super::or::{Disjunction, Exhaustive, PrunedOr};
use super::scoring::fits_u16;
use super::{and, and_or};
use crate::exec::{ExecError, Execution, Executor, Hit, TopK, check_k};
use crate::files::this_machine;
use crate::ids::DocId;
use crate::index::{BlockBuffer, Bm25, Index, PostingList};
use crate::machine::Class;
use crate::query::{Mode, Query, QueryTerm};

/// Searches an index on the calling thread.
///
/// It owns all memory that searching takes, about a mebibyte and a half, and allocates nothing for a query. The norms
/// of the documents are shared among the executors of several threads: see [`CpuExecutor::clone_for_worker`].
#[derive(Debug)]
pub struct CpuExecutor {
    index: Arc<Index>,
    norms: Arc<[f32]>,
    bm25: Bm25,
    scratch: Scratch,
}

#[derive(Debug)]
struct Scratch {
    /// One for each term.
    buffers: Box<[BlockBuffer; Query::MAX_TERMS]>,
    weights: [f32; Query::MAX_TERMS],
    exhaustive: Exhaustive<f32>,
    /// For an index of impacts.
    impacts: Option<Exhaustive<u16>>,
    matches: Candidates,
    pruned: PrunedOr,
    best: TopK,
}

impl CpuExecutor {
    /// An executor for `index` with these parameters, which need not be those that the index was built with.
    #[must_use]
    pub fn new(index: Arc<Index>, bm25: Bm25) -> Self {
        let norms = bm25.norms(index.doc_lengths(), index.average_length()).into();
        Self::with_norms(index, norms, bm25)
    }

    /// As [`CpuExecutor::new`], with norms that were computed before ([`Bm25::norms`] of the same
    /// index and parameters).
    ///
    /// # Panics
    /// If there isn't one norm for each document.
    #[must_use]
    pub fn with_norms(index: Arc<Index>, norms: Arc<[f32]>, bm25: Bm25) -> Self {
        assert_eq!(norms.len(), index.num_docs() as usize, "one norm for each document");
        let scratch = Scratch {
            buffers: Box::new(std::array::from_fn(|_| BlockBuffer::default())),
            weights: [0.0; Query::MAX_TERMS],
            exhaustive: Exhaustive::default(),
            impacts: (bm25.is_impacts() && index.is_quantised()).then(Exhaustive::default),
            matches: Candidates::default(),
            pruned: PrunedOr::new(ImpactBounds::new(&index, bm25), Algorithm::default(), true),
            best: TopK::default(),
        };
        Self { index, norms, bm25, scratch }
    }

    /// Another executor for the same index and parameters, for another thread; norms are shared, scratch memory is not.
    #[must_use]
    pub fn clone_for_worker(&self) -> Self {
        self.with_index(Arc::clone(&self.index))
    }

    /// The same executor with this algorithm for OR; [`Algorithm::Auto`] if none is given.
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Self {
        self.scratch.pruned.algorithm = algorithm;
        self
    }

    /// The same executor, which starts OR from a threshold that the index knows (it does unless told
    /// otherwise), or from 0.
    #[must_use]
    pub fn with_seeds(mut self, is_seeded: bool) -> Self {
        self.scratch.pruned.is_seeded = is_seeded;
        self
    }

    /// Another executor for other lists of the same documents: a part of the index.
    ///
    /// # Panics
    /// If the index hasn't as many documents.
    pub(super) fn with_index(&self, index: Arc<Index>) -> Self {
        let PrunedOr { algorithm, is_seeded, .. } = self.scratch.pruned;
        Self::with_norms(index, Arc::clone(&self.norms), self.bm25).with_algorithm(algorithm).with_seeds(is_seeded)
    }

    /// The index that it searches.
    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    /// The norms of all documents, to share with other executors.
    #[must_use]
    pub fn norms(&self) -> &Arc<[f32]> {
        &self.norms
    }
}

impl Executor for CpuExecutor {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        this_machine()
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        check_k(k)?;
        match mode {
            Mode::And => self.run(query, Pass::And, k),
            Mode::Or => self.run(query, Pass::Or, k),
            Mode::AndOr => {
                self.run(query, Pass::And, k);
                if and_or::needs_or(self.scratch.best.len(), k, query.terms.len()) {
                    self.run(query, Pass::Or, k);
                }
            }
        }
        self.scratch.best.drain_into(hits);
        Ok(Execution::default())
    }
}

/// Which documents one pass over the lists takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Those in all lists.
    And,
    /// Those in any.
    Or,
}

/// Every document.
pub(super) const ALL_DOCS: Range<DocId> = DocId(0)..DocId::END;

/// Most queries have no more terms than this: they make so many cursors only.
const FEW_TERMS: usize = 8;

impl CpuExecutor {
    /// Runs one pass over all documents and leaves what it found in `scratch.best`.
    fn run(&mut self, query: &Query, pass: Pass, k: usize) {
        self.best().reset(k);
        self.search_range(&query.terms, pass, ALL_DOCS);
    }

    /// The best documents since its last reset.
    pub(super) fn best(&mut self) -> &mut TopK {
        &mut self.scratch.best
    }

    /// Runs one pass over the documents of `range` and offers what it finds to [`best`](Self::best): several ranges, in
    /// ascending order, find together what one pass over them all finds, bit for bit.
    ///
    /// # Panics
    /// If there is no term or too many; [`Query::prepare`] makes no such query.
    pub(super) fn search_range(&mut self, terms: &[QueryTerm], pass: Pass, range: Range<DocId>) {
        assert!((1..=Query::MAX_TERMS).contains(&terms.len()), "a query of {} terms", terms.len());
        terms.iter().for_each(|term| self.index.prefetch(term.term));
        for (weight, term) in self.scratch.weights.iter_mut().zip(terms) {
            *weight = self.bm25.weight(self.index.num_docs(), term.doc_freq, term.qtf);
        }
        if pass == Pass::Or {
            let Scratch { buffers, weights, pruned, best, .. } = &mut self.scratch;
            let weights = &weights[..terms.len()];
            let query = Disjunction { index: &self.index, terms, weights, norms: &self.norms, docs: range.clone() };
            let algorithm = pruned.choose(&query, best.k());
            if algorithm != Algorithm::Exhaustive {
                return pruned.search(algorithm, &query, buffers, best);
            }
        }
        if terms.len() <= FEW_TERMS {
            self.search_with::<FEW_TERMS>(terms, pass, range);
        } else {
            self.search_with::<{ Query::MAX_TERMS }>(terms, pass, range);
        }
    }

    /// As [`CpuExecutor::search_range`], for at most `CURSORS` terms.
    fn search_with<const CURSORS: usize>(&mut self, terms: &[QueryTerm], pass: Pass, range: Range<DocId>) {
        let Self { index, norms, scratch, .. } = self;
        let Scratch { buffers, weights, exhaustive, impacts, matches, pruned, best } = scratch;
        // Arrays, not vectors: a query allocates nothing.
        let mut given = terms.iter().zip(weights.iter());
        let prepared: [Term<'_>; CURSORS] = std::array::from_fn(|_| {
            let (list, weight) =
                given.next().map_or((PostingList::EMPTY, 0.0), |(term, &weight)| (index.list(term.term), weight));
            Term::new(list, weight, pruned.bounds)
        });
        let prepared = &prepared[..terms.len()];
        match pass {
            Pass::And => and::search(prepared, range, norms, buffers.as_mut_slice(), matches, best),
            Pass::Or => match impacts {
                Some(impacts) if fits_u16(&weights[..terms.len()]) => impacts.search(prepared, range, norms, best),
                _ => exhaustive.search(prepared, range, norms, best),
            },
        }
    }
}
