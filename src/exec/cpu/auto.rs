//! Which algorithm a disjunction should run, by what is known before it does: k and the lengths of its lists.
//!
//! | postings | algorithm | because |
//! | --- | --- | --- |
//! | up to 16 for each of the k | exhaustive | a good part of the documents enters, and pruning has nothing to skip |
//! | up to a quarter of the documents, k small | live ranges | bounds of windows are tight: a block's postings are far apart |
//! | more | MaxScore | in dense lists every window has a good block, so that its bounds are no better than the list's |
//!
//! One term's list has nothing but its own blocks' bounds to be skipped by, which MaxScore looks at, too. The limits
//! were measured on the 261,407 articles of the 2014 English Wikipedia with queries of TREC's efficiency log
//! (`benches/pruning.rs`) at k of 10, 100 and 1000; next to them, algorithms differ little.

use super::algorithm::Algorithm;
use crate::query::QueryTerm;

/// With fewer postings than this for each document of the result, pruning doesn't pay.
const POSTINGS_PER_RESULT: u64 = 16;

/// Up to this k, a few good windows say where the threshold will be.
const SMALL_K: usize = 50;

/// The algorithm that should be the quickest for a query of these terms, of which there is at least one.
pub(super) fn choose(terms: &[QueryTerm], k: usize, num_docs: u32) -> Algorithm {
    let postings: u64 = terms.iter().map(|term| u64::from(term.doc_freq)).sum();
    if postings < POSTINGS_PER_RESULT * k as u64 {
        Algorithm::Exhaustive
    } else if k <= SMALL_K && terms.len() > 1 && postings < u64::from(num_docs) / 4 {
        Algorithm::Ranges
    } else {
        Algorithm::Maxscore
    }
}
