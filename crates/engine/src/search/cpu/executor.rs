//! The CPU executor: checks, dispatch, and scratch memory.

use std::ops::Range;
use std::sync::Arc;

use tandem_base::base::ids::DocId;
use tandem_base::base::machine::Class;
use tandem_base::files::this_machine;
use tandem_base::traffic::Mode;

use super::algorithm::Algorithm;
use super::and::conjunction::Conjunction;
use super::blocks::term::{ImpactBounds, SearchScope, Term};
use super::or::exhaustive::Exhaustive;
use super::or::pruned::PrunedOr;
use super::scoring::accumulator::fits_u16;
use crate::index::{Bm25, Index, PostingList};
use crate::query::{Query, QueryTerm};
use crate::search::{ExecError, Execution, Executor, Hit, TopK, check};

/// Searches an index on the calling thread.
///
/// It owns about 1.5 MiB of scratch memory and allocates nothing per query, except for queries of more than 64 terms or
/// more than all earlier ones. Executors of several threads share the norms: see [`CpuExecutor::clone_for_worker`].
#[derive(Debug)]
pub struct CpuExecutor {
    index: Arc<Index>,
    norms: Arc<[f32]>,
    bm25: Bm25,
    bounds: ImpactBounds,
    scratch: Scratch,
}

/// Memory that grows with the longest query, and the settings of disjunctions.
#[derive(Debug)]
struct Scratch {
    conjunction: Conjunction,
    exhaustive: Exhaustive<f32>,
    /// Present for an index of impacts.
    impacts: Option<Exhaustive<u16>>,
    pruned: PrunedOr,
    best: TopK,
}

impl CpuExecutor {
    /// An executor for `index`. The parameters may differ from those that the index was built with.
    pub fn new(index: Arc<Index>, bm25: Bm25) -> Self {
        let norms = bm25.norms(index.doc_lengths(), index.average_length()).into();
        Self::with_norms(index, norms, bm25)
    }

    /// Like [`CpuExecutor::new`], with precomputed norms: [`Bm25::norms`] of the same index and parameters. Panics if
    /// the number of norms is not the number of documents.
    pub fn with_norms(index: Arc<Index>, norms: Arc<[f32]>, bm25: Bm25) -> Self {
        assert_eq!(norms.len(), index.num_docs() as usize, "one norm for each document");
        let scratch = Scratch {
            conjunction: Conjunction::default(),
            exhaustive: Exhaustive::default(),
            impacts: (bm25 == Bm25::IMPACTS && index.is_quantised()).then(Exhaustive::default),
            pruned: PrunedOr::new(Algorithm::default(), true),
            best: TopK::default(),
        };
        let bounds = ImpactBounds::new(&index, bm25);
        Self { index, norms, bm25, bounds, scratch }
    }

    /// Another executor for the same index and parameters on another thread. Both share the norms.
    pub fn clone_for_worker(&self) -> Self {
        let PrunedOr { algorithm, is_seeded, .. } = self.scratch.pruned;
        Self::with_norms(Arc::clone(&self.index), Arc::clone(&self.norms), self.bm25)
            .with_algorithm(algorithm)
            .with_seeds(is_seeded)
    }

    /// Sets the algorithm for OR, by default [`Algorithm::Auto`].
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Self {
        self.scratch.pruned.algorithm = algorithm;
        self
    }

    /// Sets whether OR starts from a threshold that the index knows (the default), or from 0.
    #[must_use]
    pub fn with_seeds(mut self, is_seeded: bool) -> Self {
        self.scratch.pruned.is_seeded = is_seeded;
        self
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The norms of all documents.
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
        check(query, k)?;
        match mode {
            Mode::And => self.run(query, Pass::And, k),
            Mode::Or => self.run(query, Pass::Or, k),
            Mode::AndOr => {
                self.run(query, Pass::And, k);
                if needs_or(self.scratch.best.len(), k, query.terms.len()) {
                    self.run(query, Pass::Or, k);
                }
            }
        }
        self.scratch.best.drain_into(hits);
        Ok(Execution::default())
    }
}

