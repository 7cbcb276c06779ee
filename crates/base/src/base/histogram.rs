//! A histogram of times in fixed memory.
//!
//! Each bucket is a 4096th of its octave wide and remembers the longest time in it. A percentile is therefore a time that
//! occurred, at most 1/4096 longer than the one of its rank.
//!
//! ```text
//!   bucket      …  |  4096 · 2^e + m · 2^e  …  + 2^e  |  …        octave e, bucket m of 4096
//! ```

use super::quantile::rank;
use super::time::Nanos;

/// Buckets of an octave: 2 to this power.
const BITS: u32 = 12;

/// Counts of times. An empty histogram has no memory until its first time comes.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// By bucket, how many times and the longest.
    buckets: Vec<(u64, u64)>,
    count: u64,
    sum: u128,
}

impl Histogram {
    /// An empty histogram whose memory is there already, so that counting never waits for the system.
    #[inline]
    pub fn ready() -> Self {
        let mut buckets = vec![(1, 1); bucket(u64::MAX) + 1];
        buckets.fill((0, 0));
        Self { buckets, ..Self::default() }
    }

    /// Counts a time.
    #[inline]
    pub fn push(&mut self, time: Nanos) {
        self.add(time, 1);
    }

    /// Counts a time that occurred `times` times.
    #[inline]
    pub fn add(&mut self, time: Nanos, times: u64) {
        if self.buckets.is_empty() {
            *self = Self::ready();
        }
        let (count, longest) = &mut self.buckets[bucket(time.0)];
        *count += times;
        *longest = time.0.max(*longest);
        self.count += times;
        self.sum += u128::from(time.0) * u128::from(times);
    }

    /// The number of counted times.
    #[inline]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The mean; 0 of none.
    #[inline]
    pub fn mean(&self) -> Nanos {
        Nanos((self.sum / u128::from(self.count.max(1))) as u64)
    }

    /// The [nearest rank](super::quantile) of a share of all, or at most 1/4096 more; `None` of none.
    pub fn nearest_rank(&self, share: f64) -> Option<Nanos> {
        let rank = rank(self.len().max(1), share) as u64;
        let mut below = 0;
        let found = self.buckets.iter().find(|(count, _)| {
            below += count;
            below > rank
        });
        found.map(|&(_, longest)| Nanos(longest))
    }
}

/// Below two octaves' worth each time has its own bucket.
#[inline]
fn bucket(time: u64) -> usize {
    let octave = (64 - BITS - 1).saturating_sub(time.leading_zeros());
    ((u64::from(octave) << BITS) + (time >> octave)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    #[test]
    fn buckets_ascend_without_gaps_and_are_narrow() {
        let mut last = 0;
        let edges = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) + (1 << bit >> 12), (1 << bit) + (1 << bit >> 1)]);
        let mut times: Vec<u64> = (0..20_000).chain(edges).chain([u64::MAX]).collect();
        times.sort_unstable();
        for time in times {
            let at = bucket(time);
            assert!(at >= last, "{time}");
            last = at;
            if let Some(longer) = time.checked_add((time >> BITS) + 1) {
                assert!(bucket(longer) > at, "{time}");
            }
            if time < 1 << (BITS + 1) {
                assert_eq!(at as u64, time);
            }
        }
    }

    #[test]
    fn percentiles_are_times_and_hardly_longer_than_exact_ones() {
        let mut random = Random::new(5, 0);
        let mut histogram = Histogram::default();
        assert_eq!((histogram.nearest_rank(0.5), histogram.mean()), (None, Nanos::ZERO));
        let mut all: Vec<u64> = (0..500_000).map(|_| random.bits() >> (20 + random.below(30))).collect();
        all.iter().for_each(|&time| histogram.push(Nanos(time)));
        all.sort_unstable();
        for share in [0.0, 0.01, 0.5, 0.95, 0.99, 0.999, 1.0] {
            let (found, exact) = (histogram.nearest_rank(share).unwrap().0, all[rank(all.len(), share)]);
            assert!(found >= exact && found - exact <= exact >> BITS, "{share}: {found} for {exact}");
            assert!(all.binary_search(&found).is_ok());
        }
        let mut weighted = Histogram::ready();
        weighted.add(Nanos(7), 99);
        weighted.add(Nanos(107), 1);
        assert_eq!((weighted.len(), weighted.mean(), weighted.nearest_rank(0.98)), (100, Nanos(8), Some(Nanos(7))));
    }
}
