//! One prediction beside several live runs of the very same arrivals.
//!
//! A gap between the two says nothing until it is compared with how far the runs differ from each other, and a mean that
//! fits may be the sum of two errors. So each rate is driven several times with the same arrivals and queries (strict
//! replay), and each number comes with the spread of the runs that nothing [disturbed](crate::lab::Interference); delays are
//! told apart by where they come from, and compared as distributions.
//!
//! ```text
//!   arrival ─ release ─ released ─ wait ─ started ─ lane ─ finished      lane: handing over, work, handing back
//! ```

use std::collections::BTreeMap;

use crate::base::ids::QueryId;
use crate::base::machine::{Class, PerClass};
use crate::lab::{Interference, Summary};
use crate::sched::RunLog;

/// Where delays come from: means over the queries, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// From a query's arrival until the dispatcher knew.
    pub release_us: f64,
    /// From then until it was started.
    pub wait_us: f64,
    /// On its lane, by class, those of other classes not counted; 0 where none ran.
    pub lane_us: PerClass<f64>,
    /// Of that, at work, a batch: `None` for simulated runs and recorded lanes.
    pub work_us: PerClass<Option<f64>>,
    /// And handing over and back.
    pub handoff_us: PerClass<Option<f64>>,
    /// Queries by class.
    pub queries: PerClass<usize>,
}

impl Parts {
    /// Of a run's log.
    #[must_use]
    pub fn of(log: &RunLog) -> Self {
        let mut parts = Self::default();
        let count = log.rows.len().max(1) as f64;
        for row in &log.rows {
            parts.release_us += row.released.since(row.arrival).as_us() / count;
            parts.wait_us += row.started.since(row.released).as_us() / count;
            parts.lane_us[row.class] += row.finished.since(row.started).as_us();
            parts.queries[row.class] += 1;
        }
        for class in Class::ALL {
            parts.lane_us[class] /= parts.queries[class].max(1) as f64;
        }
        parts
    }
}

/// A run of a rate.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRun {
    /// What came of it.
    pub summary: Summary,
    /// Where its delays came from.
    pub parts: Parts,
    /// Greatest distance between the distribution of its delays and that predicted (Kolmogorov and Smirnov's); 0 for the
    /// prediction itself.
    pub distance: f64,
    /// What else happened.
    pub interference: Interference,
    /// Why it does not count.
    pub disturbed: Option<&'static str>,
}

/// A policy at a rate: predicted, and driven several times.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The policy's name.
    pub policy: String,
    /// The rate.
    pub rate_qps: f64,
    /// That over the predicted capacity.
    pub load: f64,
    /// The prediction.
    pub predicted: ComparedRun,
    /// The same with the speed that the machine had around the runs that count.
    pub at_speed: Option<Summary>,
    /// The live runs.
    pub runs: Vec<ComparedRun>,
    /// Of the first run that counts, query by query: class, predicted and measured time on its lane, in microseconds.
    pub scatter: Vec<(QueryId, Class, f64, f64)>,
}

/// A number of the live runs that count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeated {
    /// Their median,
    pub middle: f64,
    /// the least,
    pub low: f64,
    /// and the greatest.
    pub high: f64,
}

impl Repeated {
    /// How far they differ, over their median.
    #[must_use]
    pub fn spread(&self) -> f64 {
        if self.middle > 0.0 { (self.high - self.low) / self.middle } else { 0.0 }
    }

    /// How far a prediction is from their median, over it.
    #[must_use]
    pub fn error(&self, predicted: f64) -> f64 {
        if self.middle > 0.0 { predicted / self.middle - 1.0 } else { 0.0 }
    }
}

impl Compared {
    /// The runs that count.
    pub fn counted(&self) -> impl Iterator<Item = &ComparedRun> {
        self.runs.iter().filter(|run| run.disturbed.is_none())
    }

    /// A number of the runs that count; of all, if none does. `None` without runs.
    #[must_use]
    pub fn repeated(&self, of: impl Fn(&ComparedRun) -> f64) -> Option<Repeated> {
        let mut values: Vec<f64> = self.counted().map(&of).collect();
        if values.is_empty() {
            values = self.runs.iter().map(&of).collect();
        }
        values.sort_by(f64::total_cmp);
        Some(Repeated { middle: *values.get(values.len() / 2)?, low: *values.first()?, high: *values.last()? })
    }
}

