//! Reads of a list for each document that could be looked up in it, by list length.

/// Classes of list lengths in an octave.
const CLASSES_AN_OCTAVE: f64 = 2.0;

/// Actual reads of a list over [expected](super::expected_reads::expected_reads) ones, by list length.
///
/// Most documents of a query's shortest list are dropped before they are looked up in longer lists. How many are depends on the
/// index, its scores and the number of lists, so it is counted on queries of a log.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::search) struct ReadRates {
    /// Rates by class. Lengths beyond the last class take its rate.
    of_class: Vec<f32>,
}

impl Default for ReadRates {
    /// Every document is looked up.
    fn default() -> Self {
        Self { of_class: vec![1.0] }
    }
}

impl ReadRates {
    fn class(postings: u32) -> usize {
        (CLASSES_AN_OCTAVE * f64::from(postings.max(1)).log2()) as usize
    }

    /// Rates from samples of lists: length in postings, expected reads, actual reads. A class without expected reads takes the rate
    /// of the next shorter class, or else of the shortest known one.
    #[must_use]
    pub(in crate::search) fn counted(lists: impl IntoIterator<Item = (u32, f64, f64)>) -> Self {
        let mut sums: Vec<(f64, f64)> = Vec::new();
        for (postings, expected, read) in lists {
            let class = Self::class(postings);
            sums.resize(sums.len().max(class + 1), (0.0, 0.0));
            sums[class].0 += expected;
            sums[class].1 += read;
        }
        let rates: Vec<Option<f32>> =
            sums.into_iter().map(|(expected, read)| (expected > 0.0).then(|| (read / expected) as f32)).collect();
        let Some(mut last) = rates.iter().copied().flatten().next() else { return Self::default() };
        let filled = rates.into_iter().map(|rate| {
            last = rate.unwrap_or(last);
            last
        });
        Self { of_class: filled.collect() }
    }

    /// The rate of a list of `postings` postings.
    #[must_use]
    pub(in crate::search) fn of(&self, postings: u32) -> f64 {
        let last = self.of_class.len() - 1;
        f64::from(self.of_class[Self::class(postings).min(last)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_lengths_take_the_rate_of_the_next_shorter_ones() {
        let rates = ReadRates::counted([(100, 10.0, 5.0), (100, 30.0, 15.0), (1000, 4.0, 1.0), (60, 0.0, 3.0)]);
        assert_eq!([1, 100, 110, 500, 1000, 1_000_000].map(|len| rates.of(len)), [0.5, 0.5, 0.5, 0.5, 0.25, 0.25]);
        assert_eq!(ReadRates::counted([(7, 0.0, 0.0)]), ReadRates::default());
        assert_eq!(ReadRates::default().of(12), 1.0);
    }
}
