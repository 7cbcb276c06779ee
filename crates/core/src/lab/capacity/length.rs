//! Length of runs that can decide whether a rate is sustained.
//!
//! A queue with an excess load of ε grows by the share ε of the time and is late after limit / ε. A run of L limits
//! thus detects an excess of 1 / L. A run of n queries has n x late ones at a late share of x; a relative error of a
//! tenth needs a hundred of them.
//!
//! ```text
//!   queries  =  max( 100 limits · rate,  100 / x )
//! ```
//!
//! At millions of queries per second, a *search* needs fewer: the delays of a run show growth long before they reach
//! the limit, so that its length is capped. The found rate is then confirmed by a full run of at least two million
//! queries, because a run of a thousand limits detects smaller excess loads.
//!
//! If the arrival rate changes slowly (bursts, or a recording with a peak), only runs as long as the slowest change
//! ([`TimeScale`]) are typical. Runs [cover](Covering) it unless that takes too many queries. Reports then state the
//! covered share in place of an interval.

use crate::lab::Criterion;
use crate::query::TimeScale;

/// Least length of a run in limits.
pub(super) const LIMITS_AHEAD: f64 = 100.0;
/// Number of late queries that a run must allow.
const LATE_QUERIES: f64 = 100.0;
/// Least number of queries in a run for no miss.
const LEAST_QUERIES: f64 = 10_000.0;
/// Least and most queries in a run of a search. The objective or the user may require more.
const SEARCHED_QUERIES: (usize, usize) = (100_000, 300_000);
/// Least and most queries in a confirming run: from half a second to some seconds of work.
const CONFIRMED_QUERIES: (usize, usize) = (2_000_000, 4_000_000);

/// The length of the runs of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLength {
    /// As long as the objective needs, and at least `at_least` queries.
    Enough {
        /// Least number of queries that the user requests.
        at_least: usize,
    },
    /// This number of queries at every rate, to match another run.
    Exactly(usize),
}

impl Default for RunLength {
    fn default() -> Self {
        Self::Enough { at_least: 0 }
    }
}

impl RunLength {
    /// Number of queries in a run of the search at this rate.
    #[must_use]
    pub fn searched(self, criterion: &Criterion, rate_qps: f64) -> usize {
        match self {
            Self::Exactly(queries) => queries,
            Self::Enough { at_least } => Self::full_between(criterion, rate_qps, SEARCHED_QUERIES, at_least),
        }
    }

    /// Number of queries in the confirming run at this rate.
    #[must_use]
    pub fn confirmed(self, criterion: &Criterion, rate_qps: f64) -> usize {
        let searched = self.searched(criterion, rate_qps);
        match self {
            Self::Exactly(_) => searched,
            Self::Enough { .. } => {
                let (least, most) = CONFIRMED_QUERIES;
                Self::full(criterion, rate_qps).clamp(least, most).max(searched)
            }
        }
    }

    /// The full length, limited to a range that the objective and `at_least` extend.
    fn full_between(criterion: &Criterion, rate_qps: f64, (least, most): (usize, usize), at_least: usize) -> usize {
        let least = least.max(at_least);
        Self::full(criterion, rate_qps).clamp(least, most.max(Self::told_by(criterion)).max(least))
    }

    /// The highest rate at which `available` arrivals are long enough; `None` if they never are.
    #[must_use]
    pub fn highest_qps(self, criterion: &Criterion, available: usize) -> Option<f64> {
        match self {
            Self::Exactly(queries) => (queries <= available).then_some(f64::INFINITY),
            Self::Enough { .. } => {
                let highest_qps = available as f64 / (LIMITS_AHEAD * criterion.limit.as_secs());
                (available >= Self::told_by(criterion)).then_some(highest_qps)
            }
        }
    }
}

impl RunLength {
    /// Number of queries in a run that is sufficient alone: a hundred limits, and a hundred allowed late queries.
    #[must_use]
    pub fn full(criterion: &Criterion, rate_qps: f64) -> usize {
        (Self::of_limits(criterion, rate_qps).ceil() as usize).max(Self::told_by(criterion))
    }

    /// Number of queries that arrive within a hundred limits.
    #[must_use]
    pub fn of_limits(criterion: &Criterion, rate_qps: f64) -> f64 {
        LIMITS_AHEAD * criterion.limit.as_secs() * rate_qps
    }

    /// Least number of queries for a useful confidence interval.
    #[must_use]
    pub fn told_by(criterion: &Criterion) -> usize {
        let share = criterion.late_share();
        if share > 0.0 { (LATE_QUERIES / share).ceil().max(LATE_QUERIES) as usize } else { LEAST_QUERIES as usize }
    }
}

/// Most queries in a run that is prolonged to cover its arrivals: half a minute of work.
pub(crate) const COVERED_QUERIES: f64 = 2e8;

