//! The best impacts of a list, collected while the list is encoded.

use super::directory::STORED_RANKS;

/// The last stored rank needs this many values.
const KEPT: usize = STORED_RANKS[STORED_RANKS.len() - 1];

/// Collects the largest of the values offered to it.
#[derive(Debug, Default)]
pub(crate) struct BestImpacts {
    /// The largest values so far, and some former candidates. They are cut back to [`KEPT`] when there are twice as
    /// many.
    values: Vec<f32>,
    /// Lower bound of the kept values once there are [`KEPT`] of them. Smaller values are ignored.
    floor: f32,
}

impl BestImpacts {
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.floor = 0.0;
    }

    /// Offers a block of values; `largest` is their maximum.
    pub(crate) fn offer(&mut self, values: &[f32], largest: f32) {
        if largest <= self.floor {
            return;
        }
        self.values.extend(values.iter().copied().filter(|&value| value > self.floor));
        if self.values.len() >= 2 * KEPT {
            self.values.select_nth_unstable_by(KEPT - 1, |a, b| b.total_cmp(a));
            self.values.truncate(KEPT);
            self.floor = self.values[KEPT - 1];
        }
    }

    /// The k-th largest value for each stored rank, or 0 if there are fewer values.
    pub(crate) fn kth_impacts(&mut self) -> [f32; STORED_RANKS.len()] {
        let mut kths = [0.0; STORED_RANKS.len()];
        let mut values = self.values.as_mut_slice();
        for (kth, rank) in kths.iter_mut().zip(STORED_RANKS).rev() {
            if values.len() >= rank {
                *kth = *values.select_nth_unstable_by(rank - 1, |a, b| b.total_cmp(a)).1;
                values = &mut values[..rank];
            }
        }
        kths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kth_impacts_are_those_of_the_sorted_values() {
        for len in [1, 9, 10, 99, 100, 128, 999, 1000, 1001, 20_000] {
            let mut values: Vec<f32> = (0..len).map(|i| ((i * 7919) % 10_007 % 3000) as f32 / 3001.0).collect();
            let mut best = BestImpacts::default();
            best.offer(&[0.99; 128], 0.99);
            best.clear();
            for block in values.chunks(128) {
                best.offer(block, block.iter().copied().fold(0.0, f32::max));
            }
            values.sort_by(|a, b| b.total_cmp(a));
            let expected = STORED_RANKS.map(|rank| values.get(rank - 1).copied().unwrap_or(0.0));
            assert_eq!(best.kth_impacts(), expected, "{len} values");
        }
    }
}
