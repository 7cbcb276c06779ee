//! Bounds of sums of scores, which end the search of a document early.

use crate::search::cpu::blocks::term::{SearchScope, Term};
use crate::search::cpu::scoring::threshold::Slack;

#[derive(Debug)]
pub(crate) struct SumBounds {
    pub(crate) slack: Slack,
    /// By term: sum over it and all later terms, with a final 0.
    pub(crate) from: Vec<f32>,
    /// By term: sum over the terms between the first and it.
    pub(crate) between: Vec<f32>,
}

/// The input of an intersection.
#[derive(Clone, Copy)]
pub(crate) struct Intersection<'a> {
    pub(crate) scope: SearchScope<'a>,
    pub(crate) bounds: &'a SumBounds,
}

impl SumBounds {
    pub(super) fn fill(&mut self, terms: &[Term<'_>]) {
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
