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
//! The best documents tend to have the rarest term. Where its list is much shorter than the other essential ones, a **pass** of
//! its own takes it: it alone is essential, all others are looked up for its documents. Then the floor is near the end
//! already, and the next pass takes the documents without that term, whose bound they lack: often nothing is left to do.
//!
//! ```text
//! pass 1    rare: its documents    medium, common, the: looked up        floor 0 .. 6.4
//! pass 2    rare: shuts out        medium and what is below it: 4.0 + 1.9 + 0.3 <= 6.4, done
//! ```
//!
//! Source: Turtle and Flood, "Query Evaluation: Strategies and Optimizations", 1995.

use std::ops::Range;
use std::slice;

use super::block_search::find_block;
use super::bulk::{BulkScorer, Window, window_docs};
use super::floor::Floor;
use super::term::Term;
use crate::exec::TopK;
use crate::query::Query;

/// A list is taken by a pass of its own if it is shorter than the other essential ones together by a factor of their number to
/// this power: its documents are looked up in each of them, and the more they are, the later their bounds say no. Measured.
const LEAD_COST: u32 = 3;

/// Offers every document of `docs` that can enter to `best`; terms are in the query's order. `floor` must not count on an
/// order of documents.
pub(super) fn search(
    terms: &[Term<'_>],
    docs: Range<u32>,
    num_docs: u32,
    norms: &[f32],
    bulk: &mut BulkScorer,
    floor: &mut Floor,
    best: &mut TopK,
) {
    for first in 0..terms.len() {
        let (lead, others) = match essential_terms(&terms[first..], floor) {
            [] => return,
            [lead, others @ ..] => (postings(slice::from_ref(lead)), others),
        };
        let leads_alone = lead * others.len().pow(LEAD_COST) < postings(others);
        let end_of_essential = if leads_alone { first + 1 } else { terms.len() };
        let window_docs = window_docs(lead + if leads_alone { 0 } else { postings(others) }, num_docs as usize);
        let pass = Pass { terms, docs: docs.clone(), window_docs, first_term: first, end_of_essential };
        pass.run(norms, bulk, floor, best);
        if !leads_alone {
            return;
        }
    }
}

/// The postings of all these terms.
pub(super) fn postings(terms: &[Term<'_>]) -> usize {
    terms.iter().map(|term| term.list.doc_freq() as usize).sum()
}

/// The first terms, up to the one from which on all bounds together don't exceed the floor.
pub(super) fn essential_terms<'t, 'a>(terms: &'t [Term<'a>], floor: &Floor) -> &'t [Term<'a>] {
    let mut sum = 0.0;
    let non_essential = terms.iter().rev().take_while(|term| {
        sum += term.bound;
        sum <= floor.pruning()
    });
    &terms[..terms.len() - non_essential.count()]
}

/// One pass over all windows.
#[derive(Debug)]
struct Pass<'a> {
    terms: &'a [Term<'a>],
    docs: Range<u32>,
    window_docs: usize,
    /// As a [`Window`] has them.
    first_term: usize,
    end_of_essential: usize,
}

impl Pass<'_> {
    fn run(self, norms: &[f32], bulk: &mut BulkScorer, floor: &mut Floor, best: &mut TopK) {
        let Self { terms, docs, window_docs, first_term, end_of_essential } = self;
        let mut bounds = [0.0; Query::MAX_TERMS];
        let mut first_blocks = [0; Query::MAX_TERMS];
        let mut start = docs.start;
        while start < docs.end {
            let end = start.saturating_add(window_docs as u32).min(docs.end);
            for (i, term) in terms.iter().enumerate().skip(first_term) {
                let last_docs = term.list.last_docs();
                let block = find_block(last_docs, first_blocks[i] as usize, start);
                first_blocks[i] = block as u32;
                // The block before says where this one begins at the earliest.
                let begins = block.checked_sub(1).map_or(0, |before| last_docs[before] + 1);
                bounds[i] = if block < last_docs.len() && begins < end { term.bound } else { 0.0 };
            }
            let (bounds, first_blocks) = (&bounds, &first_blocks);
            let window = Window { start, end, bounds, first_blocks, first_term, end_of_essential };
            bulk.score(terms, norms, &window, floor, best);
            start = end;
        }
    }
}
