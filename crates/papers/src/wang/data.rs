//! What all figures stand on: documents in global order, lists, both halves of the log, and what the first half visited.

use std::rc::Rc;

use rayon::prelude::*;

use crate::wang::cache::{Admission, AdmissionPolicy, BatchMaker, Footprint, Prefixes, Sizes, Visits, Walk};
use crate::wang::lists::SortedLists;
use crate::wang::order::{Documents, GlobalOrder};
use crate::wang::page_rank;
use crate::wang::ranker::{Best, MAX_K, Ranker};
use crate::wang::ranking::Ranking;
use crate::wang::train_test_split::{Halves, RankedQuery};
use crate::{Context, ExperimentError, Findings};
use tandem_core::query::Query;

/// Documents of the synthetic collection where none is named: the largest with which every figure's own work takes less
/// than three minutes on two cores.
const DOCS: u32 = 500_000;
/// Queries at most: those of the paper's log.
const QUERIES: usize = 75_000;
/// Documents that a thread block takes at once, and so the length of a round.
pub(crate) const ROUND: usize = 256;
/// What a query takes in a batch besides lists: its descriptor and its results,
pub(crate) const FOOTPRINT: Footprint = Footprint { query_bytes: 24 + 8 * MAX_K as u64, term_bytes: 40 };
/// Queries in a batch at most, which the device's grid and the results' room are made for.
pub(crate) const MAX_BATCH: usize = 1 << 16;
/// The shares λ that are tried.
pub(super) const SHARES: [f64; 6] = [0.75, 0.8, 0.85, 0.9, 0.95, 1.0];
/// λ of figures 4, 5 and 7.
pub(super) const SHARE: f64 = 0.95;
/// What the paper's 5600 MB are of its index: 6 GB are "about 40 %".
pub(super) const MEMORY_SHARE: f64 = 0.4;

/// The policies that are compared, in the paper's order.
pub(super) fn policies(share: f64) -> [AdmissionPolicy; 3] {
    [AdmissionPolicy::Qtf, AdmissionPolicy::QtfDf, AdmissionPolicy::Vfb { share }]
}

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) lists: SortedLists,
    pub(crate) documents: Documents,
    pub(crate) ranking: Ranking,
    pub(super) train: Vec<RankedQuery>,
    pub(crate) test: Vec<RankedQuery>,
    pub(super) visits: Visits,
    /// What the first half of the training half visited: for the model, which tries it on the second.
    probe: Visits,
    /// Bytes of the lists of all terms, in the log or not: what M is a share of.
    pub(super) index_bytes: u64,
    pub(crate) k: usize,
    /// What it was made from, in words,
    name: String,
    /// and queries that were left out: those that no document answers, and those of too many terms.
    left_out: (usize, usize),
}

impl World {
    /// That of the figure before, or else made from what the user names; says in the findings what it is.
    pub(super) fn of(context: &Context<'_>, findings: &mut Findings) -> Result<Rc<Self>, ExperimentError> {
        let world = match context.kept.get() {
            Some(world) => world,
            None => {
                let world = Rc::new(Self::make(context)?);
                context.kept.put(&world);
                world
            }
        };
        world.tell(context, findings);
        Ok(world)
    }

    /// The same for who trains it anew: later figures make their own.
    pub(super) fn to_train(context: &Context<'_>, findings: &mut Findings) -> Result<Self, ExperimentError> {
        let kept = context.kept.get();
        context.kept.clear();
        let world = match kept.and_then(Rc::into_inner) {
            Some(world) => world,
            None => Self::make(context)?,
        };
        world.tell(context, findings);
        Ok(world)
    }

    fn make(context: &Context<'_>) -> Result<Self, ExperimentError> {
        check_k(context.k)?;
        let input = context.input(DOCS, QUERIES)?;
        let num_docs = input.index.num_docs();
        let page_rank = match context.page_rank {
            Some(path) => page_rank::read(path, num_docs)?,
            None => page_rank::draw(num_docs, context.seed),
        };
        let index_bytes = SortedLists::bytes_of_all_terms(&input.index);
        let ranking = Ranking::default();
        let order = GlobalOrder::of(&input.index, &ranking, &page_rank);
        let lists = SortedLists::of(&input.index, &order, &input.queries);
        let world = Self::new(lists, order.documents, ranking, &input.queries, index_bytes, context.k)?;
        Ok(Self { name: input.name, ..world })
    }

