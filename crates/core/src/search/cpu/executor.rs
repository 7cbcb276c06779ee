//! The executor: checks, dispatch, and scratch memory that is kept from query to query.

use std::ops::Range;
use std::sync::Arc;

use super::algorithm::Algorithm;
use super::and::Conjunction;
use super::blocks::{ImpactBounds, Term};
use super::or::{Exhaustive, PrunedOr};
use super::scoring::fits_u16;
use crate::base::ids::DocId;
use crate::base::machine::Class;
use crate::files::this_machine;
use crate::index::{Bm25, Index, PostingList};
use crate::query::{Mode, Query, QueryTerm};
use crate::search::{ExecError, Execution, Executor, Hit, TopK, check};

/// Searches an index on the calling thread.
///
/// It owns all memory that searching takes, about a mebibyte and a half, and allocates nothing for a query, but for those
/// of more than 64 terms or of more than all before. The norms of the documents are shared among the executors of several threads: see [`CpuExecutor::clone_for_worker`].
#[derive(Debug)]
pub struct CpuExecutor {
    index: Arc<Index>,
    norms: Arc<[f32]>,
    bm25: Bm25,
    bounds: ImpactBounds,
    scratch: Scratch,
}

/// Memory that grows with the longest query, and how disjunctions are to run.
#[derive(Debug)]
struct Scratch {
    conjunction: Conjunction,
    exhaustive: Exhaustive<f32>,
    /// For an index of impacts.
    impacts: Option<Exhaustive<u16>>,
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
            conjunction: Conjunction::default(),
            exhaustive: Exhaustive::default(),
            impacts: (bm25.is_impacts() && index.is_quantised()).then(Exhaustive::default),
            pruned: PrunedOr::new(Algorithm::default(), true),
            best: TopK::default(),
        };
        let bounds = ImpactBounds::new(&index, bm25);
        Self { index, norms, bm25, bounds, scratch }
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
    pub fn with_index(&self, index: Arc<Index>) -> Self {
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

/// Whether AND+OR runs the OR after an AND that found `found` documents for a query of `terms` terms: then web search has
/// few results with all words rather than many with some, but never an empty page. The OR starts afresh: its `k` best need
/// not contain what the AND found. For one term both are the same, so nothing is gained by the second.
pub(super) fn needs_or(found: usize, k: usize, terms: usize) -> bool {
    found < k && terms > 1
}

/// Which documents one pass over the lists takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Those in all lists.
    And,
    /// Those in any.
    Or,
}

/// Every document.
pub(super) const ALL_DOCS: Range<DocId> = DocId(0)..DocId::END;

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
    /// If there is no term, or more than [`Query::MAX_TERMS`].
    pub(super) fn search_range(&mut self, terms: &[QueryTerm], pass: Pass, range: Range<DocId>) {
        assert!((1..=Query::MAX_TERMS).contains(&terms.len()), "a query of {} terms", terms.len());
        terms.iter().for_each(|term| self.index.prefetch(term.term));
        // Arrays, not vectors, but for long queries, which take a while: most queries allocate nothing.
        match terms.len() {
            0..=8 => self.search_few::<8>(terms, pass, range),
            9..=16 => self.search_few::<16>(terms, pass, range),
            17..=32 => self.search_few::<32>(terms, pass, range),
            33..=64 => self.search_few::<64>(terms, pass, range),
            _ => self.search_many(terms, pass, range),
        }
    }

    /// As [`CpuExecutor::search_range`], for at most `MOST` terms.
    fn search_few<const MOST: usize>(&mut self, terms: &[QueryTerm], pass: Pass, range: Range<DocId>) {
        let Self { index, bm25, bounds, .. } = self;
        let mut given = terms.iter();
        let prepared: [Term<'_>; MOST] = std::array::from_fn(|_| match given.next() {
            Some(term) => prepare(index, *bm25, *bounds, term),
            None => Term::new(PostingList::EMPTY, 0.0, *bounds),
        });
        self.scratch.search(&prepared[..terms.len()], pass, range, &self.norms);
    }

    /// As [`CpuExecutor::search_range`], for any number of terms.
    fn search_many(&mut self, terms: &[QueryTerm], pass: Pass, range: Range<DocId>) {
        let Self { index, bm25, bounds, .. } = self;
        let prepared: Vec<Term<'_>> = terms.iter().map(|term| prepare(index, *bm25, *bounds, term)).collect();
        self.scratch.search(&prepared, pass, range, &self.norms);
    }
}

/// A term with its list and weight.
#[inline(always)]
fn prepare<'a>(index: &'a Index, bm25: Bm25, bounds: ImpactBounds, term: &QueryTerm) -> Term<'a> {
    Term::new(index.list(term.term), bm25.weight(index.num_docs(), term.doc_freq, term.qtf), bounds)
}

impl Scratch {
    /// Offers the documents of `range` that `pass` takes to `best`.
    fn search(&mut self, terms: &[Term<'_>], pass: Pass, range: Range<DocId>, norms: &[f32]) {
        let Self { conjunction, exhaustive, impacts, pruned, best } = self;
        if pass == Pass::And {
            return conjunction.search(terms, range, norms, best);
        }
        let algorithm = pruned.choose(terms, best.k(), norms.len());
        if algorithm != Algorithm::Exhaustive {
            return pruned.search(algorithm, terms, range, norms, best);
        }
        match impacts {
            Some(impacts) if fits_u16(terms.iter().map(|term| term.weight)) => {
                impacts.search(terms, range, norms, best);
            }
            _ => exhaustive.search(terms, range, norms, best),
        }
    }
}