/// Run lengths of a search; runs cover the slowest change in their arrivals if possible.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covering {
    length: RunLength,
    /// `None` if nothing changes slowly.
    time_scale: Option<TimeScale>,
}

impl Covering {
    /// Lengths for arrivals that are typical over `time_scale`.
    pub(super) fn new(length: RunLength, time_scale: Option<TimeScale>) -> Self {
        Self { length, time_scale }
    }

    /// The length by [`RunLength::searched`], rounded up to whole passes.
    pub(super) fn searched(&self, criterion: &Criterion, rate_qps: f64) -> usize {
        self.whole(self.length.searched(criterion, rate_qps), rate_qps)
    }

    /// The length by [`RunLength::confirmed`], rounded up to whole passes.
    pub(super) fn confirmed(&self, criterion: &Criterion, rate_qps: f64) -> usize {
        self.whole(self.length.confirmed(criterion, rate_qps), rate_qps)
    }

    /// The share of the slowest change that runs of the search cover; 1 if nothing changes slowly.
    pub(super) fn covered_share(&self, criterion: &Criterion, rate_qps: f64) -> f64 {
        self.time_scale.map_or(1.0, |scale| scale.covered_share(self.searched(criterion, rate_qps), rate_qps))
    }

    /// Rounds up to whole passes through the slowest change, so that all parts of it have equal weight.
    fn whole(&self, queries: usize, rate_qps: f64) -> usize {
        self.pass(rate_qps).map_or(queries, |pass| (pass * (queries as f64 / pass).ceil()).ceil() as usize)
    }

    /// Whether runs at a rate are whole passes through the slowest change.
    pub(super) fn covers(&self, rate_qps: f64) -> bool {
        self.pass(rate_qps).is_some()
    }

    /// Number of queries in a pass; `None` if runs do not cover one.
    fn pass(&self, rate_qps: f64) -> Option<f64> {
        let pass = self.time_scale?.arrivals(rate_qps);
        (!matches!(self.length, RunLength::Exactly(_)) && pass <= COVERED_QUERIES).then_some(pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Nanos;
    use crate::lab::Objective;

    #[test]
    fn runs_last_for_a_hundred_limits_and_show_a_hundred_late_queries() {
        let length = RunLength::default();
        let of = |text: &str, rate_qps| {
            let criterion = Objective::from_text(text).unwrap().within(Nanos::from_ms(50.0));
            (length.searched(&criterion, rate_qps), length.confirmed(&criterion, rate_qps))
        };
        // A hundred limits of 50 ms are 5 s.
        assert_eq!(of("p99", 40_000.0), (200_000, 2_000_000));
        assert_eq!(of("p99", 10.0), (100_000, 2_000_000));
        assert_eq!(of("p99.99", 10.0).0, 1_000_000);
        assert_eq!(of("no-miss", 10.0).0, 100_000);
        assert_eq!(of("p99", 3e6), (300_000, 4_000_000));
        assert_eq!(of("p99", 3e7), (300_000, 4_000_000));
        assert_eq!(of("p99=20", 1e5).0, 200_000);
        let criterion = Objective::default().within(Nanos::from_ms(50.0));
        let longer = RunLength::Enough { at_least: 2_000_000 };
        assert_eq!((longer.searched(&criterion, 10.0), longer.searched(&criterion, 3e6)), (2_000_000, 2_000_000));
        assert_eq!(RunLength::Exactly(77).confirmed(&criterion, 3e6), 77);
    }

    #[test]
    fn runs_cover_a_recording_unless_that_takes_too_many_queries() {
        let criterion = Objective::default().within(Nanos::from_ms(50.0));
        let recording = Some(TimeScale::Seconds(600.0));
        let length = Covering::new(RunLength::default(), recording);
        let of = |rate_qps| (length.searched(&criterion, rate_qps), length.covered_share(&criterion, rate_qps));
        assert_eq!(of(70_000.0), (42_000_000, 1.0));
        // Runs consist of whole passes, and 100,000 queries are 16.7 passes.
        assert_eq!(of(10.0), (102_000, 1.0));
        assert_eq!(of(4e6), (300_000, 1.0 / 8000.0));
        assert_eq!(Covering::new(RunLength::default(), None).covered_share(&criterion, 4e6), 1.0);
        let beside = Covering::new(RunLength::Exactly(77), recording);
        assert_eq!((beside.searched(&criterion, 77.0), beside.covered_share(&criterion, 77.0)), (77, 1.0 / 600.0));
    }

    #[test]
    fn a_short_trace_can_tell_of_low_rates_only() {
        let criterion = Objective::default().within(Nanos::from_ms(500.0));
        assert_eq!(RunLength::default().highest_qps(&criterion, 10_000), Some(200.0));
        assert_eq!(RunLength::default().highest_qps(&criterion, 9_999), None);
    }
}
