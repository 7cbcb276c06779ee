//! One conjunction: what is known before it runs, the memory that it takes, and the way that it goes.

use std::ops::Range;

use super::candidates::Candidates;
use super::small_vs_small::Sieves;
use super::{bitmaps, small_vs_small};
use crate::base::ids::DocId;
use crate::search::TopK;
use crate::search::cpu::blocks::Term;
use crate::search::cpu::scoring::Slack;

/// Memory for conjunctions, kept from query to query; it grows with the longest.
#[derive(Debug)]
pub(crate) struct Conjunction {
    bounds: SumBounds,
    sieves: Sieves,
    /// For [`bitmaps`]: the block in which each list stands.
    blocks: Vec<usize>,
    candidates: Candidates,
}

/// Bounds of sums of some terms' shares.
#[derive(Debug)]
pub(super) struct SumBounds {
    pub(super) slack: Slack,
    /// By term: of it and those after it. One more, 0, stands at the end.
    pub(super) from: Vec<f32>,
    /// By term: of those between the first and it.
    pub(super) between: Vec<f32>,
}

impl Default for Conjunction {
    fn default() -> Self {
        let bounds = SumBounds { slack: Slack::of(0), from: Vec::new(), between: Vec::new() };
        Self { bounds, sieves: Sieves::default(), blocks: Vec::new(), candidates: Candidates::default() }
    }
}

impl Conjunction {
    /// Offers every document in `range` of all lists to `best`. Terms are in the query's order: rarest first.
    pub(crate) fn search(&mut self, terms: &[Term<'_>], range: Range<DocId>, norms: &[f32], best: &mut TopK) {
        let Self { bounds, sieves, blocks, candidates } = self;
        bounds.fill(terms);
        candidates.reset(terms.len());
        if terms.len() > 1 && terms.iter().all(|term| term.probe.is_some()) {
            blocks.clear();
            blocks.resize(terms.len(), 0);
            bitmaps::search(terms, range, bounds, norms, blocks, candidates, best);
        } else {
            sieves.reset(terms, norms.len());
            small_vs_small::search(terms, range, bounds, norms, sieves, candidates, best);
        }
    }
}

impl SumBounds {
    fn fill(&mut self, terms: &[Term<'_>]) {
        self.slack = Slack::of(terms.len());
        self.from.clear();
        self.from.resize(terms.len() + 1, 0.0);
        self.between.clear();
        self.between.resize(terms.len(), 0.0);
        for (t, term) in terms.iter().enumerate().rev() {
            self.from[t] = self.from[t + 1] + term.bound;
        }
        for t in 2..terms.len() {
            self.between[t] = self.between[t - 1] + terms[t - 1].bound;
        }
    }
}
