//! WAND: top-k disjunction, document at a time, that skips by the bounds of terms.
//!
//! The **pivot** is the first document for which the bounds of the terms at or before it exceed the threshold (see
//! `pivot.rs`). No document before it can enter. These terms are its **members**; the next document of any other term
//! is its **limit**:
//!
//! ```text
//!              at    bound          threshold 6.0
//! common       12     1.9
//! rare         47     3.1           1.9 + 3.1 + 4.0 > 6.0: the pivot is document 90
//! medium       90     4.0           members: common, rare, medium; limit: 150
//! the         150     0.3
//! ```
//!
//! Between pivot and limit documents have only members. A member is **required** if the others' bounds do not exceed
//! the threshold without it. Then a whole run of documents is settled at once: the rarest required member leads. Its
//! postings up to the limit are scored as a block. If a share and the others' bounds exceed the threshold, the others
//! are looked up, rarest first, until the remaining bounds are too small. Cursors of the others stay behind until a
//! look-up, so postings in between are never read. Without a required member the pivot alone is settled: its members
//! move to it.
//!
//! Sources: Broder, Carmel, Herscovici, Soffer and Zien, "Efficient Query Evaluation using a Two-Level Retrieval
//! Process", CIKM 2003. Moving all cursors to the pivot at once: Fontoura et al., "Evaluation Strategies for Top-k
//! Queries over Memory-Resident Inverted Indexes", VLDB 2011 (mWAND).

use super::pivot::{Pivot, Positions};
use crate::index::Bm25;
use crate::search::TopK;
use crate::search::cpu::blocks::cursor::Cursor;
use crate::search::cpu::blocks::term::Term;
use crate::search::cpu::scoring::threshold::Threshold;
#[cfg(target_arch = "x86_64")]
use crate::search::cpu::simd::Avx2;

#[derive(Debug)]
pub(crate) struct PivotSearch<'a, const N: usize, B> {
    pub(crate) terms: &'a [Term<'a>],
    pub(crate) cursors: &'a mut [Cursor],
    pub(crate) positions: Positions<N>,
    pub(crate) norms: &'a [f32],
    pub(crate) blocks: B,
    pub(crate) threshold: &'a mut Threshold,
    pub(crate) best: &'a mut TopK,
}

/// Bounds of blocks, for algorithms that use them.
pub(crate) trait BlockBounds<const N: usize> {
    /// Whether the algorithm uses bounds of blocks.
    const ARE_USED: bool;

    /// Upper bound of the term's share in `doc`, which must not decrease between calls.
    fn bound(&mut self, lane: usize, term: &Term<'_>, doc: u32) -> f32;

    /// Settles some documents from the pivot on, if no member is required by the bounds of lists.
    fn settle(search: &mut PivotSearch<'_, N, Self>, pivot: Pivot)
    where
        Self: Sized;
}

/// The bounds of WAND: those of lists only.
#[derive(Debug)]
pub(crate) struct ListBounds;

impl<const N: usize> BlockBounds<N> for ListBounds {
    const ARE_USED: bool = false;

    #[inline(always)]
    fn bound(&mut self, _: usize, term: &Term<'_>, _: u32) -> f32 {
        term.bound
    }

    #[inline(always)]
    fn settle(search: &mut PivotSearch<'_, N, Self>, pivot: Pivot) {
        let bounds = search.positions.bounds;
        search.settle_pivot(&pivot, &bounds);
    }
}

#[inline(always)]
pub(crate) fn set_bits(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lane)
    })
}

