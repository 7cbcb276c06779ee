//! MaxScore: top-k disjunction that only looks up common terms.
//!
//! The **bound** of a term is its best share in any document. Once the threshold (the k-th best score so far, or the
//! seed) reaches the sum of some terms' bounds, a document with only these terms cannot enter. They become
//! non-essential, and only documents of the other lists are candidates. As the threshold rises, more terms become
//! non-essential:
//!
//! ```text
//! bounds            rare 9.1   medium 4.0   common 1.9   the 0.3        threshold
//! essential      |  rare       medium       common       the          |  0
//!                |  rare       medium                                 |  2.4 > 1.9 + 0.3
//!                |  rare                                              |  6.5 > 4.0 + 1.9 + 0.3
//! ```
//!
//! Common terms are expensive to score and should be the non-essential ones. They are last in the query's order
//! (ascending document frequency), so only its suffixes are considered. This also adds all shares in the query's order.
//! Windows of documents are scored in bulk (see `scorer.rs`), with the partition of whole lists.
//!
//! The best documents tend to have the rarest term. If its list is much shorter than the other essential ones, it gets
//! a **pass** of its own: it alone is essential, and all others are looked up for its documents. This raises the
//! threshold almost to its end. The next pass takes the documents without that term, whose sum of bounds is lower, and
//! often nothing is left:
//!
//! ```text
//! pass 1    rare: its documents    medium, common, the: looked up        threshold 0 .. 6.4
//! pass 2    rare: excluded         medium, common, the: 4.0 + 1.9 + 0.3 <= 6.4, done
//! ```
//!
//! Source: Turtle and Flood, "Query Evaluation: Strategies and Optimizations", 1995.

use std::slice;

use super::decoded_block::Window;
use super::scorer::{WindowScorer, window_docs};
use crate::search::TopK;
use crate::search::cpu::blocks::search::find_block;
use crate::search::cpu::blocks::term::{SearchScope, Term};
use crate::search::cpu::scoring::threshold::Threshold;

/// A list gets a pass of its own if the other essential lists together are longer by a factor of their number to this
/// power. Each of its documents is looked up in all of them, and with more lists the bounds exclude it later. The value
/// is measured.
const LEAD_COST: u32 = 3;

pub(crate) struct WindowSearch<'a> {
    pub(crate) scope: SearchScope<'a>,
    pub(crate) scorer: &'a mut WindowScorer,
    pub(crate) bounds: &'a mut WindowBounds,
    /// Its `in_order` must be false.
    pub(crate) threshold: &'a mut Threshold,
    pub(crate) best: &'a mut TopK,
}

#[derive(Debug, Default)]
pub(crate) struct WindowBounds {
    bounds: Vec<f32>,
    first_blocks: Vec<u32>,
}

impl WindowSearch<'_> {
    /// Offers every document that can enter: first in the passes of leading terms, then in a pass over the remaining
    /// documents.
    pub(crate) fn run(&mut self) {
        let SearchScope { terms, norms, .. } = self.scope;
        for first_term in 0..terms.len() {
            let essential = essential_terms(&terms[first_term..], self.threshold);
            let Some((lead, others)) = essential.split_first() else { return };
            let (lead, num_others, others) = (postings(slice::from_ref(lead)), others.len(), postings(others));
            let leads_a_pass = lead * num_others.pow(LEAD_COST) < others;
            let (end_of_essential, scored) =
                if leads_a_pass { (first_term + 1, lead) } else { (terms.len(), lead + others) };
            self.pass(first_term, end_of_essential, window_docs(scored, norms.len()));
            if !leads_a_pass {
                return;
            }
        }
    }

    fn pass(&mut self, first_term: usize, end_of_essential: usize, window_docs: usize) {
        let WindowBounds { bounds, first_blocks } = &mut *self.bounds;
        let SearchScope { terms, mut start, end: scope_end, norms } = self.scope;
        bounds.clear();
        bounds.resize(terms.len(), 0.0);
        first_blocks.clear();
        first_blocks.resize(terms.len(), 0);
        while start < scope_end {
            let end = start.saturating_add(window_docs as u32).min(scope_end);
            for (i, term) in terms.iter().enumerate().skip(first_term) {
                let last_docs = term.list.last_docs();
                let block = find_block(last_docs, first_blocks[i] as usize, start);
                first_blocks[i] = block as u32;
                // The block before gives a lower bound of this block's first document.
                let begins = block.checked_sub(1).map_or(0, |before| last_docs[before] + 1);
                bounds[i] = if block < last_docs.len() && begins < end { term.bound } else { 0.0 };
            }
            let scope = SearchScope { terms, start, end, norms };
            let window = Window { scope, bounds, first_blocks, first_term, end_of_essential };
            self.scorer.score(&window, self.threshold, self.best);
            start = end;
        }
    }
}

fn postings(terms: &[Term<'_>]) -> usize {
    terms.iter().map(|term| term.list.doc_freq() as usize).sum()
}

/// The essential terms: all but the longest suffix whose bounds together do not exceed the threshold.
fn essential_terms<'t, 'a>(terms: &'t [Term<'a>], threshold: &Threshold) -> &'t [Term<'a>] {
    let mut sum = 0.0;
    let non_essential = terms.iter().rev().take_while(|term| {
        sum += term.bound;
        sum <= threshold.pruning()
    });
    &terms[..terms.len() - non_essential.count()]
}
