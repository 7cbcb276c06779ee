//! Block resampling of observed times.
//!
//! ```text
//!   observed   0 1 2 3 4 5 6 7 8 9 ...          start and pick are drawn again after BLOCK batches
//!   played         |4 5 6 7|  |0 1 2 3|
//! ```
//!
//! A block of consecutive values starts at a random place; the stretch is a ring, so that every value is as likely as any
//! other and the mean is that of the stretch. Within a block the correlation of neighbours is the observed one: at distance
//! k it is ρ(k) · (1 − k / BLOCK). A lane has one place for all its stretches, as a share of their length, since a batch of
//! another size may come next in the same slow phase.
//!
//! Source: Künsch, "The Jackknife and the Bootstrap for General Stationary Observations", Annals of Statistics 17, 1989.

use super::Ratios;
use crate::base::random::Random;
use crate::base::time::Nanos;

/// Number of consecutive batches in a block.
pub const BLOCK: u32 = 256;

/// The position of a lane in its stretches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// Start of the block, as a share of a stretch.
    start: f64,
    /// Chooses between two stretches whose sizes or loads enclose the asked one.
    pick: f64,
    /// Batches of the block that were played; 0 before the first one.
    step: u32,
}

impl Place {
    /// Moves to the next batch, in a new block after [`BLOCK`] batches.
    #[inline]
    pub fn advance(&mut self, random: &mut Random) {
        if self.step.is_multiple_of(BLOCK) {
            (self.start, self.pick, self.step) = (1.0 - random.unit(), 1.0 - random.unit(), 0);
        }
        self.step += 1;
    }

    /// The item of the stretch for this batch, out of `len` > 0.
    #[inline]
    fn index(&self, len: usize) -> usize {
        ((self.start * len as f64) as usize + self.step as usize - 1) % len
    }

    /// The item of `points`, ascending by their number, for `at`. Between two points one is chosen, so that the mean is
    /// interpolated linearly and the variation is that of an observed stretch.
    #[inline]
    pub(super) fn choose<'p, T>(&self, points: &'p [(f64, T)], at: f64) -> Option<&'p T> {
        let after = points.partition_point(|&(number, _)| number < at);
        let chosen = match (after.checked_sub(1), points.get(after)) {
            (Some(low), Some(&(high, _))) => {
                let low_at = points[low].0;
                if self.pick < (at - low_at) / (high - low_at) { after } else { low }
            }
            (Some(low), None) => low,
            (None, _) => after,
        };
        points.get(chosen).map(|(_, item)| item)
    }
}

/// Observed ratios, ready to be played.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    ratios: Vec<f32>,
    stalls: Vec<(u32, Nanos)>,
    mean: f64,
}

impl From<&Ratios> for Stretch {
    fn from(file: &Ratios) -> Self {
        Self {
            ratios: file.permille.iter().map(|&permille| permille as f32 / 1e3).collect(),
            stalls: file.stalls_us.iter().map(|&(at, us)| (at, Nanos(u64::from(us) * 1000))).collect(),
            mean: file.mean(),
        }
    }
}

