//! The state of an owner that goes through its range.

use super::cursor::Cursor;
use super::index::Norms;
use super::top_k::RangeTopK;
use crate::codec::CodecError;

/// Factor of bounds before they are compared with a score, because both are sums of rounded numbers in different
/// orders. `BOUND_SLACK` in kernels/tandem.cuh explains why it is enough.
pub(crate) const BOUND_SLACK: f32 = 1.0 + 1.0 / 65536.0;

#[derive(Debug)]
pub(crate) struct Scan<'a> {
    /// One cursor per term, in the query's order.
    pub(crate) cursors: Vec<Cursor<'a>>,
    pub(crate) best: RangeTopK,
    pub(crate) norms: &'a Norms,
    pub(crate) postings_scored: u64,
}

impl Scan<'_> {
    /// Returns whether a later document with the bound `bound` may enter the top-k.
    #[inline]
    pub(crate) fn would_enter(&self, bound: f32) -> bool {
        bound * BOUND_SLACK > self.best.threshold()
    }

    /// Scores the document `doc` by all cursors at it, offers it, and moves these cursors.
    #[inline]
    pub(crate) fn take(&mut self, doc: u32) -> Result<(), CodecError> {
        let norm = self.norms.of(doc);
        let mut score = 0.0;
        for cursor in &mut self.cursors {
            if cursor.doc() == doc {
                score += cursor.score(norm)?;
                self.postings_scored += 1;
                cursor.next()?;
            }
        }
        self.best.offer(doc, score);
        Ok(())
    }

    /// Returns the cursors' places by document and then in the query's order.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.cursors.len()).collect();
        self.restore(&mut order);
        order
    }

    /// Sorts `order` again after few cursors have moved, by insertion.
    #[inline]
    pub(crate) fn restore(&self, order: &mut [usize]) {
        let key = |place: usize| (self.cursors[place].doc(), place);
        for sorted in 1..order.len() {
            let moving = order[sorted];
            let mut place = sorted;
            while place > 0 && key(order[place - 1]) > key(moving) {
                order[place] = order[place - 1];
                place -= 1;
            }
            order[place] = moving;
        }
    }
}
