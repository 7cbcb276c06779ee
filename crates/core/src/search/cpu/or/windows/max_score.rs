//! MaxScore: top-k disjunction in which common terms are only looked up.
//!
//! A term's **bound** is the best share that it gives any document. Once the threshold (the k-th best score so far, or
//! the seed) reaches the sum of some terms' bounds, a document with none but these terms cannot enter: they become
//! non-essential, and only documents of the other lists are candidates. The threshold rises, and so does the number of
//! non-essential terms:
//!
//! ```text
//! bounds            rare 9.1   medium 4.0   common 1.9   the 0.3        threshold
//! essential      |  rare       medium       common       the          |  0
//!                |  rare       medium                                 |  2.4 > 1.9 + 0.3
//!                |  rare                                              |  6.5 > 4.0 + 1.9 + 0.3
//! ```
//!
//! Which terms are non-essential is a matter of bounds and of cost: those that are dear to score, the common ones,
//! should be. The query's order, ascending document frequency, has them last; so only its suffixes are considered, and
//! as a gift all shares are added in the query's order. The partition is that of whole lists; windows of documents are
//! scored in bulk (see `scorer.rs`).
//!
//! The best documents tend to have the rarest term. Where its list is much shorter than the other essential ones, a
//! **pass** of its own takes it: it alone is essential, all others are looked up for its documents. Then the threshold
//! is near its end already, and the next pass takes the documents without that term, whose bound they lack: often
//! nothing is left to do.
//!
//! ```text
//! pass 1    rare: its documents    medium, common, the: looked up        threshold 0 .. 6.4
//! pass 2    rare: shuts out        medium and what is below it: 4.0 + 1.9 + 0.3 <= 6.4, done
//! ```
//!
//! Source: Turtle and Flood, "Query Evaluation: Strategies and Optimizations", 1995.

use std::ops::Range;
use std::slice;

use super::decoded_block::Window;
use super::scorer::{WindowScorer, window_docs};
use crate::search::TopK;
use crate::search::cpu::blocks::{Term, find_block};
use crate::search::cpu::scoring::Threshold;

/// A list is taken by a pass of its own if it is shorter than the other essential ones together by a factor of
/// their number to this power: its documents are looked up in each of them, and the more they are, the later their
/// bounds say no. Measured.
const LEAD_COST: u32 = 3;

/// A search by windows of documents.
#[derive(Debug)]
pub(crate) struct WindowSearch<'a> {
    /// In the query's order.
    pub(crate) terms: &'a [Term<'a>],
    /// The documents to look at.
    pub(crate) docs: Range<u32>,
    /// Documents of the whole collection.
    pub(crate) num_docs: u32,
    pub(crate) norms: &'a [f32],
    pub(crate) scorer: &'a mut WindowScorer,
    pub(crate) bounds: &'a mut WindowBounds,
    /// Must not count on an order of documents.
    pub(crate) threshold: &'a mut Threshold,
    pub(crate) best: &'a mut TopK,
}

/// What a pass knows of the terms in the window that it is at: memory for [`Window`]'s columns.
#[derive(Debug, Default)]
pub(crate) struct WindowBounds {
    bounds: Vec<f32>,
    first_blocks: Vec<u32>,
}

impl WindowSearch<'_> {
    /// Offers every document that can enter: first by the passes of those terms that lead one, then by a last pass over
    /// what they leave.
    pub(crate) fn run(&mut self) {
        for first_term in 0..self.terms.len() {
            let essential = essential_terms(&self.terms[first_term..], self.threshold);
            let Some((lead, others)) = essential.split_first() else { return };
            let (lead, num_others, others) = (postings(slice::from_ref(lead)), others.len(), postings(others));
            let leads_a_pass = lead * num_others.pow(LEAD_COST) < others;
            let (end_of_essential, scored) =
                if leads_a_pass { (first_term + 1, lead) } else { (self.terms.len(), lead + others) };
            self.pass(first_term, end_of_essential, window_docs(scored, self.num_docs as usize));
            if !leads_a_pass {
                return;
            }
        }
    }

    /// One pass over all windows, with [`Window`]'s `first_term` and `end_of_essential`.
    fn pass(&mut self, first_term: usize, end_of_essential: usize, window_docs: usize) {
        let WindowBounds { bounds, first_blocks } = &mut *self.bounds;
        bounds.clear();
        bounds.resize(self.terms.len(), 0.0);
        first_blocks.clear();
        first_blocks.resize(self.terms.len(), 0);
        let mut start = self.docs.start;
        while start < self.docs.end {
            let end = start.saturating_add(window_docs as u32).min(self.docs.end);
            for (i, term) in self.terms.iter().enumerate().skip(first_term) {
                let last_docs = term.list.last_docs();
                let block = find_block(last_docs, first_blocks[i] as usize, start);
                first_blocks[i] = block as u32;
                // The block before says where this one begins at the earliest.
                let begins = block.checked_sub(1).map_or(0, |before| last_docs[before] + 1);
                bounds[i] = if block < last_docs.len() && begins < end { term.bound } else { 0.0 };
            }
            let window = Window { start, end, bounds, first_blocks, first_term, end_of_essential };
            self.scorer.score(self.terms, self.norms, &window, self.threshold, self.best);
            start = end;
        }
    }
}

/// The postings of all these terms.
fn postings(terms: &[Term<'_>]) -> usize {
    terms.iter().map(|term| term.list.doc_freq() as usize).sum()
}

/// The first terms, up to the one from which on all bounds together don't exceed the threshold.
fn essential_terms<'t, 'a>(terms: &'t [Term<'a>], threshold: &Threshold) -> &'t [Term<'a>] {
    let mut sum = 0.0;
    let non_essential = terms.iter().rev().take_while(|term| {
        sum += term.bound;
        sum <= threshold.pruning()
    });
    &terms[..terms.len() - non_essential.count()]
}