/// The greatest distance between two distributions of delays: 0 if they are the same, 1 if they do not meet.
#[must_use]
pub(super) fn distance(one: &RunLog, other: &RunLog) -> f64 {
    let delays = |log: &RunLog| {
        let mut delays: Vec<u64> = log.rows.iter().map(|row| row.delay().0).collect();
        delays.sort_unstable();
        delays
    };
    let (one, other) = (delays(one), delays(other));
    if one.is_empty() || other.is_empty() {
        return 1.0;
    }
    let (mut i, mut j, mut most) = (0, 0, 0.0f64);
    while i < one.len() && j < other.len() {
        let at = one[i].min(other[j]);
        while one.get(i) == Some(&at) {
            i += 1;
        }
        while other.get(j) == Some(&at) {
            j += 1;
        }
        most = most.max((i as f64 / one.len() as f64 - j as f64 / other.len() as f64).abs());
    }
    most
}

/// Query by query, the mean time on its lane in two runs, where both ran it on processors of one class.
#[must_use]
pub(super) fn scatter(predicted: &RunLog, measured: &RunLog) -> Vec<(QueryId, Class, f64, f64)> {
    let by_query = |log: &RunLog| {
        let mut times: BTreeMap<(QueryId, usize), (f64, f64)> = BTreeMap::new();
        for row in &log.rows {
            let (sum, count) = times.entry((row.query, row.class.index())).or_default();
            (*sum, *count) = (*sum + row.finished.since(row.started).as_us(), *count + 1.0);
        }
        times
    };
    let measured = by_query(measured);
    let both = by_query(predicted).into_iter().filter_map(|((query, class), (sum, count))| {
        let (measured_sum, measured_count) = measured.get(&(query, class))?;
        Some((query, Class::ALL[class], sum / count, measured_sum / measured_count))
    });
    both.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{JobId, ProcessorId};
    use crate::base::time::Nanos;
    use crate::sched::LogRow;

    fn log(rows: &[(u32, Class, u64, u64, u64)]) -> RunLog {
        let row = |(job, &(query, class, released, started, finished))| LogRow {
            job: JobId(job),
            query: QueryId(query),
            arrival: Nanos::ZERO,
            released: Nanos(released),
            started: Nanos(started),
            finished: Nanos(finished),
            processor: ProcessorId(0),
            class,
            batch: job,
            deadline: Nanos::MAX,
            predicted: PerClass::default(),
            stolen: false,
            again: false,
        };
        RunLog { rows: (0..).zip(rows).map(row).collect(), ..RunLog::default() }
    }

    #[test]
    fn a_delay_is_told_apart_by_where_it_comes_from() {
        let parts = Parts::of(&log(&[(0, Class::CPU, 1000, 3000, 13_000), (1, Class::GPU, 0, 0, 4000)]));
        assert_eq!((parts.release_us, parts.wait_us), (0.5, 1.0));
        assert_eq!((parts.lane_us[Class::CPU], parts.lane_us[Class::GPU]), (10.0, 4.0));
    }

    #[test]
    fn distributions_differ_by_where_they_are_furthest_apart() {
        let of = |finished: &[u64]| log(&finished.iter().map(|&at| (0, Class::CPU, 0, 0, at)).collect::<Vec<_>>());
        assert_eq!(distance(&of(&[1, 2, 3, 4]), &of(&[4, 3, 2, 1])), 0.0);
        assert_eq!(distance(&of(&[1, 2]), &of(&[3, 4, 5])), 1.0);
        // At 2 half of the one and all of the other.
        assert_eq!(distance(&of(&[1, 2, 9, 9]), &of(&[1, 1, 2, 2])), 0.5);
    }

    #[test]
    fn queries_are_compared_where_both_runs_ran_them_alike() {
        let predicted = log(&[(7, Class::CPU, 0, 0, 1000), (7, Class::CPU, 0, 0, 3000), (8, Class::GPU, 0, 0, 500)]);
        let measured = log(&[(7, Class::CPU, 0, 0, 5000), (8, Class::CPU, 0, 0, 900)]);
        assert_eq!(scatter(&predicted, &measured), [(QueryId(7), Class::CPU, 2.0, 5.0)]);
    }
}
