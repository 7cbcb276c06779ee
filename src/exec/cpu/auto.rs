//! Which algorithm a disjunction should run, by what is known before it does: the lengths of its lists.
//!
//! | postings | algorithm | because |
//! | --- | --- | --- |
//! | very few | exhaustive | all else has more to set up than there is to do |
//! | up to a quarter of the documents | live ranges | bounds of windows are tight: a block's postings are far apart |
//! | more | MaxScore | in dense lists every window has a good block, so that its bounds are no better than the list's |
//!
//! One term's list has nothing but its own blocks' bounds to be skipped by, which MaxScore looks at, too. The limits
//! were measured on the 261,407 articles of the 2014 English Wikipedia with queries of TREC's efficiency log
//! (`benches/pruning.rs`); next to them, algorithms differ little.

use super::algorithm::Algorithm;
use crate::query::QueryTerm;

/// With fewer postings than this nothing pays.
const FEW_POSTINGS: u64 = 128;

/// The algorithm that should be the quickest for a query of these terms, of which there is at least one.
pub(super) fn choose(terms: &[QueryTerm], num_docs: u32) -> Algorithm {
    let postings: u64 = terms.iter().map(|term| u64::from(term.doc_freq)).sum();
    if postings < FEW_POSTINGS {
        Algorithm::Exhaustive
    } else if terms.len() > 1 && postings < u64::from(num_docs) / 4 {
        Algorithm::Ranges
    } else {
        Algorithm::Maxscore
    }
}