/// Whether AND+OR runs the OR after an AND that found `found` documents. Web search prefers few results with all words,
/// but never an empty page. The OR is independent: its `k` best need not contain the AND's. For one term both passes
/// are equal.
pub(crate) fn needs_or(found: usize, k: usize, terms: usize) -> bool {
    found < k && terms > 1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    And,
    Or,
}

pub(crate) const ALL_DOCS: Range<DocId> = DocId(0)..DocId::END;

impl CpuExecutor {
    fn run(&mut self, query: &Query, pass: Pass, k: usize) {
        self.best().reset(k);
        self.search_range(&query.terms, pass, ALL_DOCS);
    }

    pub(crate) fn best(&mut self) -> &mut TopK {
        &mut self.scratch.best
    }

    /// Runs one pass over the documents of `range` and offers them to [`best`](Self::best). Consecutive ranges together
    /// give the bits of one pass over all documents. Panics if there is no term, or more than [`Query::MAX_TERMS`].
    pub(crate) fn search_range(&mut self, terms: &[QueryTerm], pass: Pass, range: Range<DocId>) {
        assert!((1..=Query::MAX_TERMS).contains(&terms.len()), "a query of {} terms", terms.len());
        terms.iter().for_each(|term| self.index.prefetch(term.term));
        // Arrays instead of vectors avoid an allocation for most queries.
        match terms.len() {
            0..=8 => self.search_few::<8>(terms, pass, range),
            9..=16 => self.search_few::<16>(terms, pass, range),
            17..=32 => self.search_few::<32>(terms, pass, range),
            33..=64 => self.search_few::<64>(terms, pass, range),
            _ => self.search_many(terms, pass, range),
        }
    }

    fn search_few<const MOST: usize>(&mut self, terms: &[QueryTerm], pass: Pass, range: Range<DocId>) {
        let Self { index, bm25, bounds, .. } = self;
        let mut given = terms.iter();
        let prepared: [Term<'_>; MOST] = std::array::from_fn(|_| match given.next() {
            Some(term) => prepare(index, *bm25, *bounds, term),
            None => Term::new(PostingList::EMPTY, 0.0, *bounds),
        });
        let (start, end) = (range.start.0, range.end.0);
        self.scratch.search(SearchScope { terms: &prepared[..terms.len()], start, end, norms: &self.norms }, pass);
    }

    fn search_many(&mut self, terms: &[QueryTerm], pass: Pass, range: Range<DocId>) {
        let Self { index, bm25, bounds, .. } = self;
        let prepared: Vec<Term<'_>> = terms.iter().map(|term| prepare(index, *bm25, *bounds, term)).collect();
        let (start, end) = (range.start.0, range.end.0);
        self.scratch.search(SearchScope { terms: &prepared, start, end, norms: &self.norms }, pass);
    }
}

#[inline(always)]
fn prepare<'a>(index: &'a Index, bm25: Bm25, bounds: ImpactBounds, term: &QueryTerm) -> Term<'a> {
    Term::new(index.list(term.term), bm25.weight(index.num_docs(), term.doc_freq, term.qtf), bounds)
}

impl Scratch {
    fn search(&mut self, scope: SearchScope<'_>, pass: Pass) {
        let Self { conjunction, exhaustive, impacts, pruned, best } = self;
        if pass == Pass::And {
            return conjunction.search(scope, best);
        }
        if pruned.choose(scope.terms, best.k(), scope.norms.len()) == Algorithm::Maxscore {
            return pruned.search(scope, best);
        }
        match impacts {
            Some(impacts) if fits_u16(scope.terms.iter().map(|term| term.weight)) => impacts.search(scope, best),
            _ => exhaustive.search(scope, best),
        }
    }
}
