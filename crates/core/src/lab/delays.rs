//! The delays of a run, for percentiles, in bounded memory.
//!
//! Up to four million delays are kept as they are; more are counted by a [`Histogram`].

use crate::base::histogram::Histogram;
use crate::base::quantile::select_nearest_rank;
use crate::base::time::Nanos;

/// So many are kept one by one.
const MOST_KEPT: usize = 1 << 22;

/// Delays, in any order.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    kept: Vec<u64>,
    /// How many are kept at most; none once they are counted.
    most_kept: usize,
    counted: Histogram,
}

impl Delays {
    /// None yet, with room for so many.
    pub(super) fn with_room_for(count: usize) -> Self {
        Self { kept: Vec::with_capacity(count.min(MOST_KEPT)), most_kept: MOST_KEPT, counted: Histogram::default() }
    }

    /// None yet, and all will be counted: memory is fixed from the start.
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

    /// The delay that stands for a share of all: the [nearest rank](crate::base::quantile), or hardly longer; `None` if there are
    /// none.
    pub(super) fn nearest_rank(&mut self, share: f64) -> Option<Nanos> {
        if self.counted.is_empty() {
            return select_nearest_rank(&mut self.kept, share).map(Nanos);
        }
        self.counted.nearest_rank(share)
    }

    /// How many there are.
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
