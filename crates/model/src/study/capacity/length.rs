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
//! A queue at a load ρ forgets its past only within its [relaxation] time. Confirming runs last for many of them,
//! because a shorter one shows neither the delays nor the growth of a longer one.
//!
//! If the arrival rate changes slowly (bursts, or a recording with a peak), only runs as long as the slowest change
//! ([`TimeScale`]) are typical. Runs [cover](Covering) it unless that takes too many queries. Reports then state the
//! covered share in place of an interval.

use crate::study::Criterion;
use crate::traffic::TimeScale;

/// Least length of a run in limits.
pub(super) const LEAST_LIMITS: f64 = 100.0;
/// Number of late queries that a run must allow.
const LATE_QUERIES: f64 = 100.0;
/// Late queries that a run must allow under further bounds.
const FURTHER_LATE_QUERIES: f64 = 5.0;
/// Length of a run in relaxation times of the queue, if other seeds play as long and alone.
const RELAXATIONS: (f64, f64) = (40.0, 100.0);
/// Most queries in a run that is prolonged until its queue has settled.
const SETTLING_QUERIES: usize = 1 << 23;
/// Least number of queries in a run for no miss.
const LEAST_QUERIES: f64 = 10_000.0;
/// Least and most queries in a run of a search. The objective or the user may require more.
const SEARCHED_QUERIES: (usize, usize) = (100_000, 300_000);
/// Least and most queries in a confirming run: from half a second to some seconds of work. With a most of four million, runs
/// of five million queries per second last for three deadlines, and 0.99 of their answer failed in 3 of 5 longer runs.
const CONFIRMED_QUERIES: (usize, usize) = (2_000_000, 16_000_000);

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
                let highest_qps = available as f64 / (LEAST_LIMITS * criterion.limit.as_secs());
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
        LEAST_LIMITS * criterion.limit.as_secs() * rate_qps
    }

    /// Least number of queries for a useful confidence interval.
    #[must_use]
    pub fn told_by(criterion: &Criterion) -> usize {
        let bounds = criterion.objective.bounds().enumerate().map(|(i, bound)| {
            let late = if i == 0 { LATE_QUERIES } else { FURTHER_LATE_QUERIES };
            let share = bound.late_share();
            if share > 0.0 { (late / share).ceil().max(late) as usize } else { LEAST_QUERIES as usize }
        });
        bounds.max().unwrap_or(0)
    }
}

/// The number of queries in which a queue at this load forgets its past, if its service times have this squared coefficient
/// of variation.
///
/// Near saturation the backlog of a queue G/G/m is a reflected Brownian motion, with the relaxation time (c_a² + c_s²) / 2 (1 − ρ)²
/// in mean times between arrivals, for any m. Source: Whitt, "Planning queueing simulations", Management Science 35, 1989.
#[must_use]
pub fn relaxation(load: f64, variation: f64) -> f64 {
    0.5 * (1.0 + variation) / (1.0 - load).powi(2)
}

/// Most queries in a run that is prolonged to cover its arrivals: half a minute of work.
pub(crate) const COVERED_QUERIES: f64 = 2e8;

/// Run lengths of a search; runs cover the slowest change in their arrivals if possible.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covering {
    length: RunLength,
    /// `None` if nothing changes slowly.
    time_scale: Option<TimeScale>,
    /// Whether arrivals repeat after this time, so that runs are compared pass by pass.
    repeats: bool,
}

impl Covering {
    /// Lengths for arrivals that are typical over `time_scale`, and may repeat after it.
    pub(super) fn new(length: RunLength, time_scale: Option<TimeScale>, repeats: bool) -> Self {
        Self { length, time_scale, repeats }
    }

    /// The length by [`RunLength::searched`], rounded up to whole passes.
    pub(super) fn searched(&self, criterion: &Criterion, rate_qps: f64) -> usize {
        self.whole(self.length.searched(criterion, rate_qps), rate_qps, 1.0)
    }

