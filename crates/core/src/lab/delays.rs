//! The delays of a run, for percentiles, in bounded memory.
//!
//! Up to four million delays are kept as they are. What is more is counted by buckets, each a 4096th of its octave wide, that
//! remember the longest delay in them: a percentile is then still a delay that a query had, at most 1/4096 longer than the one
//! of that rank.
//!
//! ```text
//!   bucket      …  |  4096 · 2^e + m · 2^e  …  + 2^e  |  …        octave e, bucket m of 4096
//! ```

use crate::base::quantile::{rank, select_nearest_rank};
use crate::base::time::Nanos;

/// So many are kept one by one.
const MOST_KEPT: usize = 1 << 22;
/// Buckets of an octave: 2 to this power.
const BITS: u32 = 12;

/// Delays, in any order.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    kept: Vec<u64>,
    /// How many are kept at most; none once there are buckets.
    most_kept: usize,
    /// By bucket, how many and the longest; empty as long as all are kept.
    buckets: Vec<(u64, u64)>,
}

impl Delays {
    /// None yet, with room for so many.
    pub(super) fn with_room_for(count: usize) -> Self {
        Self { kept: Vec::with_capacity(count.min(MOST_KEPT)), most_kept: MOST_KEPT, buckets: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, delay: Nanos) {
        if self.kept.len() < self.most_kept {
            self.kept.push(delay.0);
        } else {
            self.add(delay.0);
        }
    }

    #[inline(never)]
    fn add(&mut self, delay: u64) {
        if self.buckets.is_empty() {
            self.most_kept = 0;
            self.buckets = vec![(0, 0); bucket(u64::MAX) + 1];
            for kept in std::mem::take(&mut self.kept) {
                count(&mut self.buckets, kept);
            }
        }
        count(&mut self.buckets, delay);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.kept.len() + self.buckets.iter().map(|(count, _)| *count as usize).sum::<usize>()
    }

    /// The delay that stands for a share of all: the [nearest rank](crate::base::quantile), or hardly longer; `None` if there are
    /// none.
    pub(super) fn nearest_rank(&mut self, share: f64) -> Option<Nanos> {
        if self.buckets.is_empty() {
            return select_nearest_rank(&mut self.kept, share).map(Nanos);
        }
        let rank = rank(self.len(), share) as u64;
        let mut below = 0;
        let found = self.buckets.iter().find(|(count, _)| {
            below += count;
            below > rank
        });
        found.map(|&(_, longest)| Nanos(longest))
    }
}

#[inline]
fn count(buckets: &mut [(u64, u64)], delay: u64) {
    let (count, longest) = &mut buckets[bucket(delay)];
    *count += 1;
    *longest = delay.max(*longest);
}

/// Below two octaves' worth each delay has its own.
#[inline]
fn bucket(delay: u64) -> usize {
    let octave = (64 - BITS - 1).saturating_sub(delay.leading_zeros());
    ((u64::from(octave) << BITS) + (delay >> octave)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    #[test]
    fn buckets_ascend_without_gaps_and_are_narrow() {
        let mut last = 0;
        let edges = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) + (1 << bit >> 12), (1 << bit) + (1 << bit >> 1)]);
        let mut delays: Vec<u64> = (0..20_000).chain(edges).chain([u64::MAX]).collect();
        delays.sort_unstable();
        for delay in delays {
            let at = bucket(delay);
            assert!(at >= last, "{delay}");
            last = at;
            if let Some(longer) = delay.checked_add((delay >> BITS) + 1) {
                assert!(bucket(longer) > at, "{delay}");
            }
            if delay < 1 << (BITS + 1) {
                assert_eq!(at as u64, delay);
            }
        }
    }

    #[test]
    fn percentiles_of_many_are_delays_and_hardly_longer_than_exact_ones() {
        let mut random = Random::new(5, 0);
        let mut delays = Delays::with_room_for(MOST_KEPT + 500_000);
        let mut all: Vec<u64> = (0..MOST_KEPT + 500_000).map(|_| random.bits() >> (20 + random.below(30))).collect();
        for (i, &delay) in all.iter().enumerate() {
            assert_eq!(delays.buckets.is_empty(), i <= MOST_KEPT);
            delays.push(Nanos(delay));
        }
        assert_eq!((delays.len(), delays.kept.capacity()), (all.len(), 0));
        all.sort_unstable();
        for share in [0.0, 0.01, 0.5, 0.95, 0.99, 0.999, 1.0] {
            let (found, exact) = (delays.nearest_rank(share).unwrap().0, all[rank(all.len(), share)]);
            assert!(found >= exact && found - exact <= exact >> BITS, "{share}: {found} for {exact}");
            assert!(all.binary_search(&found).is_ok());
        }
        assert_eq!(delays.nearest_rank(1.0), all.last().copied().map(Nanos));
    }
}
