//! How long a run must be to tell whether a rate is sustained.
//!
//! A queue that gets ε too much work grows by ε of the time, and is late after a limit / ε: a run of L limits tells what
//! is 1 / L too much. And of a share x of late queries only n x show in a run of n: for its count to be sure to a tenth,
//! a hundred of them must.
//!
//! ```text
//!   queries  =  max( 100 limits · rate,  100 / x )
//! ```
//!
//! At millions of queries a second that is more than is needed to *search*: there a run's delays tell whether it grows
//! long before they reach the limit, and runs are cut off at some length. The rate that is found is then played once in
//! full, and through two million queries at least: what a run of a hundred limits forgives, one of a thousand does not.
//!
//! Arrivals whose rate changes slowly, bursts or a recording with a peak, are typical only of runs that last as long as the
//! slowest of these changes ([`TimeScale`]). Runs then [cover](Covering) it, unless that takes too many queries: then the
//! share that they play is told, and no interval.

use super::judge::LIMITS_AHEAD;
use crate::lab::Criterion;
use crate::query::TimeScale;

/// A run shows so many of the late queries that it may have.
const LATE_QUERIES: f64 = 100.0;
/// A run without a miss has at least so many queries.
const LEAST_QUERIES: f64 = 10_000.0;
/// Runs of a search are no shorter than the first, which is played in a moment, and no longer than the second, unless the
/// objective needs it or the user asks for it.
const SEARCHED_QUERIES: (usize, usize) = (100_000, 300_000);
/// The run that confirms what was found has at least and at most so many: half a second's work, and some seconds'.
const CONFIRMED_QUERIES: (usize, usize) = (2_000_000, 20_000_000);

/// How long the runs of a search are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLength {
    /// As long as the objective needs, and at least so many queries.
    Enough {
        /// Queries that somebody asks for.
        at_least: usize,
    },
    /// So many queries at every rate: those of another run that it stands beside.
    Exactly(usize),
}

impl Default for RunLength {
    fn default() -> Self {
        Self::Enough { at_least: 0 }
    }
}

impl RunLength {
    /// Queries of a run at this rate while a capacity is searched.
    #[must_use]
    pub fn searched(self, criterion: &Criterion, rate_qps: f64) -> usize {
        match self {
            Self::Exactly(queries) => queries,
            Self::Enough { at_least } => {
                let (shortest, longest) = SEARCHED_QUERIES;
                let shortest = shortest.max(at_least);
                Self::full(criterion, rate_qps).clamp(shortest, longest.max(Self::told_by(criterion)).max(shortest))
            }
        }
    }

    /// Queries of the run that confirms what was found.
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

    /// The highest rate at which `available` arrivals are long enough; `None` if they are at no rate.
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
    /// Queries of a run at this rate that tells all by itself: a hundred limits, a hundred late queries that may be.
    #[must_use]
    pub fn full(criterion: &Criterion, rate_qps: f64) -> usize {
        (Self::of_limits(criterion, rate_qps).ceil() as usize).max(Self::told_by(criterion))
    }

    /// Queries that come in a hundred limits.
    #[must_use]
    pub fn of_limits(criterion: &Criterion, rate_qps: f64) -> f64 {
        LIMITS_AHEAD * criterion.limit.as_secs() * rate_qps
    }

    /// Queries without which the statistic has no interval worth the name.
    #[must_use]
    pub fn told_by(criterion: &Criterion) -> usize {
        let share = criterion.late_share();
        if share > 0.0 { (LATE_QUERIES / share).ceil().max(LATE_QUERIES) as usize } else { LEAST_QUERIES as usize }
    }
}

/// A run is made longer to cover its arrivals up to so many queries: half a minute's work.
pub(crate) const COVERED_QUERIES: f64 = 2e8;

/// Lengths of the runs of one search, which cover the slowest change in their arrivals where they can.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covering {
    length: RunLength,
    /// `None` if nothing changes slowly.
    time_scale: Option<TimeScale>,
}

impl Covering {
    /// Of arrivals that take `time_scale` to be typical.
    pub(super) fn new(length: RunLength, time_scale: Option<TimeScale>) -> Self {
        Self { length, time_scale }
    }

    /// As [`RunLength::searched`].
    pub(super) fn searched(&self, criterion: &Criterion, rate_qps: f64) -> usize {
        self.whole(self.length.searched(criterion, rate_qps), rate_qps)
    }

    /// As [`RunLength::confirmed`].
    pub(super) fn confirmed(&self, criterion: &Criterion, rate_qps: f64) -> usize {
        self.whole(self.length.confirmed(criterion, rate_qps), rate_qps)
    }

    /// The share of the slowest change that the searched runs at a rate last: 1 if nothing changes slowly.
    pub(super) fn covered_share(&self, criterion: &Criterion, rate_qps: f64) -> f64 {
        self.time_scale.map_or(1.0, |scale| scale.covered_share(self.searched(criterion, rate_qps), rate_qps))
    }

    /// At least so many queries: whole passes through the slowest change, so that none of it weighs more than another.
    fn whole(&self, queries: usize, rate_qps: f64) -> usize {
        self.pass(rate_qps).map_or(queries, |pass| (pass * (queries as f64 / pass).ceil()).ceil() as usize)
    }

    /// Whether runs at a rate are whole passes through what changes slowly.
    pub(super) fn covers(&self, rate_qps: f64) -> bool {
        self.pass(rate_qps).is_some()
    }

    /// Queries of a pass, if runs are that long.
    fn pass(&self, rate_qps: f64) -> Option<f64> {
        let pass = self.time_scale?.arrivals(rate_qps);
        (matches!(self.length, RunLength::Enough { .. }) && pass <= COVERED_QUERIES).then_some(pass)
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
        // 100 limits of 50 ms are 5 s.
        assert_eq!(of("p99", 40_000.0), (200_000, 2_000_000));
        assert_eq!(of("p99", 10.0), (100_000, 2_000_000));
        assert_eq!(of("p99.99", 10.0).0, 1_000_000);
        assert_eq!(of("no-miss", 10.0).0, 100_000);
        assert_eq!(of("p99", 3e6), (300_000, 15_000_000));
        assert_eq!(of("p99", 3e7), (300_000, 20_000_000));
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
        // Whole passes: 100,000 queries are 16.7 of them.
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
