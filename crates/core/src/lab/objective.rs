//! The objective of a capacity: all commands share this definition.
//!
//! ```text
//!   objective              a query is late after    late queries allowed of n
//!   no-miss                the deadline             none
//!   miss-share <= x        the deadline             ⌊x n⌋
//!   pN <= y ms             y ms                     n − ⌈N n / 100⌉: the nearest rank of N % is not late
//! ```
//!
//! Each objective bounds a *count* and needs no quantile. A judge counts late queries exactly, and may give up as soon
//! as there are too many. A run that meets the objective must also be stable at its end ([`Verdict::grows`]), because a
//! longer run would fail otherwise.
//!
//! The default objective is p99 within the deadline. The limit for no miss at all depends on the length of the run: the
//! longest delay of twice as many queries is longer. Reports therefore add the number of queries to it.

use std::fmt;

use crate::base::stats::significant;
use crate::base::time::Nanos;

/// The requirement on the delays of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// No query is later than its deadline.
    NoMiss,
    /// At most this share of the queries is later than its deadline.
    MissShare(f64),
    /// This share of the queries finishes within a time.
    Percentile {
        /// The share, between 0 and 1 exclusive: 0.99 for p99.
        share: f64,
        /// The time limit; `None` for the deadline.
        within: Option<Nanos>,
    },
}

impl Default for Objective {
    /// p99 within the deadline.
    fn default() -> Self {
        Self::Percentile { share: 0.99, within: None }
    }
}

impl Objective {
    /// Shares below this would need runs of more than a hundred million queries.
    const LEAST_SHARE: f64 = 1e-6;

    /// Parses `no-miss`, `miss-share=0.01`, `p99`, `p99.9=20` (milliseconds); `<=` may replace `=`.
    ///
    /// # Errors
    /// A text that says which forms are expected.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim_end_matches('<').trim(), Some(value.trim())),
            None => (text.trim(), None),
        };
        let number = |value: &str| {
            let value = value.strip_suffix("ms").unwrap_or(value).trim();
            value.parse::<f64>().map_err(|_| format!("{value:?} is not a number"))
        };
        match (name, value) {
            ("no-miss", None) => Ok(Self::NoMiss),
            ("miss-share", Some(share)) => Self::miss_share(number(share)?),
            (name, value) => {
                let percent = name.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok());
                let expected = || format!("{text:?}: expected no-miss, miss-share=0.01, p99 or p99=20 (milliseconds)");
                let percent = percent.ok_or_else(expected)?;
                Self::percentile(percent, value.map(number).transpose()?)
            }
        }
    }

    /// At most this share of the queries misses its deadline.
    ///
    /// # Errors
    /// A text, if runs cannot measure the share.
    pub fn miss_share(share: f64) -> Result<Self, String> {
        if (Self::LEAST_SHARE..=0.5).contains(&share) {
            Ok(Self::MissShare(share))
        } else {
            let instead = if share == 0.0 { " (no miss at all is --objective no-miss)" } else { "" };
            Err(format!("share {share}, expected {} to 0.5{instead}", Self::LEAST_SHARE))
        }
    }

    /// This percentage of the queries finishes within `within_ms` milliseconds; `None` stands for the deadline.
    ///
    /// # Errors
    /// A text, if a number is out of range.
    pub fn percentile(percent: f64, within_ms: Option<f64>) -> Result<Self, String> {
        let most = 100.0 * (1.0 - Self::LEAST_SHARE);
        if !(50.0..=most).contains(&percent) {
            // Tables name the column of p99.9 `p999`.
            let digits = percent.to_string();
            let instead = match digits.split_at_checked(2) {
                Some((whole, rest)) if percent > 100.0 && digits.starts_with("99") && !digits.contains('.') => {
                    format!(": write p{whole}.{rest}")
                }
                _ if percent >= 100.0 => String::from(": for all queries in time write no-miss"),
                _ => String::new(),
            };
            return Err(format!("p{percent}, expected p50 to p{most}{instead}"));
        }
        let within = within_ms.map(Nanos::from_ms);
        if within == Some(Nanos::ZERO) || within_ms.is_some_and(|ms| !ms.is_finite()) {
            return Err(format!("p{percent} within {} ms, expected more than 0", within_ms.unwrap_or_default()));
        }
        Ok(Self::Percentile { share: percent / 100.0, within })
    }

    /// The criterion for this deadline.
    #[must_use]
    pub fn within(self, deadline: Nanos) -> Criterion {
        let limit = match self {
            Self::Percentile { within: Some(within), .. } => within,
            _ => deadline,
        };
        Criterion { objective: self, deadline, limit }
    }
}

/// An objective with a deadline: the criterion that judges runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criterion {
    /// The objective.
    pub objective: Objective,
    /// Delay after which a query has missed.
    pub deadline: Nanos,
    /// Delay after which a query is late: the deadline, unless the objective has its own time.
    pub limit: Nanos,
}

impl Criterion {
    /// The share of the queries that may be late.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        match self.objective {
            Objective::NoMiss => 0.0,
            Objective::MissShare(share) => share,
            // Rounding removes the error of doubles: 0.001 for p99.9.
            Objective::Percentile { share, .. } => significant(1.0 - share, 9),
        }
    }

    /// The number of `queries` that may be late.
    #[must_use]
    pub fn allowed(&self, queries: usize) -> usize {
        match self.objective {
            Objective::NoMiss => 0,
            Objective::MissShare(share) => exact(share * queries as f64).floor() as usize,
            // This matches the rank of `quantile`: the value at the rank must not be late, higher ones may be.
            Objective::Percentile { share, .. } => {
                let rank = exact(share * queries as f64).ceil() as usize;
                queries - rank.clamp(1.min(queries), queries)
            }
        }
    }
}