    fn tell(&self, context: &Context<'_>, findings: &mut Findings) {
        findings.provenance("input", &self.name);
        let (num_empty, num_long) = self.left_out;
        let origin = if context.page_rank.is_some() { "read" } else { "drawn" };
        findings.note(format!(
            "{} queries train, {} are measured; {num_empty} that no document answers and {num_long} of too many terms are \
             left out. The lists of all terms take {:.1} MB on the device, those of the log's {:.1} MB; PageRank is \
             {origin}. M is a share of the former.",
            self.train.len(),
            self.test.len(),
            self.index_bytes as f64 / 1e6,
            self.lists.all_bytes() as f64 / 1e6,
        ));
    }

    /// From lists that are there.
    pub(super) fn new(
        lists: SortedLists,
        documents: Documents,
        ranking: Ranking,
        queries: &[Query],
        index_bytes: u64,
        k: usize,
    ) -> Result<Self, ExperimentError> {
        let ranker = Ranker { documents: &documents, ranking };
        let halves = Halves::of(queries, &lists, &ranker)?;
        let left_out = (halves.num_empty, halves.num_long);
        let Halves { train, test, .. } = halves;
        let (visits, probe) = (Visits::new(&lists), Visits::new(&lists));
        let name = String::new();
        let mut world = Self { lists, documents, ranking, train, test, visits, probe, index_bytes, k, name, left_out };
        world.train_for(k);
        Ok(world)
    }

    /// Learns what the training half visits when its queries ask for `k` documents.
    pub(super) fn train_for(&mut self, k: usize) {
        self.k = k;
        let first = &self.train[..self.train.len().div_ceil(2)];
        self.probe = visits(&self.ranker(), &self.lists, first, k);
        self.visits = visits(&self.ranker(), &self.lists, &self.train, k);
    }

    /// What answers its queries on a CPU.
    pub(crate) fn ranker(&self) -> Ranker<'_> {
        Ranker { documents: &self.documents, ranking: self.ranking }
    }

    /// A policy's order, after what the training half did.
    pub(super) fn admission(&self, policy: AdmissionPolicy) -> Result<Admission, ExperimentError> {
        Ok(Admission::new(policy, &self.visits, &self.lists)?)
    }

    /// What the measured half makes of a cache and a buffer.
    pub(super) fn walk(&self, prefixes: &Prefixes, buffer_bytes: u64) -> Result<Walk, ExperimentError> {
        let maker = BatchMaker::new(&self.lists, prefixes, FOOTPRINT, buffer_bytes);
        Ok(maker.walk(&self.test, MAX_BATCH)?)
    }

    /// A policy's order, after what the first half of the training half did.
    pub(super) fn probe_admission(&self, policy: AdmissionPolicy) -> Result<Admission, ExperimentError> {
        Ok(Admission::new(policy, &self.probe, &self.lists)?)
    }

    /// What the second half of the training half makes of a cache and a buffer.
    pub(super) fn probe_walk(&self, prefixes: &Prefixes, buffer_bytes: u64) -> Result<Walk, ExperimentError> {
        let second = &self.train[self.train.len() / 2..];
        Ok(BatchMaker::new(&self.lists, prefixes, FOOTPRINT, buffer_bytes).walk(second, MAX_BATCH)?)
    }

    /// So much of what all lists take.
    pub(super) fn share_bytes(&self, share: f64) -> u64 {
        (self.index_bytes as f64 * share) as u64
    }
}

/// Whether a query may ask for so many documents.
fn check_k(k: usize) -> Result<(), ExperimentError> {
    if (1..=MAX_K).contains(&k) {
        return Ok(());
    }
    let message = format!(
        "k is {k}, expected 1 to {MAX_K}: the paper's kernel cuts groups of 32 candidates to k, which must halve them"
    );
    Err(ExperimentError::Input(message))
}

/// How far each query goes into each of its lists when the GPU runs it.
fn visits(ranker: &Ranker<'_>, lists: &SortedLists, queries: &[RankedQuery], k: usize) -> Visits {
    let depths_of = |query: &RankedQuery| {
        let mut depths = vec![0; query.lists.len()];
        let postings = query.postings(lists);
        ranker.rank(&postings, &query.weights, 0, ROUND, &mut Best::new(k), &mut depths);
        depths
    };
    let depths: Vec<Vec<u32>> = queries.par_iter().map(depths_of).collect();
    let mut visits = Visits::new(lists);
    for (query, depths) in queries.iter().zip(&depths) {
        for (&list, &depth) in query.lists.iter().zip(depths) {
            visits.record(list, depth);
        }
    }
    visits
}
