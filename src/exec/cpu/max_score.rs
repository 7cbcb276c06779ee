//! MaxScore: top-k disjunction in which common terms are only looked up.
//!
//! A term's **bound** is the best share that it gives any document. Once the floor (the k-th best score so far, or the seed)
//! reaches the sum of some terms' bounds, a document with none but these terms cannot enter: they become non-essential, and
//! only documents of the other lists are candidates. The floor rises, and so does the number of non-essential terms:
//!
//! ```text
//! bounds            rare 9.1   medium 4.0   common 1.9   the 0.3        floor
//! essential      |  rare       medium       common       the          |  0
//!                |  rare       medium                                 |  2.4 > 1.9 + 0.3
//!                |  rare                                              |  6.5 > 4.0 + 1.9 + 0.3
//! ```
//!
//! Which terms are non-essential is a matter of bounds and of cost: those that are dear to score, the common ones, should be.
//! The query's order, ascending document frequency, has them last; so only its suffixes are considered, and as a gift all shares
//! are added in the query's order. The partition is that of whole lists; windows of documents are scored in bulk (see
//! [`bulk`](super::bulk)).
//!
//! Source: Turtle and Flood, "Query Evaluation: Strategies and Optimizations", 1995.

use std::ops::Range;

use super::block_search::find_block;
use super::bulk::{BulkScorer, Window};
use super::floor::Floor;
use super::term::Term;
use crate::exec::TopK;
use crate::query::Query;

/// Offers every document of `docs` that can enter to `best`, in ascending order, in windows of `window_docs`; terms are in
/// the query's order.
pub(super) fn search(
    terms: &[Term<'_>],
    docs: Range<u32>,
    window_docs: usize,
    norms: &[f32],
    bulk: &mut BulkScorer,
    floor: &mut Floor,
    best: &mut TopK,
) {
    let mut bounds = [0.0; Query::MAX_TERMS];
    let mut first_blocks = [0; Query::MAX_TERMS];
    let mut start = docs.start;
    while start < docs.end {
        let end = start.saturating_add(window_docs as u32).min(docs.end);
        for (i, term) in terms.iter().enumerate() {
            let last_docs = term.list.last_docs();
            let block = find_block(last_docs, first_blocks[i] as usize, start);
            first_blocks[i] = block as u32;
            // The block before says where this one begins at the earliest.
            let begins = block.checked_sub(1).map_or(0, |before| last_docs[before] + 1);
            bounds[i] = if block < last_docs.len() && begins < end { term.bound } else { 0.0 };
        }
        let window = Window { start, end, bounds: &bounds, first_blocks: &first_blocks };
        bulk.score(terms, norms, &window, floor, best);
        start = end;
    }
}
