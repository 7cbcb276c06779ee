//! Entry of the conjunctions: bounds, memory, and choice of the algorithm.

use super::bounds::{Intersection, SumBounds};
use super::candidates::Candidates;
use super::small_vs_small::Sieves;
use super::{bitmaps, small_vs_small};
use crate::search::TopK;
use crate::search::cpu::blocks::term::SearchScope;
use crate::search::cpu::scoring::threshold::Slack;

#[derive(Debug)]
pub(crate) struct Conjunction {
    bounds: SumBounds,
    sieves: Sieves,
    /// The current block of each list, for [`bitmaps`].
    blocks: Vec<usize>,
    candidates: Candidates,
}

impl Default for Conjunction {
    fn default() -> Self {
        let bounds = SumBounds { slack: Slack::of(0), from: Vec::new(), between: Vec::new() };
        Self { bounds, sieves: Sieves::default(), blocks: Vec::new(), candidates: Candidates::default() }
    }
}

impl Conjunction {
    /// Offers every document of `scope` with all terms to `best`. Terms are ordered rarest first.
    pub(crate) fn search(&mut self, scope: SearchScope<'_>, best: &mut TopK) {
        let Self { bounds, sieves, blocks, candidates } = self;
        let SearchScope { terms, norms, .. } = scope;
        bounds.fill(terms);
        candidates.reset(terms.len());
        if terms.len() > 1 && terms.iter().all(|term| term.probe.is_some()) {
            blocks.clear();
            blocks.resize(terms.len(), 0);
            bitmaps::search(Intersection { scope, bounds }, blocks, candidates, best);
        } else {
            sieves.reset(terms, norms.len());
            small_vs_small::search(Intersection { scope, bounds }, sieves, candidates, best);
        }
    }
}
