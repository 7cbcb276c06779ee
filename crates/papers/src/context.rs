//! What experiments run on.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::{ExperimentError, Findings};
use tandem_core::index::Index;
use tandem_core::lab::Progress;
use tandem_core::query::{Mode, Query};

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

/// Logs on a real collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealLog {
    /// As people typed them: 2.8 words in the mean.
    Web,
    /// Questions, nearly all of eight words or more.
    Questions,
}

/// Gives a real collection with at most so many queries of a log; `None` where there is none here.
pub type RealSource<'a> = dyn Fn(RealLog, usize) -> Result<Option<Input>, ExperimentError> + 'a;

/// What the user chose for an experiment, and the machine may give.
pub struct Context<'a> {
    /// Where index and queries come from.
    pub source: &'a InputSource<'a>,
    /// Whether the user named an index: what `source` gives is real already.
    pub is_source_real: bool,
    /// Where a real collection comes from, beside what `source` gives.
    pub real: &'a RealSource<'a>,
    /// Told how far the experiment is.
    pub progress: &'a dyn Progress,
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
    /// PageRank, a number a line in the order of the index's documents; drawn from the seed where an experiment wants it and
    /// there is none.
    pub page_rank: Option<&'a Path>,
    /// What one experiment made that the next of its paper uses, too.
    pub kept: Kept,
}

/// One thing, of any kind, that takes long to make or much memory; a second one takes its place.
#[derive(Debug, Default)]
pub struct Kept(RefCell<Option<Rc<dyn Any>>>);

impl Kept {
    /// It, if it is of this kind.
    pub(super) fn get<T: 'static>(&self) -> Option<Rc<T>> {
        self.0.borrow().clone().and_then(|kept| kept.downcast().ok())
    }

    /// Keeps this in its place.
    pub(super) fn put<T: 'static>(&self, made: &Rc<T>) {
        self.0.replace(Some(Rc::<T>::clone(made)));
    }

    /// Keeps nothing any more.
    pub fn clear(&self) {
        self.0.replace(None);
    }
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

    /// A real collection beside a synthetic index, for what synthetic lists can't show; the findings say what it is, or
    /// that there is none.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn real_input(
        &self,
        log: RealLog,
        limit: usize,
        findings: &mut Findings,
    ) -> Result<Option<Input>, ExperimentError> {
        if self.is_source_real {
            return Ok(None);
        }
        let input = (self.real)(log, limit)?;
        match &input {
            Some(input) => findings.provenance("real", &input.name),
            None => findings.note(
                "No real collection here: lines about real lists are left out. An index of one's own \
                 gives them, or a folder of real collections.",
            ),
        }
        Ok(input)
    }

    /// Tells that so many steps begin.
    pub fn steps(&self, what: &'static str, steps: usize) -> Steps<'_> {
        self.progress.begin(what, steps as u64);
        Steps { progress: self.progress, done: 0, of: steps as u64 }
    }

    /// The mode that the user names, else the paper's.
    #[must_use]
    pub fn mode(&self, papers: Mode) -> Mode {
        self.mode.unwrap_or(papers)
    }
}

/// Steps of an experiment that are under way; dropped, they are over.
pub struct Steps<'a> {
    progress: &'a dyn Progress,
    done: u64,
    of: u64,
}

impl Steps<'_> {
    /// One more is done.
    pub fn done(&mut self) {
        self.done += 1;
        self.progress.reach(self.done, self.of);
    }
}

impl fmt::Debug for Steps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} steps", self.done, self.of)
    }
}

impl Drop for Steps<'_> {
    fn drop(&mut self) {
        self.progress.end();
    }
}
