//! The options of policies and their valid values.

use super::PolicyError;
use super::job::Shed;
use crate::base::named::named_enum;
use crate::base::time::Nanos;

named_enum! {
    /// The condition for a steal, the loosest first.
    pub enum StealGuard {
        None = "none": "An idle processor always steals",
        Deadline = "deadline": "Steals only jobs that it is predicted to finish within their deadline",
        Gain = "gain": "Steals only jobs that it is predicted to finish before their own processors would finish their queue",
    }
}

/// The options of all policies; each policy reads its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyOptions {
    /// stealing: a query waits for one class of processor if it is predicted to be this many times as fast there.
    pub threshold_ratio: f64,
    /// stealing: a query past this share of the time to its deadline runs next on its preferred class.
    pub urgent_share: f64,
    /// stealing: weight of the predicted cost in the order of a queue; 0 ignores cost.
    pub cost_weight: f64,
    /// stealing: weight of the deadline in the order of a queue.
    pub deadline_weight: f64,
    /// stealing: weight of the time that a query gains by running on this class instead of the next best.
    pub affinity_weight: f64,
    /// stealing: the condition for a steal by an idle processor.
    pub steal_guard: StealGuard,
    /// Policies that batch: the most queries of a batch, even if a processor could take more.
    pub batch_limit: u32,
    /// Policies that batch: a batch takes at most this share of the time to its queries' deadlines.
    pub batch_share: f64,
    /// window: a batch closes when its oldest query has waited this long.
    pub window_us: f64,
    /// window: a batch closes when it holds this many queries.
    pub window_queries: u32,
    /// length-based: queries whose lists have fewer blocks go to GPUs.
    pub length_threshold: u32,
    /// cached-first: queries that may wait for each CPU worker before the other side helps.
    pub patience: u32,
    /// All policies: queries that are dropped when a processor takes them.
    pub shed: Shed,
}

impl Default for PolicyOptions {
    fn default() -> Self {
        Self {
            threshold_ratio: 1.2,
            urgent_share: 0.6,
            cost_weight: 1.0,
            deadline_weight: 1.0,
            affinity_weight: 0.1,
            steal_guard: StealGuard::Gain,
            batch_limit: 4096,
            batch_share: 0.4,
            window_us: 500.0,
            window_queries: 256,
            length_threshold: 15_000,
            patience: 4,
            shed: Shed::Nothing,
        }
    }
}

impl PolicyOptions {
    /// Larger weights would lose single nanoseconds in a 64-bit key.
    const MAX_WEIGHT: f64 = 1e6;
    /// The longest window. A longer one is a mistake.
    const MAX_WINDOW_US: f64 = 6e7;

    /// The length of the batching window.
    pub fn window(&self) -> Nanos {
        Nanos::from_us(self.window_us)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// Names the first invalid option and its valid values.
    pub fn check(&self) -> Result<(), PolicyError> {
        let fault = |option: &'static str, value: f64, expected: &'static str| {
            Err(PolicyError::BadOption { option, value, expected })
        };
        if !(self.threshold_ratio >= 1.0 && self.threshold_ratio.is_finite()) {
            return fault("threshold ratio", self.threshold_ratio, "a number of at least 1");
        }
        if !(0.0..=1.0).contains(&self.urgent_share) {
            return fault("urgent share", self.urgent_share, "a number from 0 to 1");
        }
        let weights = [
            ("cost weight", self.cost_weight),
            ("deadline weight", self.deadline_weight),
            ("affinity weight", self.affinity_weight),
        ];
        for (option, weight) in weights {
            if !(0.0..=Self::MAX_WEIGHT).contains(&weight) {
                return fault(option, weight, "a number from 0 to 1000000");
            }
        }
        for (option, count) in [("batch limit", self.batch_limit), ("window queries", self.window_queries)] {
            if count == 0 {
                return fault(option, 0.0, "at least 1");
            }
        }
        if !(self.batch_share > 0.0 && self.batch_share <= 1.0) {
            return fault("batch share", self.batch_share, "a number above 0 and at most 1");
        }
        if !(0.0..=Self::MAX_WINDOW_US).contains(&self.window_us) {
            return fault("window us", self.window_us, "a number from 0 to 60000000");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_has_a_range_whose_ends_are_valid() {
        type Set = fn(&mut PolicyOptions, f64);
        let cases: [(&str, Set, &[f64], &[f64]); 7] = [
            ("threshold ratio", |o, v| o.threshold_ratio = v, &[1.0, 9.0], &[0.99, f64::INFINITY, f64::NAN]),
            ("urgent share", |o, v| o.urgent_share = v, &[0.0, 1.0], &[-0.1, 1.1]),
            ("affinity weight", |o, v| o.affinity_weight = v, &[0.0, 1e6], &[-0.1, 1.1e6]),
            ("batch limit", |o, v| o.batch_limit = v as _, &[1.0, 2.0], &[0.0]),
            ("window queries", |o, v| o.window_queries = v as _, &[1.0, 2.0], &[0.0]),
            ("batch share", |o, v| o.batch_share = v, &[0.01, 1.0], &[0.0, 1.1]),
            ("window us", |o, v| o.window_us = v, &[0.0, 6e7], &[-1.0, 6.1e7]),
        ];
        for (name, set, valid, invalid) in cases {
            let with = |value| {
                let mut options = PolicyOptions::default();
                set(&mut options, value);
                options.check().map_err(|e| e.to_string())
            };
            valid.iter().for_each(|&value| assert_eq!(with(value), Ok(()), "{name} {value}"));
            invalid.iter().for_each(|&value| assert!(with(value).unwrap_err().contains(name), "{name} {value}"));
        }
    }
}
