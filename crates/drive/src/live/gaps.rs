//! Gaps of the machine: times in which it stood still although there was work.
//!
//! Rented machines pause for tens of milliseconds, and queries that wait meanwhile miss their deadline at any rate. A live
//! run therefore notes its gaps of more than [`LEAST_GAP`]. A gap is a time in which something that must happen did not:
//!
//! | gap | must happen | explained by |
//! | --- | --- | --- |
//! | of the driver | its thread reads the clock | [`Round::MOST_EACH`](super::Round) for each event of the round, or its sleep |
//! | of the lanes | a busy CPU lane ends a query | [`SLACK`] times the profiled time of each query under way |
//!
//! ```text
//!   lane 0   |= query =|====·················===|         · : the core does nothing
//!   lane 1      |==============·················==|
//!   driver   . . . . . . . . . .                 . . .     . : reads its clock
//!                                |     gap      |
//! ```
//!
//! - A driver that shares its core has no gaps: it cannot tell a gap from the work of a lane.
//! - A gap of the lanes begins when the last of the busy lanes should have ended its query, and ends with the first end of
//!   any. So a query that takes long beside others that end is no gap, and neither is one that always takes long. A query
//!   without a profiled time explains everything.
//! - Lanes with a device do not count: the device goes on while the machine stands still. Neither do lanes that let recorded
//!   times pass.
//!
//! Both kinds are counted apart, since a pause of the whole machine shows in both. The memory is constant.

use std::ops::Range;

use tandem_model::base::machine::{Class, PerClass};
use tandem_model::base::time::Nanos;

/// Shorter gaps are not counted.
pub const LEAST_GAP: Nanos = Nanos(1_000_000);
/// How much longer than alone a query may take beside others. Means in `recorded/` are at most 1.4 times as long.
pub const SLACK: u64 = 4;
/// Number of the longest gaps that are kept.
const KEPT: usize = 16;

/// What a gap is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapOf {
    /// The driver's thread.
    Driver,
    /// All busy lanes.
    Lanes,
}

/// A time in which the machine stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What stood still.
    pub of: GapOf,
    /// Its begin.
    pub from: Nanos,
    /// Its end.
    pub until: Nanos,
}

impl Gap {
    /// A gap from the end of what explains the time until `until`; `None` if it is short.
    #[inline]
    pub(super) fn after(of: GapOf, explained: Nanos, until: Nanos) -> Option<Self> {
        (until.since(explained) > LEAST_GAP).then_some(Self { of, from: explained, until })
    }

    /// Its duration.
    #[must_use]
    pub fn lasts(&self) -> Nanos {
        self.until.since(self.from)
    }
}

/// Number and sum of some gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapSum {
    /// The number of gaps.
    pub count: u32,
    /// Their sum.
    pub time: Nanos,
}

/// What happened in a third of a run, by released queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Third {
    /// Gaps of the driver.
    pub driver: GapSum,
    /// Gaps of the lanes.
    pub lanes: GapSum,
    /// Time that workers spent on batches that ended in it.
    pub worked: PerClass<Nanos>,
    /// Work of the sampled batches among them, and what their profiled times predict: without waiting, and of overlapping
    /// batches on the device.
    pub work: PerClass<(Nanos, Nanos)>,
    /// The greatest lateness of a release.
    pub lag: Nanos,
    /// When its last query was released.
    pub ended: Nanos,
}

/// The course of a run: its thirds, and its longest gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// The thirds.
    pub thirds: [Third; 3],
    /// The longest gaps, in order of time.
    pub longest: Vec<Gap>,
    /// The length of the run times the number of its workers.
    pub lane_time: Nanos,
}

impl Course {
    pub(super) fn new() -> Self {
        Self { longest: Vec::with_capacity(KEPT + 1), ..Self::default() }
    }

    /// Number and sum of the gaps of one kind.
    #[must_use]
    pub fn gaps(&self, of: GapOf) -> GapSum {
        let sums = self.thirds.iter().map(|third| match of {
            GapOf::Driver => third.driver,
            GapOf::Lanes => third.lanes,
        });
        sums.fold(GapSum::default(), |all, one| GapSum { count: all.count + one.count, time: all.time + one.time })
    }

