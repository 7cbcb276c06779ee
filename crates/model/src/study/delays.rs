//! Delays of a run in bounded memory, for percentiles.
//!
//! Up to four million delays are kept as values. Beyond that a [`Histogram`] counts them.

use crate::base::histogram::Histogram;
use crate::base::quantile::select_nearest_rank;
use crate::base::time::Nanos;

/// Most delays that are kept as values.
const MOST_KEPT: usize = 1 << 22;

/// Delays, in any order.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    kept: Vec<u64>,
    /// Most delays that are kept as values; 0 once the histogram counts them.
    most_kept: usize,
    counted: Histogram,
}

impl Delays {
    /// An empty collection that expects `count` delays.
    pub(super) fn with_room_for(count: usize) -> Self {
        Self { kept: Vec::with_capacity(count.min(MOST_KEPT)), most_kept: MOST_KEPT, counted: Histogram::default() }
    }

    /// An empty collection that uses the histogram from the start, so that its memory is fixed.
    pub(super) fn counted() -> Self {
        Self { kept: Vec::new(), most_kept: 0, counted: Histogram::ready() }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, delay: Nanos) {
        if self.kept.len() < self.most_kept {
            self.kept.push(delay.0);
        } else {
            self.count(delay);
        }
    }

    #[inline(never)]
    fn count(&mut self, delay: Nanos) {
        self.most_kept = 0;
        for kept in std::mem::take(&mut self.kept) {
            self.counted.push(Nanos(kept));
        }
        self.counted.push(delay);
    }

    /// The delay at the [nearest rank](crate::base::quantile) of `share`, or slightly more; `None` without delays.
    pub(super) fn nearest_rank(&mut self, share: f64) -> Option<Nanos> {
        if self.counted.is_empty() {
            return select_nearest_rank(&mut self.kept, share).map(Nanos);
        }
        self.counted.nearest_rank(share)
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len() + self.counted.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_many_to_keep_is_counted_with_those_before() {
        let mut delays = Delays::with_room_for(1);
        delays.most_kept = 100;
        for delay in 0..1000 {
            assert_eq!(delays.counted.is_empty(), delay <= 100);
            delays.push(Nanos(delay));
        }
        assert_eq!((delays.len(), delays.kept.capacity()), (1000, 0));
        assert_eq!([0.0, 0.5, 1.0].map(|share| delays.nearest_rank(share)), [0, 499, 999].map(|at| Some(Nanos(at))));
    }
}