    /// The length by [`RunLength::confirmed`] of all runs together.
    pub(super) fn confirmed(&self, criterion: &Criterion, rate_qps: f64) -> usize {
        self.length.confirmed(criterion, rate_qps)
    }

    /// The length of a confirming run with at least this number of queries, in whole passes: two at least if arrivals repeat.
    pub(super) fn in_passes(&self, queries: usize, rate_qps: f64) -> usize {
        self.whole(queries, rate_qps, if self.repeats { 2.0 } else { 1.0 })
    }

    /// Least number of queries in a run whose queue relaxes within `relaxation` queries, as far as runs are prolonged.
    pub(super) fn relaxed(&self, relaxation: f64, is_alone: bool) -> usize {
        let (beside_others, alone) = RELAXATIONS;
        let queries = (relaxation * if is_alone { alone } else { beside_others }).ceil() as usize;
        match self.length {
            RunLength::Exactly(_) => 0,
            RunLength::Enough { .. } => queries.min(SETTLING_QUERIES),
        }
    }

    /// Number of queries in a run that has more time to settle than one of `queries`; 0 if runs are not prolonged.
    pub(super) fn settling(&self, queries: usize) -> usize {
        if matches!(self.length, RunLength::Enough { .. }) { (4 * queries).min(SETTLING_QUERIES) } else { 0 }
    }

    /// Seconds after which arrivals at a rate repeat; `None` if they do not.
    pub(super) fn pass_seconds(&self, rate_qps: f64) -> Option<f64> {
        self.time_scale.filter(|_| self.repeats).map(|scale| scale.arrivals(rate_qps) / rate_qps)
    }

    /// The share of the slowest change that runs of the search cover; 1 if nothing changes slowly.
    pub(super) fn covered_share(&self, criterion: &Criterion, rate_qps: f64) -> f64 {
        self.time_scale.map_or(1.0, |scale| scale.covered_share(self.searched(criterion, rate_qps), rate_qps))
    }

    /// Rounds up to whole passes through the slowest change, so that all parts of it have equal weight.
    fn whole(&self, queries: usize, rate_qps: f64, least: f64) -> usize {
        self.pass(rate_qps).map_or(queries, |pass| (pass * (queries as f64 / pass).ceil().max(least)).ceil() as usize)
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
    use crate::study::Objective;

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
        assert_eq!(of("p99", 3e6), (300_000, 15_000_000));
        assert_eq!(of("p99", 3e7), (300_000, 16_000_000));
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
        let length = Covering::new(RunLength::default(), recording, true);
        let of = |rate_qps| (length.searched(&criterion, rate_qps), length.covered_share(&criterion, rate_qps));
        assert_eq!(of(70_000.0), (42_000_000, 1.0));
        // Runs consist of whole passes, and 100,000 queries are 16.7 passes.
        assert_eq!(of(10.0), (102_000, 1.0));
        // Confirming runs are compared pass by pass.
        assert_eq!([length.in_passes(9, 10.0), length.in_passes(12_001, 10.0)], [12_000, 18_000]);
        assert_eq!(length.pass_seconds(10.0), Some(600.0));
        assert_eq!(of(4e6), (300_000, 1.0 / 8000.0));
        assert_eq!(Covering::new(RunLength::default(), None, false).covered_share(&criterion, 4e6), 1.0);
        let beside = Covering::new(RunLength::Exactly(77), recording, false);
        assert_eq!((beside.searched(&criterion, 77.0), beside.covered_share(&criterion, 77.0)), (77, 1.0 / 600.0));
    }

    #[test]
    fn a_short_trace_can_tell_of_low_rates_only() {
        let criterion = Objective::default().within(Nanos::from_ms(500.0));
        assert_eq!(RunLength::default().highest_qps(&criterion, 10_000), Some(200.0));
        assert_eq!(RunLength::default().highest_qps(&criterion, 9_999), None);
    }
}
