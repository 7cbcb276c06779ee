//! Data of all experiments: documents in global order, lists, both halves of the log, and the visits of the first half.

use std::rc::Rc;

use rayon::prelude::*;
use tandem_engine::query::Query;

use crate::wang::cache::admission::{Admission, AdmissionPolicy};
use crate::wang::cache::batches::{BatchMaker, BatchTrace, Footprint};
use crate::wang::cache::prefixes::Prefixes;
use crate::wang::cache::sizes::Sizes;
use crate::wang::cache::visits::Visits;
use crate::wang::lists::SortedLists;
use crate::wang::order::{Documents, GlobalOrder};
use crate::wang::page_rank;
use crate::wang::ranker::{Best, MAX_K, Ranker};
use crate::wang::ranking::Ranking;
use crate::wang::train_test_split::{RankedQuery, TrainTestSplit};
use crate::{Context, ExperimentError, Findings, PageRank, Result};

/// Documents of a synthetic collection: the most with which every experiment takes less than three minutes on two
/// cores.
const DOCS: u32 = 500_000;
/// Maximum number of queries, those of the paper's log.
const QUERIES: usize = 75_000;
/// Documents of a round, which a thread block processes at once.
pub(crate) const ROUND: usize = 256;
/// Bytes of a query in a batch without lists: its descriptor and its results.
pub(crate) const FOOTPRINT: Footprint = Footprint { query_bytes: 24 + 8 * MAX_K as u64, term_bytes: 40 };
/// Maximum number of queries in a batch, which the grid of the device and the room for results support.
pub(crate) const MAX_BATCH: usize = 1 << 16;
/// Admitted shares λ of figures 6, 8 and 9.
pub(crate) const SHARES: [f64; 6] = [0.75, 0.8, 0.85, 0.9, 0.95, 1.0];
/// Admitted share λ of figures 4, 5 and 7.
pub(crate) const SHARE: f64 = 0.95;
/// Share of the paper's 5600 MB in its index: 6 GB are "about 40 %".
pub(crate) const MEMORY_SHARE: f64 = 0.4;

/// Returns the compared policies in the paper's order.
pub(crate) fn policies(share: f64) -> [AdmissionPolicy; 3] {
    [AdmissionPolicy::Qtf, AdmissionPolicy::QtfDf, AdmissionPolicy::Vfb { share }]
}

/// Input of all experiments of Wang et al.
#[derive(Debug)]
pub(crate) struct ExperimentData {
    pub(crate) lists: SortedLists,
    pub(crate) documents: Documents,
    pub(crate) ranking: Ranking,
    pub(crate) train: Vec<RankedQuery>,
    pub(crate) test: Vec<RankedQuery>,
    pub(crate) visits: Visits,
    /// Visits of the first half of the training half, from which the model predicts the second.
    probe: Visits,
    /// Bytes of the lists of all terms of the index, of which M is a share.
    pub(crate) index_bytes: u64,
    pub(crate) k: usize,
    name: String,
    /// Queries left out because no document answers them, and because they have too many terms.
    left_out: (usize, usize),
}

impl ExperimentData {
    /// Returns the data of the previous experiment, or makes it from the input; describes it in the findings.
    pub(crate) fn of(context: &Context<'_>, findings: &mut Findings) -> Result<Rc<Self>> {
        let data = match context.shared.get() {
            Some(data) => data,
            None => {
                let data = Rc::new(Self::make(context)?);
                context.shared.put(&data);
                data
            }
        };
        data.tell(context, findings);
        Ok(data)
    }

    /// Returns data for an experiment that trains it again; later experiments make their own.
    pub(crate) fn to_train(context: &Context<'_>, findings: &mut Findings) -> Result<Self> {
        let kept = context.shared.get();
        context.shared.clear();
        let data = match kept.and_then(Rc::into_inner) {
            Some(data) => data,
            None => Self::make(context)?,
        };
        data.tell(context, findings);
        Ok(data)
    }

    /// Makes data with the user's PageRanks.
    fn make(context: &Context<'_>) -> Result<Self> {
        Self::make_with(context, context.page_rank)
    }

    pub(crate) fn make_with(context: &Context<'_>, page_rank: PageRank<'_>) -> Result<Self> {
        check_k(context.k)?;
        let input = (context.source)(DOCS, QUERIES)?;
        let num_docs = input.index.num_docs();
        let page_rank = match page_rank {
            PageRank::File(path) => page_rank::read(path, num_docs)?,
            PageRank::Drawn => page_rank::draw(num_docs, context.seed),
            PageRank::Uniform => page_rank::draw_uniform(num_docs, context.seed),
        };
        let index_bytes = SortedLists::bytes_of_all_terms(&input.index);
        let ranking = Ranking::default();
        let order = GlobalOrder::of(&input.index, &ranking, &page_rank);
        let lists = SortedLists::of(&input.index, &order, &input.queries);
        let data = Self::new(lists, order.documents, ranking, &input.queries, index_bytes, context.k)?;
        Ok(Self { name: input.name, ..data })
    }

