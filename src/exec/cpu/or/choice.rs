//! Which algorithm a disjunction should run, by what is known before it does: k and the lengths of its lists.
//!
//! | postings | algorithm | because |
//! | --- | --- | --- |
//! | up to 4 for each of the k | exhaustive | a good part of the documents enters, and pruning has nothing to skip |
//! | up to one for each 2^12 documents | exhaustive | MaxScore visits every window of documents, exhaustive jumps over gaps |
//! | more | MaxScore | rare terms lead, and what they leave is scored in bulk where pruning fails |
//!
//! The first limit was measured on the 261,407 articles of the 2014 English Wikipedia with queries of TREC's efficiency
//! log (`benches/pruning.rs`) at k of 10, 100 and 1000. MaxScore was the best single choice in the mean at each of
//! them. Bounds of windows, as Block-Max MaxScore and live ranges have them, gain in single queries what they cost in
//! others, and nothing known beforehand tells which.

use crate::exec::cpu::algorithm::Algorithm;
use crate::exec::cpu::blocks::Term;

/// With fewer postings than this for each document of the result, pruning doesn't pay.
const POSTINGS_PER_RESULT: u64 = 4;

/// With fewer postings than one for so many documents, most windows of MaxScore, of at most 2^16, are visited for a
/// handful: on five million synthetic documents exhaustive was quicker up to twice as many.
const DOCS_PER_POSTING: u64 = 1 << 12;

/// The algorithm that should be the quickest for a query of these terms, of which there is at least one,
/// in so many documents.
pub(crate) fn choose(terms: &[Term<'_>], k: usize, num_docs: usize) -> Algorithm {
    let postings: u64 = terms.iter().map(|term| u64::from(term.list.doc_freq())).sum();
    let few = (POSTINGS_PER_RESULT * k as u64).max(num_docs as u64 / DOCS_PER_POSTING);
    if postings < few { Algorithm::Exhaustive } else { Algorithm::Maxscore }
}
