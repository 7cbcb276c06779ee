//! Expected reads of a query's lists.
//!
//! Most documents of a query's shortest list are dropped before they are looked up in longer lists. Their share depends
//! on the index, its scores and the number of lists, so it is counted on queries of a log.

use crate::index::BLOCK_LEN;

/// Length classes per octave.
const CLASSES_AN_OCTAVE: f64 = 2.0;

/// Actual reads of a list over [expected](expected_reads) ones, by list length.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReadRates {
    /// Rates by class. Longer lists take the rate of the last class.
    of_class: Vec<f32>,
}

impl Default for ReadRates {
    /// All documents are looked up.
    fn default() -> Self {
        Self { of_class: vec![1.0] }
    }
}

impl ReadRates {
    fn class(postings: u32) -> usize {
        (CLASSES_AN_OCTAVE * f64::from(postings.max(1)).log2()) as usize
    }

    /// Rates from samples of list length, expected reads and actual reads. A class without expected reads takes the
    /// rate of the next shorter class, or else of the shortest known class.
    pub(crate) fn counted(lists: impl IntoIterator<Item = (u32, f64, f64)>) -> Self {
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

    pub(crate) fn of(&self, postings: u32) -> f64 {
        let last = self.of_class.len() - 1;
        f64::from(self.of_class[Self::class(postings).min(last)])
    }
}

/// The expected reads of lists of these lengths by one query, relative to other queries. Documents of the shortest list
/// are looked up in the others at `rates`. A single list is read block by block.
pub(crate) fn expected_reads<'a, I: Iterator<Item = u32> + Clone>(
    lens: I,
    rates: &'a ReadRates,
) -> impl Iterator<Item = f64> + use<'a, I> {
    let (num_lists, shortest) = lens.clone().fold((0_u32, u32::MAX), |(count, least), len| (count + 1, least.min(len)));
    let reads = f64::from(if num_lists > 1 { shortest } else { shortest.div_ceil(BLOCK_LEN as u32) });
    lens.map(move |len| reads * rates.of(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_of_a_query_are_read_as_often_as_its_shortest() {
        let reads =
            |lens: &[u32], rates: &ReadRates| -> Vec<f64> { expected_reads(lens.iter().copied(), rates).collect() };
        assert_eq!(reads(&[100, 128_000], &ReadRates::default()), [100.0, 100.0]);
        // A single list is read by blocks.
        assert_eq!(reads(&[128_000], &ReadRates::default()), [1000.0]);
        // Few documents of the shortest list are looked up in long lists.
        let rates = ReadRates::counted([(100, 1.0, 1.0), (128_000, 100.0, 5.0)]);
        let [short, long] = reads(&[100, 128_000], &rates)[..] else { panic!("two lists") };
        assert!((short - 100.0).abs() < 1e-4 && (long - 5.0).abs() < 1e-4, "{short} and {long}");
    }

    #[test]
    fn unseen_lengths_take_the_rate_of_the_next_shorter_ones() {
        let rates = ReadRates::counted([(100, 10.0, 5.0), (100, 30.0, 15.0), (1000, 4.0, 1.0), (60, 0.0, 3.0)]);
        assert_eq!([1, 100, 110, 500, 1000, 1_000_000].map(|len| rates.of(len)), [0.5, 0.5, 0.5, 0.5, 0.25, 0.25]);
        assert_eq!(ReadRates::counted([(7, 0.0, 0.0)]), ReadRates::default());
        assert_eq!(ReadRates::default().of(12), 1.0);
    }
}