    /// Work over predicted work of a class, in some of the thirds; `None` if it is not known.
    #[must_use]
    pub fn work_ratio(&self, class: Class, thirds: Range<usize>) -> Option<f64> {
        let sums = self.thirds[thirds].iter().map(|third| third.work[class]);
        let (work, predicted) = sums.fold((Nanos::ZERO, Nanos::ZERO), |all, one| (all.0 + one.0, all.1 + one.1));
        (work > Nanos::ZERO && predicted > Nanos::ZERO).then(|| work.0 as f64 / predicted.0 as f64)
    }

    /// The share of their time for which workers worked on queries; `None` without workers.
    #[must_use]
    pub fn busy_share(&self) -> Option<f64> {
        let worked = self.thirds.iter().flat_map(|third| Class::ALL.map(|class| third.worked[class].0)).sum::<u64>();
        (self.lane_time > Nanos::ZERO).then(|| worked as f64 / self.lane_time.0 as f64)
    }

    /// The greatest lateness of a release.
    #[must_use]
    pub fn lag_max(&self) -> Nanos {
        self.thirds.iter().map(|third| third.lag).fold(Nanos::ZERO, Nanos::max)
    }

    /// Adds a gap that ended in a third of the run.
    #[cold]
    pub fn note(&mut self, third: usize, gap: Gap) {
        let third = &mut self.thirds[third];
        let sum = match gap.of {
            GapOf::Driver => &mut third.driver,
            GapOf::Lanes => &mut third.lanes,
        };
        (sum.count, sum.time) = (sum.count + 1, sum.time + gap.lasts());
        self.longest.push(gap);
        if self.longest.len() > KEPT {
            let shortest = (0..=KEPT).min_by_key(|&at| self.longest[at].lasts()).unwrap_or(0);
            self.longest.remove(shortest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_summed_and_the_longest_are_kept() {
        let mut course = Course::new();
        for ms in (2..=40).rev() {
            let from = Nanos(1_000_000_000 * (41 - ms));
            let of = if ms % 2 == 0 { GapOf::Driver } else { GapOf::Lanes };
            let gap = Gap::after(of, from, from + Nanos(1_000_000 * ms)).unwrap();
            course.note((ms / 14) as usize, gap);
        }
        assert_eq!(Gap::after(GapOf::Driver, Nanos(7), Nanos(7) + LEAST_GAP), None);
        assert_eq!(course.gaps(GapOf::Driver), GapSum { count: 20, time: Nanos::from_ms(420.0) });
        assert_eq!(course.gaps(GapOf::Lanes), GapSum { count: 19, time: Nanos::from_ms(399.0) });
        assert_eq!(course.thirds[2].lanes.count, 6);
        let kept: Vec<u64> = course.longest.iter().map(|gap| gap.lasts().0 / 1_000_000).collect();
        assert_eq!(kept, (25..=40).rev().collect::<Vec<_>>());
        assert_eq!(course.longest.capacity(), KEPT + 1);
    }
    #[test]
    fn work_over_predicted_work_is_of_all_thirds_or_of_one_and_unknown_without_work() {
        let mut course = Course::new();
        course.thirds[0].work[Class::CPU] = (Nanos(30), Nanos(20));
        course.thirds[2].work[Class::CPU] = (Nanos(10), Nanos(20));
        let ratios = [0..3, 0..1, 1..2, 2..3].map(|thirds| course.work_ratio(Class::CPU, thirds));
        assert_eq!(ratios, [Some(1.0), Some(1.5), None, Some(0.5)]);
        assert_eq!((course.work_ratio(Class::GPU, 0..3), course.busy_share()), (None, None));
        (course.thirds[1].worked[Class::CPU], course.lane_time) = (Nanos(30), Nanos(120));
        assert_eq!(course.busy_share(), Some(0.25));
    }
}
