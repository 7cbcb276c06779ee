//! Split of a log into a half that trains and a half that is measured.

use rayon::prelude::*;
use tandem_engine::query::Query;

use crate::wang::lists::{Postings, SortedLists};
use crate::wang::ranker::{Best, Ranker};
use crate::wang::ranking::{MAX_TERMS, Ranking};
use crate::{ExperimentError, Result};

/// A query in the form of the paper's methods.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankedQuery {
    /// Numbers of the lists, the shortest first.
    pub(crate) lists: Vec<u32>,
    /// (1 − α) w̄ of each list.
    pub(crate) weights: Vec<f32>,
}

impl AsRef<[u32]> for RankedQuery {
    fn as_ref(&self) -> &[u32] {
        &self.lists
    }
}

impl RankedQuery {
    pub(crate) fn new(query: &Query, lists: &SortedLists, ranking: &Ranking, num_docs: u32) -> Self {
        let doc_freqs: Vec<u32> = query.terms.iter().map(|term| term.doc_freq).collect();
        Self {
            lists: query.terms.iter().filter_map(|term| lists.number(term.term)).collect(),
            weights: ranking.weights(num_docs, &doc_freqs),
        }
    }

    pub(crate) fn postings<'a>(&self, lists: &'a SortedLists) -> Vec<Postings<'a>> {
        self.lists.iter().map(|&list| lists.list(list)).collect()
    }
}

/// Both halves, and the numbers of queries left out.
#[derive(Debug)]
pub(crate) struct TrainTestSplit {
    pub(crate) train: Vec<RankedQuery>,
    pub(crate) test: Vec<RankedQuery>,
    /// Queries that no document answers.
    pub(crate) num_empty: usize,
    /// Queries of more than [`MAX_TERMS`] terms.
    pub(crate) num_long: usize,
}

impl TrainTestSplit {
    /// Splits the queries that some document answers into their first and second half.
    pub(crate) fn of(queries: &[Query], lists: &SortedLists, ranker: &Ranker<'_>) -> Result<Self> {
        let num_docs = ranker.documents.norms.len() as u32;
        let short: Vec<&Query> = queries.iter().filter(|query| query.terms.len() <= MAX_TERMS).collect();
        let is_answered = |query: &RankedQuery| {
            let postings = query.postings(lists);
            let mut best = Best::new(1);
            // A single document decides.
            ranker.rank(&postings, &query.weights, 0, 16, &mut best, &mut vec![0; query.lists.len()]);
            !best.keys().is_empty()
        };
        let answered: Vec<RankedQuery> = short
            .par_iter()
            .map(|query| RankedQuery::new(query, lists, &ranker.ranking, num_docs))
            .filter(is_answered)
            .collect();
        let (train, test) = answered.split_at(answered.len() / 2);
        if train.is_empty() {
            let message = format!("the log has {} queries with answers, expected at least 2", answered.len());
            return Err(ExperimentError::Input(message));
        }
        Ok(Self {
            train: train.to_vec(),
            test: test.to_vec(),
            num_empty: short.len() - answered.len(),
            num_long: queries.len() - short.len(),
        })
    }
}