impl Stretch {
    /// Whether there are no ratios; all are then 1.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ratios.is_empty()
    }

    /// The mean ratio, without stalls.
    #[must_use]
    #[inline]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The ratio and the additional time at a place.
    #[must_use]
    #[inline]
    pub fn at(&self, place: &Place) -> (f64, Nanos) {
        if self.ratios.is_empty() {
            return (1.0, Nanos::ZERO);
        }
        let index = place.index(self.ratios.len());
        let stall = match self.stalls.binary_search_by_key(&(index as u32), |&(at, _)| at) {
            Ok(found) => self.stalls[found].1,
            Err(_) => Nanos::ZERO,
        };
        (f64::from(self.ratios[index]), stall)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::random::{NodeSeed, Purpose};

    /// A stretch that alternates between fast and slow phases of `phase` batches, with noise, and stalls now and then.
    fn phases(seed: u64, phase: usize) -> Ratios {
        let mut random = Random::new(seed, 0);
        let mut is_slow = false;
        let permille = (0..4096).map(|_| {
            is_slow ^= random.below(phase as u32) == 0;
            (if is_slow { 1500 } else { 900 }) + random.below(100)
        });
        let permille = permille.collect();
        Ratios { permille, stalls_us: (0..20).map(|i| (i * 200 + 7, 40 + i)).collect() }
    }

    fn played(ratios: &Ratios, seed: u64, count: usize) -> Vec<(f64, Nanos)> {
        let (stretch, mut place) = (Stretch::from(ratios), Place::default());
        let mut random = NodeSeed { seed, node: 0 }.stream(Purpose::Service, 0);
        let mut next = || {
            place.advance(&mut random);
            stretch.at(&place)
        };
        (0..count).map(|_| next()).collect()
    }

    fn correlation(values: &[f64], apart: usize) -> f64 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        let pairs = values.iter().zip(&values[apart..]);
        let together = pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
        together / (values.len() - apart) as f64 / variance
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn played_blocks_keep_mean_and_correlation(seed in any::<u64>(), phase in 5usize..60) {
            let ratios = phases(seed, phase);
            let played = played(&ratios, seed, 1_000_000);
            let values: Vec<f64> = played.iter().map(|&(ratio, _)| ratio).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            prop_assert!((mean / ratios.mean() - 1.0).abs() < 0.02, "{mean}, {}", ratios.mean());
            let stalls: f64 = played.iter().map(|(_, stall)| stall.as_us()).sum::<f64>() / played.len() as f64;
            prop_assert!((stalls * 1e3 / ratios.mean_stall().0 as f64 - 1.0).abs() < 0.1, "{stalls}");
            let observed: Vec<f64> = ratios.permille.iter().map(|&permille| f64::from(permille)).collect();
            for apart in [1, 10, 50] {
                let kept = 1.0 - apart as f64 / f64::from(BLOCK);
                let (of_played, of_observed) = (correlation(&values, apart), correlation(&observed, apart));
                prop_assert!((of_played - kept * of_observed).abs() < 0.06, "{apart}: {of_played}, {of_observed}");
            }
        }
    }

    #[test]
    fn stretches_of_every_seed_purpose_node_and_lane_differ() {
        let stretch = Stretch::from(&phases(1, 20));
        let drawn = |seed, node, purpose, lane| -> Vec<f64> {
            let (mut random, mut place) = (NodeSeed { seed, node }.stream(purpose, lane), Place::default());
            let mut next = || {
                place.advance(&mut random);
                stretch.at(&place).0
            };
            (0..50).map(|_| next()).collect()
        };
        let base = drawn(1, 0, Purpose::Service, 0);
        assert_eq!(base, drawn(1, 0, Purpose::Service, 0));
        for other in [
            drawn(2, 0, Purpose::Service, 0),
            drawn(1, 1, Purpose::Service, 0),
            drawn(1, 0, Purpose::Rounds, 0),
            drawn(1, 0, Purpose::Service, 1),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn between_two_loads_the_mean_is_interpolated() {
        let points = [(1.0, 100), (5.0, 200)];
        let mut random = Random::new(1, 1);
        let mut mean = |at| {
            let mut sum = 0;
            for _ in 0..20_000 {
                let mut place = Place::default();
                place.advance(&mut random);
                sum += place.choose(&points, at).unwrap();
            }
            f64::from(sum) / 20_000.0
        };
        assert_eq!([mean(0.0), mean(1.0), mean(5.0), mean(9.0)], [100.0, 100.0, 200.0, 200.0]);
        assert!((mean(2.0) - 125.0).abs() < 2.0);
        assert_eq!(Place::default().choose::<u8>(&[], 1.0), None);
    }
}
