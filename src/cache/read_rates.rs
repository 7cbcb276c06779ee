//! What of the documents that could be looked up in a list is read of it.

use serde::{Deserialize, Serialize};

/// Classes an octave of lengths.
const CLASSES_AN_OCTAVE: f64 = 2.0;

/// By length of a list: the reads of it for each [expected](super::expected_reads) one.
///
/// Most documents of a query's shortest list are passed over before they are looked up, the more the longer the lists are whose turn
/// comes later: how many is a matter of the index, its scores, and of how many lists a query has, and is counted on queries of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f32>", into = "Vec<f32>")]
pub struct ReadRates {
    /// By class: half octaves of lengths. Lengths beyond the last count as that.
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

    /// Of lists with so many postings each: what was expected to be read of them, and what was. Lengths of which nothing was expected
    /// are as the next shorter ones, or the shortest known.
    #[must_use]
    pub fn counted(lists: impl IntoIterator<Item = (u32, f64, f64)>) -> Self {
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

    /// Of a list of this length.
    #[must_use]
    pub fn of(&self, postings: u32) -> f64 {
        let last = self.of_class.len() - 1;
        f64::from(self.of_class[Self::class(postings).min(last)])
    }
}

impl TryFrom<Vec<f32>> for ReadRates {
    type Error = String;

    fn try_from(of_class: Vec<f32>) -> Result<Self, String> {
        match of_class.iter().find(|rate| !(rate.is_finite() && **rate >= 0.0)) {
            Some(rate) => Err(format!("a rate of {rate}, expected numbers from 0")),
            None if of_class.is_empty() => Err(String::from("no rates")),
            None => Ok(Self { of_class }),
        }
    }
}

impl From<ReadRates> for Vec<f32> {
    fn from(rates: ReadRates) -> Self {
        rates.of_class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_were_not_seen_are_as_the_next_shorter_ones() {
        let rates = ReadRates::counted([(100, 10.0, 5.0), (100, 30.0, 15.0), (1000, 4.0, 1.0), (60, 0.0, 3.0)]);
        assert_eq!([1, 100, 110, 500, 1000, 1_000_000].map(|len| rates.of(len)), [0.5, 0.5, 0.5, 0.5, 0.25, 0.25]);
        assert_eq!(ReadRates::counted([(7, 0.0, 0.0)]), ReadRates::default());
        assert_eq!(ReadRates::default().of(12), 1.0);
    }

    #[test]
    fn they_survive_as_text_and_what_is_no_rate_is_told() {
        let rates = ReadRates::counted([(3, 3.0, 1.0), (90, 7.0, 1.0)]);
        let text = serde_json::to_string(&rates).unwrap();
        assert_eq!(serde_json::from_str::<ReadRates>(&text).unwrap(), rates);
        for text in ["[]", "[1,-1]", "[1,1e99]"] {
            assert!(serde_json::from_str::<ReadRates>(text).is_err(), "{text}");
        }
    }
}