    fn tell(&self, context: &Context<'_>, findings: &mut Findings) {
        findings.provenance("input", &self.name);
        let (num_empty, num_long) = self.left_out;
        let origin = match context.page_rank {
            PageRank::File(_) => "read",
            PageRank::Drawn => "drawn",
            PageRank::Uniform => "uniform",
        };
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

    /// Splits a log and learns visits on existing lists.
    pub(crate) fn new(
        lists: SortedLists,
        documents: Documents,
        ranking: Ranking,
        queries: &[Query],
        index_bytes: u64,
        k: usize,
    ) -> Result<Self> {
        let ranker = Ranker { documents: &documents, ranking };
        let halves = TrainTestSplit::of(queries, &lists, &ranker)?;
        let left_out = (halves.num_empty, halves.num_long);
        let TrainTestSplit { train, test, .. } = halves;
        let (visits, probe) = (Visits::new(&lists), Visits::new(&lists));
        let name = String::new();
        let mut data = Self { lists, documents, ranking, train, test, visits, probe, index_bytes, k, name, left_out };
        data.train_for(k);
        Ok(data)
    }

    /// Learns the visits of the training half for queries of `k` results.
    pub(crate) fn train_for(&mut self, k: usize) {
        self.k = k;
        let first = &self.train[..self.train.len().div_ceil(2)];
        self.probe = visits(&self.ranker(), &self.lists, first, k);
        self.visits = visits(&self.ranker(), &self.lists, &self.train, k);
    }

    /// Returns the ranker that answers queries on a CPU.
    pub(crate) fn ranker(&self) -> Ranker<'_> {
        Ranker { documents: &self.documents, ranking: self.ranking }
    }

    /// Returns the order of a policy, learned from the training half.
    pub(crate) fn admission(&self, policy: AdmissionPolicy) -> Result<Admission> {
        Ok(Admission::new(policy, &self.visits, &self.lists)?)
    }

    /// Returns the batches of the measured half for a cache and a buffer.
    pub(crate) fn trace(&self, prefixes: &Prefixes, buffer_bytes: u64) -> Result<BatchTrace> {
        let maker = BatchMaker::new(&self.lists, prefixes, FOOTPRINT, buffer_bytes);
        Ok(maker.trace(&self.test, MAX_BATCH)?)
    }

    /// Returns the order of a policy, learned from the first half of the training half.
    pub(crate) fn probe_admission(&self, policy: AdmissionPolicy) -> Result<Admission> {
        Ok(Admission::new(policy, &self.probe, &self.lists)?)
    }

    /// Returns the batches of the second half of the training half for a cache and a buffer.
    pub(crate) fn probe_trace(&self, prefixes: &Prefixes, buffer_bytes: u64) -> Result<BatchTrace> {
        let second = &self.train[self.train.len() / 2..];
        Ok(BatchMaker::new(&self.lists, prefixes, FOOTPRINT, buffer_bytes).trace(second, MAX_BATCH)?)
    }

    /// Returns a share of the bytes of all lists.
    pub(crate) fn share_bytes(&self, share: f64) -> u64 {
        (self.index_bytes as f64 * share) as u64
    }
}

fn check_k(k: usize) -> Result<()> {
    if (1..=MAX_K).contains(&k) {
        return Ok(());
    }
    let message = format!(
        "k is {k}, expected 1 to {MAX_K}: the paper's kernel cuts groups of 32 candidates to k, which must halve them"
    );
    Err(ExperimentError::Input(message))
}

/// Returns how far each query reads each of its lists when the GPU runs it.
pub(crate) fn depths(ranker: &Ranker<'_>, lists: &SortedLists, queries: &[RankedQuery], k: usize) -> Vec<Vec<u32>> {
    let depths_of = |query: &RankedQuery| {
        let mut depths = vec![0; query.lists.len()];
        let postings = query.postings(lists);
        ranker.rank(&postings, &query.weights, 0, ROUND, &mut Best::new(k), &mut depths);
        depths
    };
    queries.par_iter().map(depths_of).collect()
}

/// Counts the visits of queries to each list.
fn visits(ranker: &Ranker<'_>, lists: &SortedLists, queries: &[RankedQuery], k: usize) -> Visits {
    let mut visits = Visits::new(lists);
    for (query, depths) in queries.iter().zip(depths(ranker, lists, queries, k)) {
        for (&list, depth) in query.lists.iter().zip(depths) {
            visits.record(list, depth);
        }
    }
    visits
}
