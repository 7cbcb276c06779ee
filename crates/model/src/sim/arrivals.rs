//! Arrival times and queries of a run, at any rate.
//!
//! They are kept at one query a second; a run at another rate divides the times. Two rates or two policies therefore
//! share all random draws (common random numbers). Draws are repeated whenever a run is played, so a run of any length
//! needs no memory for them.

use std::sync::Arc;

use crate::base::time::Nanos;
use crate::traffic::{ArrivalProcess, Priorities, QueryDraws, Stretch, TimeScale, UnitTimes};

/// Arrivals and queries of one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrivals {
    /// The seed of the draws.
    pub seed: u64,
    source: Source,
    count: usize,
    /// The priorities of its queries; without them all are alike.
    priorities: Option<Arc<Priorities>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Source {
    /// Times at one query a second, in seconds, and positions in the experiment's queries.
    Given { unit: Arc<[f64]>, queries: Arc<[u32]> },
    /// Queries are drawn from positions below `rows`.
    Drawn { process: Arc<ArrivalProcess>, rows: usize },
}

impl Arrivals {
    /// Makes arrivals of `unit`, ascending times in seconds at one query a second, and `queries`, positions in the
    /// experiment's queries. The shorter list determines their number.
    #[must_use]
    pub fn given(seed: u64, unit: Vec<f64>, queries: Vec<u32>) -> Self {
        let count = unit.len().min(queries.len());
        Self { seed, source: Source::Given { unit: unit.into(), queries: queries.into() }, count, priorities: None }
    }

    /// The first `count` arrivals of a process, each with a query drawn from `rows`.
    ///
    /// # Panics
    /// If `rows` is 0 or past 2^32.
    #[must_use]
    pub fn drawn(process: &ArrivalProcess, seed: u64, count: usize, rows: usize) -> Self {
        assert!(rows > 0 && u32::try_from(rows).is_ok(), "{rows} queries to draw from");
        let source = Source::Drawn { process: Arc::new(process.clone()), rows };
        Self { seed, source, count, priorities: None }
    }

    /// These arrivals with queries of these priorities.
    #[must_use]
    pub fn with_priorities(self, priorities: Option<Arc<Priorities>>) -> Self {
        Self { priorities, ..self }
    }

    /// The priorities of the queries; `None` if all are alike.
    #[must_use]
    pub fn priorities(&self) -> Option<&Arc<Priorities>> {
        self.priorities.as_ref()
    }

    /// The number of arrivals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no arrivals.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The largest possible number of arrivals; `None` if they are drawn without end.
    #[must_use]
    pub fn available(&self) -> Option<usize> {
        match &self.source {
            Source::Given { unit, queries } => Some(unit.len().min(queries.len())),
            Source::Drawn { .. } => None,
        }
    }

    /// The process from which they are drawn; `None` if they are given.
    #[must_use]
    pub fn process(&self) -> Option<&ArrivalProcess> {
        match &self.source {
            Source::Given { .. } => None,
            Source::Drawn { process, .. } => Some(process),
        }
    }

    /// The time after which arrivals are typical; `None` if any run is typical, or the arrivals are given.
    #[must_use]
    pub fn time_scale(&self) -> Option<TimeScale> {
        self.process().and_then(ArrivalProcess::time_scale)
    }

    /// These arrivals, extended to a typical length at this rate if that is at most `most`.
    #[must_use]
    pub fn covering(&self, rate_qps: f64, most: f64) -> Self {
        let typical = self.time_scale().map_or(0.0, |scale| scale.arrivals(rate_qps));
        if typical <= most { self.first(self.count.max(typical.ceil() as usize)) } else { self.clone() }
    }

    /// The length of the run as a share of the typical length at this rate; at most 1.
    #[must_use]
    pub fn covered_share(&self, rate_qps: f64) -> f64 {
        self.time_scale().map_or(1.0, |scale| scale.covered_share(self.count, rate_qps))
    }

