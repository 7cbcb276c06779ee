//! A set of lanes, as bits.

/// A set of lanes, as bits: 64 lanes a word.
#[derive(Clone, Debug)]
pub(super) struct LaneSet(Vec<u64>);

impl LaneSet {
    /// The empty set of a machine with this number of lanes.
    pub(super) fn of(lanes: usize) -> Self {
        Self(vec![0; lanes.div_ceil(64)])
    }

    #[inline]
    pub(super) fn insert(&mut self, lane: usize) {
        self.0[lane / 64] |= 1 << (lane % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, lane: usize) {
        self.0[lane / 64] &= !(1 << (lane % 64));
    }

    #[inline]
    pub(super) fn contains(&self, lane: usize) -> bool {
        self.0[lane / 64] >> (lane % 64) & 1 == 1
    }

    /// Number of lanes in the set.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Number of words.
    #[inline]
    pub(super) fn words(&self) -> usize {
        self.0.len()
    }

    /// The lanes of a word that are in the set now, in ascending order. Later changes of the set do not change them.
    #[inline]
    pub(super) fn of_word(&self, word: usize) -> Members {
        Members { first: word * 64, bits: self.0[word] }
    }

    /// The lanes of a word for which `is_in` holds. It is asked for all of them first.
    #[inline]
    pub(super) fn filtered(&self, word: usize, mut is_in: impl FnMut(usize) -> bool) -> Members {
        let kept = self.of_word(word).fold(0, |bits, lane| bits | u64::from(is_in(lane)) << (lane % 64));
        Members { first: word * 64, bits: kept }
    }
}

/// The lanes of a word, in ascending order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members {
    first: usize,
    bits: u64,
}

impl Members {
    pub(super) fn is_empty(self) -> bool {
        self.bits == 0
    }
}

impl Iterator for Members {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let lane = self.first + self.bits.trailing_zeros() as usize;
        let is_left = self.bits != 0;
        self.bits &= self.bits.wrapping_sub(1);
        is_left.then_some(lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_enter_and_leave_in_any_word() {
        let mut set = LaneSet::of(130);
        [0, 63, 64, 129].into_iter().for_each(|lane| set.insert(lane));
        set.insert(63);
        set.remove(64);
        set.remove(1);
        assert_eq!((set.len(), set.words()), (3, 3));
        assert_eq!([0, 1, 63, 64, 129].map(|lane| set.contains(lane)), [true, false, true, false, true]);
        assert_eq!((0..3).flat_map(|word| set.of_word(word)).collect::<Vec<_>>(), [0, 63, 129]);
        assert!(set.filtered(0, |lane| lane == 63).eq([63]) && set.filtered(2, |_| false).is_empty());
    }
}
