//! How threads that index slow each other down.

use serde::{Deserialize, Serialize};

/// How many times what it takes alone the work of a thread takes while so many threads work: `(threads, times)`, ascending.
///
/// They share caches, memory and, where there are more threads than cores, cores. One thread takes 1 time; between numbers that
/// were measured lies a line; beyond the last threads share what there is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Company(Vec<(u32, f64)>);

impl Company {
    /// From what was measured, in any order. Work that seems quicker in company than alone was disturbed alone: it counts 1. What is no
    /// number, as of work too short for the clock, tells nothing.
    #[must_use]
    pub fn new(measured: impl IntoIterator<Item = (u32, f64)>) -> Self {
        let known = measured.into_iter().filter(|&(threads, times)| threads > 0 && times.is_finite());
        let mut times: Vec<(u32, f64)> = known.map(|(threads, times)| (threads, times.max(1.0))).collect();
        times.sort_by_key(|&(threads, _)| threads);
        times.dedup_by_key(|&mut (threads, _)| threads);
        Self(times)
    }

    /// Whether the numbers make sense.
    ///
    /// # Errors
    /// Says what does not.
    pub fn check(&self) -> Result<(), String> {
        let is_possible = |&(threads, times): &(u32, f64)| threads > 0 && times.is_finite() && times >= 1.0;
        if self.0.is_sorted_by(|a, b| a.0 < b.0) && self.0.iter().all(is_possible) {
            return Ok(());
        }
        Err("expected numbers of threads that ascend from 1, each with a number from 1".to_owned())
    }

    /// How many times what it takes alone the work of each of so many threads takes.
    #[must_use]
    pub fn times(&self, threads: usize) -> f64 {
        let threads = threads as f64;
        let after = self.0.partition_point(|&(known, _)| f64::from(known) < threads);
        let (low, low_times) = after.checked_sub(1).map_or((1.0, 1.0), |before| as_f64(self.0[before]));
        match self.0.get(after).copied().map(as_f64) {
            _ if threads <= 1.0 => 1.0,
            Some((high, high_times)) if high > low => {
                low_times + (threads - low) / (high - low) * (high_times - low_times)
            }
            Some((_, times)) => times,
            None if self.0.is_empty() => 1.0,
            None => low_times * threads / low,
        }
    }
}

fn as_f64((threads, times): (u32, f64)) -> (f64, f64) {
    (f64::from(threads), times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_what_was_measured_lies_a_line_and_beyond_it_threads_share() {
        let company = Company::new([(4, 1.6), (2, 1.2), (1, 0.9), (3, f64::INFINITY), (0, 7.0)]);
        assert_eq!(company.check(), Ok(()));
        let times = [0, 1, 2, 3, 4, 8].map(|threads| company.times(threads));
        for (times, expected) in times.into_iter().zip([1.0, 1.0, 1.2, 1.4, 1.6, 3.2]) {
            assert!((times - expected).abs() < 1e-12, "{times} for {expected}");
        }
        assert_eq!(Company::default().times(100), 1.0);
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        for text in ["[[0, 1.0]]", "[[2, 1.0], [1, 1.0]]", "[[1, 0.5]]"] {
            let company: Company = serde_json::from_str(text).unwrap();
            assert!(company.check().unwrap_err().contains("expected numbers of threads"), "{text}");
        }
    }
}