impl fmt::Display for Objective {
    /// Writes the form of options; [`Criterion`] writes it in full.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMiss => f.write_str("no-miss"),
            Self::MissShare(share) => write!(f, "miss-share={share}"),
            Self::Percentile { share, within: None } => write!(f, "p{}", percent(*share)),
            Self::Percentile { share, within: Some(within) } => write!(f, "p{}={}", percent(*share), within.as_ms()),
        }
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit_ms = self.limit.as_ms();
        match self.objective {
            Objective::NoMiss => write!(f, "no miss of {limit_ms} ms"),
            Objective::MissShare(share) => write!(f, "at most {} % miss {limit_ms} ms", percent(share)),
            Objective::Percentile { share, .. } => write!(f, "p{} <= {limit_ms} ms", percent(share)),
        }
    }
}

/// A number of queries without the rounding error of doubles: 99.9 / 100 of 1000 is slightly above 999.
fn exact(queries: f64) -> f64 {
    significant(queries, 12)
}

/// A share in percent, without the rounding error of doubles.
fn percent(share: f64) -> f64 {
    significant(share * 100.0, 9)
}

/// The verdict on a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Number of planned queries.
    pub planned: usize,
    /// Number of queries sent: all, unless the run was cut short.
    pub sent: usize,
    /// Whether some planned queries were not sent or not answered.
    pub is_cut_short: bool,
    /// Number of late queries; unanswered ones count with their age at the end.
    pub late: usize,
    /// Number of planned queries that may be late.
    pub allowed: usize,
    /// Number of queries that missed the deadline; unanswered ones count with their age at the end.
    pub missed: usize,
    /// Whether delays grew significantly in the second half, so that their mean would pass the limit in a hundred
    /// limits.
    pub grows: bool,
}

impl Verdict {
    /// Whether the run meets the objective.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.is_cut_short && self.late <= self.allowed && !self.grows
    }

    /// Whether the run was cut short before it could fail or hold.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.is_cut_short && self.late <= self.allowed
    }

    /// The share of the sent queries that were late.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        self.late as f64 / self.sent.max(1) as f64
    }

    /// `held`, or the reason: `missed: 2.3 % late`, `missed: still growing`, `undecided: cut short`.
    #[must_use]
    pub fn words(&self) -> String {
        if self.holds() {
            return String::from("held");
        }
        if self.is_undecided() {
            return String::from("undecided: cut short");
        }
        if self.late <= self.allowed {
            return String::from("missed: still growing");
        }
        format!("missed: {} % late", significant(100.0 * self.late_share(), 2))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::quantile::select_nearest_rank;

    #[test]
    fn objectives_read_back_from_their_names_and_say_what_they_ask() {
        let deadline = Nanos::from_ms(50.0);
        for (text, name, words) in [
            ("no-miss", "no-miss", "no miss of 50 ms"),
            ("miss-share=0.001", "miss-share=0.001", "at most 0.1 % miss 50 ms"),
            ("miss-share <= 0.02", "miss-share=0.02", "at most 2 % miss 50 ms"),
            ("p99", "p99", "p99 <= 50 ms"),
            ("p99.9", "p99.9", "p99.9 <= 50 ms"),
            ("p95<=20ms", "p95=20", "p95 <= 20 ms"),
        ] {
            let objective = Objective::from_text(text).unwrap();
            assert_eq!(
                (objective.to_string().as_str(), objective.within(deadline).to_string().as_str()),
                (name, words)
            );
            assert_eq!(Objective::from_text(&objective.to_string()), Ok(objective));
        }
        let told = |text: &str| Objective::from_text(text).unwrap_err();
        assert!(told("p999").ends_with(": write p99.9"), "{}", told("p999"));
        assert!(told("miss-share=0").contains("no-miss") && told("p100").contains("no-miss"));
        for bad in
            ["", "p", "p100", "p12", "p99=0", "p99=x", "p99=inf", "miss-share", "miss-share=0", "no-miss=1", "q99"]
        {
            assert!(Objective::from_text(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn few_queries_may_be_late_and_of_no_miss_none() {
        let allowed = |text: &str, n| Objective::from_text(text).unwrap().within(Nanos(1)).allowed(n);
        assert_eq!([0, 1, 99, 100, 199, 200, 1000].map(|n| allowed("p99", n)), [0, 0, 0, 1, 1, 2, 10]);
        assert_eq!([0, 99, 100, 250].map(|n| allowed("miss-share=0.01", n)), [0, 0, 1, 2]);
        // In doubles, 99.9 / 100 of 1000 is slightly above 999, and 0.29 of 100 slightly below 29.
        assert_eq!([999, 1000, 2000, 1_000_000].map(|n| allowed("p99.9", n)), [0, 1, 2, 1000]);
        assert_eq!(allowed("miss-share=0.29", 100), 29);
        assert_eq!(allowed("no-miss", 1_000_000), 0);
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_its_time_exactly_if_no_more_are_late_than_may_be(
            mut delays in prop::collection::vec(0u64..100, 1..400),
            percent in 50.0..99.9f64,
            limit in 1u64..100,
        ) {
            let share = percent / 100.0;
            let criterion = Objective::Percentile { share, within: Some(Nanos(limit)) }.within(Nanos(1000));
            let late = delays.iter().filter(|&&delay| delay > limit).count();
            let found = select_nearest_rank(&mut delays, share).unwrap();
            prop_assert_eq!(late <= criterion.allowed(delays.len()), found <= limit);
        }
    }
}
