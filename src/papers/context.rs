//! What experiments run on.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::ExperimentError;
use crate::index::Index;
use crate::query::{Mode, Query};

/// An index and queries on it.
#[derive(Debug)]
pub struct Input {
    /// The index.
    pub index: Arc<Index>,
    /// The queries; at least one.
    pub queries: Vec<Query>,
    /// What they are, in words.
    pub name: String,
}

/// Gives an index and queries. Its arguments are the experiment's own wishes, which hold unless the user has others:
/// the documents of a synthetic index, and the most queries.
pub type InputSource<'a> = dyn Fn(u32, usize) -> Result<Input, ExperimentError> + 'a;

/// What the user chose for an experiment, and the machine may give.
pub struct Context<'a> {
    /// Where index and queries come from.
    pub source: &'a InputSource<'a>,
    /// CPU cores to use at most.
    pub cores: usize,
    /// How the terms of a query combine, where not as in the paper.
    pub mode: Option<Mode>,
    /// Documents that a query asks for.
    pub k: usize,
    /// How long one measurement should last.
    pub seconds: f64,
    /// What all randomness starts from.
    pub seed: u64,
    /// Documents of synthetic collections, where not as many as an experiment would take.
    pub docs: Option<u32>,
    /// Files of text for experiments that index; synthetic ones if there are none.
    pub text: Vec<PathBuf>,
    /// A folder for what experiments make on the way.
    pub scratch: PathBuf,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("cores", &self.cores).field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl Context<'_> {
    /// The index and at most `limit` queries that the user names; else a synthetic index of `docs` documents. Both
    /// numbers are defaults.
    ///
    /// # Errors
    /// If there are none, or they can't be read or made.
    pub fn input(&self, docs: u32, limit: usize) -> Result<Input, ExperimentError> {
        (self.source)(docs, limit)
    }

    /// The mode that the user names, else the paper's.
    #[must_use]
    pub fn mode(&self, papers: Mode) -> Mode {
        self.mode.unwrap_or(papers)
    }
}
