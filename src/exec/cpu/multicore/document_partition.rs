//! DOCP: every core has its range of the documents, and all work on the same query.
//!
//! The simplest way to share a query. With one index (DOCP-UI) each core begins in the middle of the lists, which costs it
//! one search a list; with an index for each range (DOCP-PI) lists begin where the core does. A query is as slow as its
//! slowest range, and all cores wait for that one.

use std::ops::Range;
use std::sync::Arc;

use super::board::{Board, Taking};
use super::cores::Cores;
use super::hand::{ABSENT, Hand};
use super::partition::Partition;
use super::team::Team;
use crate::exec::cpu::CpuExecutor;
use crate::exec::{ExecError, Execution, Executor, Hit};
use crate::ids::{ProcessorKind, TermId};
use crate::index::{BLOCK_LEN, Index, IndexBuilder, IndexError, PostingList};
use crate::query::{Mode, Query};

/// Searches with all cores of a team, each on its own documents.
#[derive(Debug)]
pub struct DocumentPartitioned {
    team: Team,
    name: &'static str,
}

impl DocumentPartitioned {
    /// DOCP-UI: `workers` cores share the index of `executor`. The caller is one of them and should run on core
    /// `first_core`; the others follow it.
    ///
    /// # Errors
    /// If the system gives no thread.
    ///
    /// # Panics
    /// If there is no worker.
    pub fn unified(
        executor: &CpuExecutor,
        workers: usize,
        cores: &Cores,
        first_core: usize,
    ) -> Result<Self, ExecError> {
        let hands = (0..workers).map(|number| Hand::new(number, 1, executor.clone_for_worker(), None));
        Self::spawn(hands.collect(), cores, first_core, "DOCP-UI")
    }

    /// DOCP-PI: a core for each part of `parts`, which were made of the index of `executor`.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn physical(
        executor: &CpuExecutor,
        parts: &PartitionedIndex,
        cores: &Cores,
        first_core: usize,
    ) -> Result<Self, ExecError> {
        let hands = parts.parts.iter().enumerate().map(|(number, part)| {
            let own = executor.with_index(Arc::clone(&part.index));
            Hand::new(number, 1, own, Some(Arc::clone(&part.terms)))
        });
        Self::spawn(hands.collect(), cores, first_core, "DOCP-PI")
    }

    fn spawn(mut hands: Vec<Hand>, cores: &Cores, first_core: usize, name: &'static str) -> Result<Self, ExecError> {
        assert!(!hands.is_empty(), "a team of nobody");
        let board = Board::new(1, hands.len(), Partition::Documents { parts: hands.len() as u32 }, Taking::Own);
        let hand = hands.remove(0);
        Ok(Self { team: Team::spawn(board, hand, hands, cores, first_core)?, name })
    }
}

impl Executor for DocumentPartitioned {
    fn kind(&self) -> ProcessorKind {
        ProcessorKind::Cpu
    }

    fn device(&self) -> String {
        format!("{}, {} by {}", self.team.hand.executor.device(), self.team.num_cores(), self.name)
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        self.team.search(query, mode, k, hits)?;
        Ok(Execution::default())
    }

    fn num_cores(&self) -> usize {
        self.team.num_cores()
    }
}

/// An index cut by documents into parts, each an index of its own.
///
/// Documents keep their numbers and lengths, so that norms and results are those of the whole.
#[derive(Debug)]
pub struct PartitionedIndex {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    index: Arc<Index>,
    /// Its terms, by those of the whole.
    terms: Arc<[u32]>,
}

impl PartitionedIndex {
    /// Cuts `index` into `parts` ranges of equal length, on as many threads: the lists of terms that `is_asked` takes, and no
    /// others, which count as empty. With all of them it takes as much memory again as the index.
    ///
    /// # Errors
    /// If there is no room for temporary files.
    pub fn build(index: &Index, parts: usize, is_asked: impl Fn(TermId) -> bool + Sync) -> Result<Self, IndexError> {
        let is_asked = &is_asked;
        let num_docs = u64::from(index.num_docs());
        let bound = |part: usize| (num_docs * part as u64 / parts as u64) as u32;
        let parts = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..parts)
                .map(|part| scope.spawn(move || Part::build(index, bound(part)..bound(part + 1), is_asked)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Result<_, _>>()
        })?;
        Ok(Self { parts })
    }
}

impl Part {
    /// The lists of some terms, as far as they are inside of `docs`.
    fn build(index: &Index, docs: Range<u32>, is_asked: impl Fn(TermId) -> bool) -> Result<Self, IndexError> {
        let mut builder = IndexBuilder::new(index.doc_lengths().to_vec(), Vec::new(), index.built_with());
        let mut terms = vec![ABSENT; index.num_terms() as usize];
        let (mut own_terms, mut postings) = (0, Vec::new());
        for (term, own) in (0..).zip(&mut terms).filter(|&(term, _)| is_asked(TermId(term))) {
            postings.clear();
            read_range(index.list(TermId(term)), &docs, &mut postings);
            if !postings.is_empty() {
                // A number's digits: in byte order as the terms are, and shorter than most words.
                builder.add(&format!("{term:08x}"), &postings)?;
                *own = own_terms;
                own_terms += 1;
            }
        }
        if own_terms == 0 {
            // An index needs a list; this one is never asked for.
            builder.add("nothing", &[(docs.start.min(index.num_docs() - 1), 1)])?;
        }
        let dir = tempfile::tempdir().map_err(|source| IndexError::Io { path: std::env::temp_dir(), source })?;
        builder.write(dir.path())?;
        // The file stays mapped after its folder is gone.
        Ok(Self { index: Arc::new(Index::open(dir.path())?), terms: terms.into() })
    }
}

/// Appends the postings of `list` inside of `range`.
fn read_range(list: PostingList<'_>, range: &Range<u32>, postings: &mut Vec<(u32, u32)>) {
    let (mut docs, mut freqs) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
    let first = list.last_docs().partition_point(|&last| last < range.start);
    for block in first..list.num_blocks() {
        let len = list.decode_docs(block, &mut docs);
        if docs[0] >= range.end {
            return;
        }
        list.decode_freqs(block, &mut freqs);
        let pairs = docs[..len].iter().zip(&freqs).filter(|(doc, _)| range.contains(*doc));
        postings.extend(pairs.map(|(&doc, &freq)| (doc, freq)));
    }
}
