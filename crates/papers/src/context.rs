//! Inputs and settings of experiments.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_model::base::ids::TermId;
use tandem_model::study::Progress;
use tandem_model::traffic::Mode;

use crate::error::Result;
use crate::findings::Findings;

/// Documents of TREC GOV2, the collection that large synthetic indexes imitate.
pub(crate) const GOV2_DOCS: u32 = 25_200_000;

/// An index and queries on it.
#[derive(Debug)]
pub struct Input {
    /// The index.
    pub index: Arc<Index>,
    /// The queries; at least one.
    pub queries: Vec<Query>,
    /// A description for people.
    pub name: String,
}

/// Gives an index and queries. The arguments are defaults: documents of a synthetic index, and the most queries.
pub type InputSource<'a> = dyn Fn(u32, usize) -> Result<Input> + 'a;

/// Query logs of a real collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealLog {
    /// Keyword queries of web users, 2.8 words on average.
    Web,
    /// Questions, nearly all of eight words or more.
    Questions,
}

/// Gives a real collection with a limited number of queries of a log; `None` if this machine has none.
pub type RealSource<'a> = dyn Fn(RealLog, usize) -> Result<Option<Input>> + 'a;

/// PageRanks of documents, of which the paper only says that they are normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRank<'a> {
    /// Logarithms of the power law of the web, drawn from the seed.
    Drawn,
    /// Evenly distributed from 0 to 1, as ranks are, drawn from the seed.
    Uniform,
    /// Numbers of a file, one per line in document order.
    File(&'a Path),
}

/// Settings of the user and resources of the machine for experiments.
pub struct Context<'a> {
    /// Source of index and queries.
    pub source: &'a InputSource<'a>,
    /// Whether the user named an index, so that `source` gives real lists already.
    pub is_source_real: bool,
    /// Source of a real collection, for comparison with a synthetic index.
    pub real: &'a RealSource<'a>,
    /// Receiver of progress reports.
    pub progress: &'a dyn Progress,
    /// Maximum number of CPU cores.
    pub cores: usize,
    /// Query mode of the user; `None` selects the mode of the paper.
    pub mode: Option<Mode>,
    /// Results per query.
    pub k: usize,
    /// Duration of one measurement, in seconds.
    pub seconds: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Documents of synthetic collections; `None` selects the default of each experiment.
    pub docs: Option<u32>,
    /// Text files for experiments about indexing; synthetic text replaces an empty list.
    pub text: Vec<PathBuf>,
    /// Folder for intermediate files.
    pub scratch: PathBuf,
    /// PageRanks of Wang et al.
    pub page_rank: PageRank<'a>,
    /// Setup that one experiment leaves to the next one of its paper.
    pub shared: SharedSetup,
}

/// One value of any type that is expensive to make. A new value replaces the old one.
#[derive(Debug, Default)]
pub struct SharedSetup(RefCell<Option<Rc<dyn Any>>>);

impl SharedSetup {
    /// Returns the value if it has this type.
    #[cfg(feature = "gpu")]
    pub(crate) fn get<T: 'static>(&self) -> Option<Rc<T>> {
        self.0.borrow().clone().and_then(|value| value.downcast().ok())
    }

    #[cfg(feature = "gpu")]
    pub(crate) fn put<T: 'static>(&self, value: &Rc<T>) {
        self.0.replace(Some(Rc::<T>::clone(value)));
    }

    /// Drops the value.
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
    /// Returns the user's index and queries, else a synthetic index, and adds their description to the findings.
    ///
    /// `docs` and `limit` are defaults for the documents of a synthetic index and the number of queries.
    pub(crate) fn input(&self, docs: u32, limit: usize, findings: &mut Findings) -> Result<Input> {
        let input = (self.source)(docs, limit)?;
        findings.provenance("input", &input.name);
        Ok(input)
    }

    /// Returns a real collection if the user named no index; adds a description of it, or its absence, to the findings.
    pub(crate) fn real_input(&self, log: RealLog, limit: usize, findings: &mut Findings) -> Result<Option<Input>> {
        if self.is_source_real {
            return Ok(None);
        }
        let input = (self.real)(log, limit)?;
        match &input {
            Some(input) => findings.provenance("real", &input.name),
            None => findings.note(
                "No real collection here: rows about real lists are left out. An index named on the command line or a \
                 folder of real collections (--data) adds them.",
            ),
        }
        Ok(input)
    }

    /// Calls `run` with the experiment's input, and in a section of its own with a real collection if there is one.
    pub(crate) fn on_both(
        &self,
        (docs, limit): (u32, usize),
        real_limit: usize,
        findings: &mut Findings,
        mut run: impl FnMut(&Input, &str, &mut Findings) -> Result<()>,
    ) -> Result<()> {
        run(&self.input(docs, limit, findings)?, "", findings)?;
        if let Some(input) = self.real_input(RealLog::Web, real_limit, findings)? {
            let section = "real lists";
            findings.section(section);
            run(&input, section, findings)?;
            findings.section("");
        }
        Ok(())
    }

    pub(crate) fn steps(&self, what: &'static str, steps: usize) -> Steps<'_> {
        self.progress.begin(what, steps as u64);
        Steps { progress: self.progress, done: 0, of: steps as u64 }
    }

    /// Returns the user's mode, else that of the paper.
    pub(crate) fn mode(&self, papers: Mode) -> Mode {
        self.mode.unwrap_or(papers)
    }
}

/// Steps of an experiment. Dropping them ends the progress report.
pub(crate) struct Steps<'a> {
    progress: &'a dyn Progress,
    done: u64,
    of: u64,
}

impl Steps<'_> {
    pub(crate) fn done(&mut self) {
        self.done += 1;
        self.progress.reach(self.done, self.of);
    }
}

impl Drop for Steps<'_> {
    fn drop(&mut self) {
        self.progress.end();
    }
}

/// Returns the distinct terms of queries in ascending order.
pub(crate) fn terms_of(queries: &[Query]) -> Vec<TermId> {
    let terms: BTreeSet<TermId> = queries.iter().flat_map(|query| &query.terms).map(|term| term.term).collect();
    terms.into_iter().collect()
}