    /// The first `count` arrivals; drawn ones may be more than before. A longer run begins with the shorter one.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        let count = self.available().map_or(count, |available| count.min(available));
        Self { count, ..self.clone() }
    }

    /// Each arrival's time in seconds, at one query a second, with its position in the experiment's queries.
    pub fn iter(&self) -> impl Iterator<Item = (f64, u32)> + Clone + use<'_> {
        match &self.source {
            Source::Given { unit, queries } => Stream::Given(unit.iter().zip(queries.iter())),
            Source::Drawn { process, rows } => {
                Stream::Drawn(UnitTimes::of(process, self.seed).zip(QueryDraws::of(self.seed, *rows)))
            }
        }
        .take(self.count)
    }

    /// The query of each arrival, in order.
    pub fn queries(&self) -> impl Iterator<Item = u32> + '_ {
        self.iter().map(|(_, query)| query)
    }

    /// The arrivals of a run at `rate_qps` queries per second.
    ///
    /// # Panics
    /// If the rate is not finite and above 0.
    pub fn at_rate(&self, rate_qps: f64) -> impl ExactSizeIterator<Item = (Nanos, u32)> + Clone + use<'_> {
        let (units, stretch) = match &self.source {
            Source::Given { unit, queries } => {
                let count = self.count.min(unit.len()).min(queries.len());
                (Stream::Given((&unit[..count], &queries[..count])), Stretch::evenly(rate_qps))
            }
            Source::Drawn { process, rows } => {
                let drawn = (UnitTimes::of(process, self.seed), QueryDraws::of(self.seed, *rows));
                (Stream::Drawn(drawn), Stretch::of(process, self.seed, rate_qps))
            }
        };
        AtRate { units, stretch, left: self.count, times: [Nanos::ZERO; BLOCK], rows: [0; BLOCK], next: 0, end: 0 }
    }
}

/// Arrivals computed together: a processor computes several at once if nothing comes between.
const BLOCK: usize = 16;

/// Times at one query a second and positions in the experiment's queries, from the next arrival on.
type Units<'a> = Stream<(&'a [f64], &'a [u32]), (UnitTimes<'a>, QueryDraws)>;

#[derive(Clone)]
struct AtRate<'a> {
    units: Units<'a>,
    stretch: Stretch<'a>,
    left: usize,
    /// Arrivals computed last; those from `next` to before `end` are still to be returned.
    times: [Nanos; BLOCK],
    rows: [u32; BLOCK],
    next: usize,
    end: usize,
}

impl AtRate<'_> {
    #[inline(never)]
    fn make(&mut self) {
        let count = self.left.min(BLOCK);
        (self.left, self.next, self.end) = (self.left - count, 0, count);
        match &mut self.units {
            Stream::Given((units, queries)) => {
                let (now, later) = units.split_at(count);
                self.times.iter_mut().zip(now).for_each(|(time, &unit)| *time = self.stretch.time(unit));
                *units = later;
                let (now, later) = queries.split_at(count);
                self.rows[..count].copy_from_slice(now);
                *queries = later;
            }
            Stream::Drawn((units, queries)) => {
                let units = units.take(count);
                self.times.iter_mut().zip(units).for_each(|(time, unit)| *time = self.stretch.time(unit));
                self.rows.iter_mut().zip(queries.take(count)).for_each(|(row, query)| *row = query);
            }
        }
    }
}

impl Iterator for AtRate<'_> {
    type Item = (Nanos, u32);

    #[inline]
    fn next(&mut self) -> Option<(Nanos, u32)> {
        if self.next == self.end {
            if self.left == 0 {
                return None;
            }
            self.make();
        }
        let at = self.next % BLOCK;
        self.next += 1;
        Some((self.times[at], self.rows[at]))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.left + self.end - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for AtRate<'_> {}

#[derive(Clone)]
enum Stream<A, B> {
    Given(A),
    Drawn(B),
}

impl<'a, A: Iterator<Item = (&'a f64, &'a u32)>, B: Iterator<Item = (f64, u32)>> Iterator for Stream<A, B> {
    type Item = (f64, u32);

    #[inline]
    fn next(&mut self) -> Option<(f64, u32)> {
        match self {
            Self::Given(given) => given.next().map(|(&unit, &query)| (unit, query)),
            Self::Drawn(drawn) => drawn.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Given(given) => given.size_hint(),
            Self::Drawn(drawn) => drawn.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{draw_queries, unit_arrivals};

    #[test]
    fn what_is_drawn_as_it_is_played_equals_what_is_kept() {
        let drawn = Arrivals::drawn(&ArrivalProcess::Poisson, 7, 500, 30);
        let (unit, queries) = (unit_arrivals(&ArrivalProcess::Poisson, 7, 500), draw_queries(7, 500, 30));
        let kept = Arrivals::given(7, unit.clone(), queries.clone());
        assert!(
            drawn.iter().eq(kept.iter())
                && drawn.at_rate(321.0).eq(unit.iter().map(|&at| Stretch::evenly(321.0).time(at)).zip(queries))
        );
        assert_eq!((drawn.len(), drawn.at_rate(1.0).size_hint().0), (500, 500));
    }

    #[test]
    fn a_run_is_prolonged_where_it_is_drawn_and_ends_where_it_is_given() {
        let drawn = Arrivals::drawn(&ArrivalProcess::Uniform, 1, 10, 3);
        assert!(drawn.first(20).iter().take(10).eq(drawn.iter()) && drawn.first(20).len() == 20);
        let given = Arrivals::given(1, vec![1.0, 2.0], vec![0, 0]);
        assert_eq!((given.first(20).len(), given.first(1).len(), given.available()), (2, 1, Some(2)));
    }
}