impl<const N: usize, B: BlockBounds<N>> PivotSearch<'_, N, B> {
    /// Offers every document before `end` that can enter, in ascending order. One body is compiled twice, with AVX2 and
    /// without; both give the same bits.
    pub(crate) fn run(&mut self, end: u32) {
        #[cfg(target_arch = "x86_64")]
        if Avx2::detect().is_some() {
            // SAFETY: `detect` found these processor features.
            return unsafe { self.run_avx2(end) };
        }
        self.run_any(end);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt,bmi1")]
    fn run_avx2(&mut self, end: u32) {
        self.run_any(end);
    }

    #[inline(always)]
    fn run_any(&mut self, end: u32) {
        loop {
            let mut pivot = self.positions.find_pivot(self.threshold.pruning());
            if pivot.doc >= end {
                return;
            }
            pivot.limit = pivot.limit.min(end);
            let bounds = self.positions.bounds;
            match pivot.required(&bounds, self.threshold.pruning()) {
                Some(lead) => self.settle_run(lead, &pivot, &bounds),
                None => B::settle(self, pivot),
            }
        }
    }

    /// Settles all documents from the pivot to its limit. None can enter without the `lead`. `bounds` limit the
    /// members' shares in that range.
    #[inline(always)]
    pub(crate) fn settle_run(&mut self, lead: usize, pivot: &Pivot, bounds: &[f32; N]) {
        let term = &self.terms[lead];
        let others = pivot.sum - bounds[lead];
        let needed = self.threshold.pruning() - others;
        let mut doc = if B::ARE_USED {
            self.cursors[lead].seek_above(term, pivot.doc, pivot.limit, needed)
        } else {
            self.cursors[lead].seek(term, pivot.doc)
        };
        if doc < pivot.limit {
            loop {
                let needed = self.threshold.pruning() - others;
                let next = self.cursors[lead].next_above(term, self.norms, pivot.limit, needed, B::ARE_USED);
                let Some((doc, share)) = next else { break };
                self.complete(lead, doc, share, pivot.members, others, bounds);
            }
            doc = self.cursors[lead].least_doc();
        }
        self.positions.set(lead, doc);
    }

    /// Adds the other members' shares to the lead's while the document can enter. `others` is the sum of their bounds.
    #[inline(always)]
    fn complete(&mut self, lead: usize, doc: u32, share: f32, members: u64, others: f32, bounds: &[f32; N]) {
        let mut bound = share + others;
        // Shares replace the bounds one by one.
        let mut shares = *bounds;
        shares[lead] = share;
        let unknown = members & !(1 << lead);
        if B::ARE_USED {
            for lane in set_bits(unknown) {
                let of_block = self.blocks.bound(lane, &self.terms[lane], doc);
                bound += of_block - shares[lane];
                shares[lane] = of_block;
                if bound <= self.threshold.pruning() {
                    return;
                }
            }
        }
        for lane in set_bits(unknown) {
            let share = self.look_up(lane, doc);
            bound += share - shares[lane];
            shares[lane] = share;
            if bound <= self.threshold.pruning() {
                return;
            }
        }
        self.offer(doc, members, &shares);
    }

    /// A term's share of a document's score, or 0 if the document lacks the term.
    #[inline(always)]
    fn look_up(&mut self, lane: usize, doc: u32) -> f32 {
        let term = &self.terms[lane];
        if let Some(probe) = term.probe {
            return match probe.freq(doc) {
                0 => 0.0,
                freq => Bm25::score(term.weight, freq, self.norms[doc as usize]),
            };
        }
        let cursor = &mut self.cursors[lane];
        let at = cursor.seek(term, doc);
        self.positions.set(lane, at);
        if at == doc { cursor.share(term, self.norms) } else { 0.0 }
    }

    #[inline(always)]
    pub(crate) fn settle_pivot(&mut self, pivot: &Pivot, bounds: &[f32; N]) {
        let mut shares = [0.0; N];
        let mut bound = pivot.sum;
        for lane in set_bits(pivot.members) {
            let (term, cursor) = (&self.terms[lane], &mut self.cursors[lane]);
            let mut at = cursor.seek(term, pivot.doc);
            if at == pivot.doc {
                shares[lane] = cursor.share(term, self.norms);
                at = cursor.step();
            }
            self.positions.set(lane, at);
            bound += shares[lane] - bounds[lane];
            if bound <= self.threshold.pruning() {
                // The members that were not moved cannot exceed the threshold, so the next pivot differs.
                return;
            }
        }
        self.offer(pivot.doc, pivot.members, &shares);
    }

    /// Offers a document. The members' shares are added in the query's order.
    #[inline(always)]
    fn offer(&mut self, doc: u32, members: u64, shares: &[f32; N]) {
        let score = set_bits(members).fold(0.0, |score, lane| score + shares[lane]);
        self.threshold.offer(doc, score, self.best);
    }
}
