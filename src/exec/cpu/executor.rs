//! The executor: checks, dispatch, and scratch memory that is kept from query to query.

use std::sync::Arc;

use crate::exec::{ExecError, Execution, Executor, Hit, MAX_K, TopK};
use crate::files::Provenance;
use crate::ids::ProcessorKind;
use crate::index::{BlockBuffer, Bm25, Index, PostingList};
use crate::query::{Mode, Query};

use super::cursor::Cursor;
use super::exhaustive::Window;
use super::{and, and_or, exhaustive};

/// Searches an index on the calling thread.
///
/// It owns all memory that searching takes, about 90 KiB, and allocates nothing for a query. The norms of the documents are
/// shared among the executors of several threads: see [`CpuExecutor::clone_for_worker`].
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
    window: Window,
    best: TopK,
}

impl CpuExecutor {
    /// An executor for `index` with these parameters, which need not be those that the index was built with.
    #[must_use]
    pub fn new(index: Arc<Index>, bm25: Bm25) -> Self {
        let norms = bm25.norms(index.doc_lengths(), index.average_length()).into();
        Self::with_norms(index, norms, bm25)
    }

    /// As [`CpuExecutor::new`], with norms that were computed before ([`Bm25::norms`] of the same index and parameters).
    ///
    /// # Panics
    /// If there isn't one norm for each document.
    #[must_use]
    pub fn with_norms(index: Arc<Index>, norms: Arc<[f32]>, bm25: Bm25) -> Self {
        assert_eq!(norms.len(), index.num_docs() as usize, "one norm for each document");
        let scratch = Scratch {
            buffers: Box::new(std::array::from_fn(|_| BlockBuffer::default())),
            weights: [0.0; Query::MAX_TERMS],
            window: Window::default(),
            best: TopK::default(),
        };
        Self { index, norms, bm25, scratch }
    }

    /// Another executor for the same index and parameters, for another thread; norms are shared, scratch memory is not.
    #[must_use]
    pub fn clone_for_worker(&self) -> Self {
        Self::with_norms(Arc::clone(&self.index), Arc::clone(&self.norms), self.bm25)
    }

    /// The norms of all documents, to share with other executors.
    #[must_use]
    pub fn norms(&self) -> &Arc<[f32]> {
        &self.norms
    }
}

impl Executor for CpuExecutor {
    fn kind(&self) -> ProcessorKind {
        ProcessorKind::Cpu
    }

    fn device(&self) -> String {
        // The same words as at the head of every file.
        Provenance::default().with_command_and_machine().get("machine").unwrap_or("CPU").to_owned()
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        if !(1..=MAX_K).contains(&k) {
            return Err(ExecError::BadK(k));
        }
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
#[derive(Clone, Copy, Debug)]
enum Pass {
    And,
    Or,
}

/// Most queries have no more terms than this: they make so many cursors only.
const FEW_TERMS: usize = 8;

impl CpuExecutor {
    /// Runs one pass from the lists' beginnings and leaves what it found in `scratch.best`.
    ///
    /// # Panics
    /// If the query has no term or too many; [`Query::prepare`] makes no such query.
    fn run(&mut self, query: &Query, pass: Pass, k: usize) {
        let num_terms = query.terms.len();
        assert!((1..=Query::MAX_TERMS).contains(&num_terms), "query {} has {num_terms} terms", query.id);
        if num_terms <= FEW_TERMS {
            self.run_with::<FEW_TERMS>(query, pass, k);
        } else {
            self.run_with::<{ Query::MAX_TERMS }>(query, pass, k);
        }
    }

    /// As [`CpuExecutor::run`], for at most `CURSORS` terms.
    fn run_with<const CURSORS: usize>(&mut self, query: &Query, pass: Pass, k: usize) {
        let Self { index, norms, bm25, scratch } = self;
        let Scratch { buffers, weights, window, best } = scratch;
        for (weight, term) in weights.iter_mut().zip(&query.terms) {
            *weight = bm25.weight(index.num_docs(), term.doc_freq, term.qtf);
        }
        // An array, not a vector: a query allocates nothing.
        let mut terms = query.terms.iter();
        let buffers = buffers.first_chunk_mut::<CURSORS>().expect("a buffer for each cursor");
        let mut cursors = buffers
            .each_mut()
            .map(|buffer| Cursor::new(terms.next().map_or(PostingList::EMPTY, |term| index.list(term.term)), buffer));
        let (cursors, weights) = (&mut cursors[..query.terms.len()], &weights[..query.terms.len()]);
        best.reset(k);
        match pass {
            Pass::And => and::search(cursors, weights, norms, best),
            Pass::Or => exhaustive::search(cursors, weights, norms, window, best),
        }
    }
}
