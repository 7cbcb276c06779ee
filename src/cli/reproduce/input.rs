//! What experiments run on.

use std::sync::Arc;

use super::Arguments;
use crate::cli::{Failure, defaults};
use crate::files::{Provenance, this_machine};
use crate::index::Index;
use crate::query::{Mode, Query};

/// The options, and how they become an index and queries.
#[derive(Debug)]
pub(super) struct Context<'a> {
    arguments: &'a Arguments,
}

/// An index and queries on it.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) index: Arc<Index>,
    pub(super) queries: Vec<Query>,
    /// What they are, in words.
    pub(super) name: String,
}

impl<'a> Context<'a> {
    pub(super) fn new(arguments: &'a Arguments) -> Self {
        Self { arguments }
    }

    /// The index and at most `limit` queries that the user names; else a synthetic index of `docs` documents. Both
    /// numbers are defaults, which `--docs` and `--limit` replace.
    pub(super) fn input(&self, docs: u32, limit: usize) -> Result<Input, Failure> {
        let arguments = self.arguments;
        let limit = arguments.limit.map_or(limit, |limit| limit as usize);
        let (index, log, name) = match (&arguments.index, &arguments.queries) {
            (Some(index), Some(queries)) => {
                let name = format!("{}, {}", index.display(), queries.display());
                (Arc::new(Index::open(index)?), queries.clone(), name)
            }
            _ => {
                let docs = arguments.docs.unwrap_or(docs);
                let (index, log) = defaults::synthetic_index(&arguments.out, docs, arguments.seed)?;
                (index, log, format!("synthetic, {docs} documents, seed {}", arguments.seed))
            }
        };
        let mut queries = defaults::read_queries(&log, &index)?;
        queries.truncate(limit);
        if queries.is_empty() {
            return Err(Failure::input(format!("{}: no query has a term of this index", log.display())));
        }
        let name = format!("{name}; {} queries, {} postings", queries.len(), index.num_postings());
        Ok(Input { index, queries, name })
    }

    /// Cores that the machine has, or fewer if the user wants it so.
    pub(super) fn cores(&self) -> usize {
        let here = std::thread::available_parallelism().map_or(1, usize::from);
        self.arguments.cpus.map_or(here, |cpus| usize::from(cpus).min(here))
    }

    /// The mode that the user names, else the paper's.
    pub(super) fn mode(&self, papers: Mode) -> Mode {
        self.arguments.mode.unwrap_or(papers)
    }

    /// Documents that a query asks for.
    pub(super) fn k(&self) -> usize {
        self.arguments.k
    }

    /// How long one measurement should last.
    pub(super) fn seconds(&self) -> f64 {
        self.arguments.seconds
    }

    /// What all randomness starts from.
    pub(super) fn seed(&self) -> u64 {
        self.arguments.seed
    }

    /// Command, machine and seed, for files.
    pub(super) fn provenance(&self) -> Provenance {
        Provenance::new().with_command_and_machine().with("seed", self.seed())
    }

    /// The machine, in words.
    pub(super) fn machine(&self) -> String {
        format!("{} ({} used at most)", this_machine(), self.cores())
    }
}
