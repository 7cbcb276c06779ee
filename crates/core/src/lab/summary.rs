//! What a run comes to: delays, misses, utilisation.
//!
//! Percentiles are delays that queries had, not estimates: the p-th is the smallest that at least p % of the delays don't
//! exceed ([`quantile`](crate::base::quantile)); of more than four million queries, and in live runs, one at most 1/4096 longer. Delay
//! counts from the intended arrival. A query that had no answer when the run ended counts with its age.

use crate::base::machine::{Class, LaneFault, Machine, PerClass};
use crate::base::time::Nanos;
use crate::lab::delays::Delays;
use crate::sched::{LogRow, ShedJob, Sink};

/// A run in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Queries that finished.
    pub queries: usize,
    /// Mean delay.
    pub mean_ms: f64,
    /// Median delay.
    pub p50_ms: f64,
    /// 95th percentile of the delay.
    pub p95_ms: f64,
    /// 99th percentile of the delay.
    pub p99_ms: f64,
    /// 99.9th percentile of the delay.
    pub p999_ms: f64,
    /// Longest delay.
    pub max_ms: f64,
    /// Queries that finished after their deadline, or were past it without an answer when the run ended.
    pub missed: usize,
    /// Share of the time from the first arrival to the last finish in which processors of a class were busy; `None`
    /// where the machine has none.
    pub utilisation: PerClass<Option<f64>>,
    /// Queries that the policy took from the jobs of another class.
    pub stolen: usize,
    /// Queries finished per second of that time.
    pub throughput_qps: f64,
    /// The longest that the driver was late to release a query.
    pub lag_max_ms: f64,
    /// Queries that were dropped, and are not among those above.
    pub shed: usize,
    /// Queries that ran twice, since their lane failed.
    pub again: usize,
    /// How often a lane failed, and its fallback executor took over.
    pub lane_faults: usize,
}

/// Gathers a [`Summary`] row by row, in 8 bytes a query, and no more than for four million of them.
#[derive(Clone, Debug)]
pub struct Tally {
    machine: Machine,
    delays: Delays,
    finished: usize,
    delay_sum: u128,
    missed: usize,
    stolen: usize,
    busy: PerClass<Nanos>,
    /// By processor: until when its time has been counted.
    busy_until: Vec<Nanos>,
    first_arrival: Nanos,
    last_finish: Nanos,
    lag_max: Nanos,
    last_batch: Option<u32>,
    shed: usize,
    again: usize,
    lane_faults: usize,
}

impl Tally {
    /// No rows yet; `queries` is how many will come, as far as known. Of processors that `machine` lacks no utilisation is
    /// told.
    #[must_use]
    pub fn new(machine: &Machine, queries: usize) -> Self {
        Self {
            machine: machine.clone(),
            delays: Delays::with_room_for(queries),
            finished: 0,
            delay_sum: 0,
            missed: 0,
            stolen: 0,
            busy: PerClass::default(),
            busy_until: vec![Nanos::ZERO; machine.len()],
            first_arrival: Nanos::MAX,
            last_finish: Nanos::ZERO,
            lag_max: Nanos::ZERO,
            last_batch: None,
            shed: 0,
            again: 0,
            lane_faults: 0,
        }
    }

    /// As [`new`](Self::new), in memory that is there from the start and does not grow.
    #[must_use]
    pub fn counting(machine: &Machine) -> Self {
        Self { delays: Delays::counted(), ..Self::new(machine, 0) }
    }

    /// A query that had no answer when the run ended, at this age: its delay would have been that at least.
    pub fn unanswered(&mut self, age: Nanos, has_missed: bool) {
        self.delays.push(age);
        self.delay_sum += u128::from(age.0);
        self.missed += usize::from(has_missed);
    }

    /// Whether a query has finished after its deadline.
    #[must_use]
    pub fn has_missed(&self) -> bool {
        self.missed > 0
    }

    /// The summary; `None` if no query has finished.
    #[must_use]
    pub fn summary(mut self) -> Option<Summary> {
        let queries = self.finished;
        if queries == 0 {
            return None;
        }
        let delays = self.delays.len();
        let mut percentile_ms = |share| self.delays.nearest_rank(share).map(Nanos::as_ms);
        let (p50_ms, p95_ms) = (percentile_ms(0.5)?, percentile_ms(0.95)?);
        let (p99_ms, p999_ms) = (percentile_ms(0.99)?, percentile_ms(0.999)?);
        let max_ms = percentile_ms(1.0)?;
        let span_s = self.last_finish.since(self.first_arrival).as_secs();
        let utilisation = |class: Class| {
            let count = self.machine.count(class) as f64;
            (count > 0.0).then(|| if span_s > 0.0 { self.busy[class].as_secs() / (count * span_s) } else { 0.0 })
        };
        Some(Summary {
            queries,
            mean_ms: self.delay_sum as f64 / delays as f64 / 1e6,
            p50_ms,
            p95_ms,
            p99_ms,
            p999_ms,
            max_ms,
            missed: self.missed,
            utilisation: PerClass::from_fn(utilisation),
            stolen: self.stolen,
            throughput_qps: if span_s > 0.0 { queries as f64 / span_s } else { 0.0 },
            lag_max_ms: self.lag_max.as_ms(),
            shed: self.shed,
            again: self.again,
            lane_faults: self.lane_faults,
        })
    }
}

impl Sink for Tally {
    // What is not looked at of a row need not be made.
    #[inline(always)]
    fn record(&mut self, row: &LogRow) {
        let delay = row.delay();
        self.finished += 1;
        self.delays.push(delay);
        self.delay_sum += u128::from(delay.0);
        self.missed += usize::from(row.missed());
        self.stolen += usize::from(row.stolen);
        self.again += usize::from(row.again);
        // The rows of a batch come one after the other; its time counts once, and so does the time of batches that
        // overlap on one processor.
        if self.last_batch != Some(row.batch) {
            self.last_batch = Some(row.batch);
            if let Some(busy_until) = self.busy_until.get_mut(row.processor.index()) {
                self.busy[row.class] += row.finished.since(row.started.max(*busy_until));
                *busy_until = row.finished.max(*busy_until);
            }
        }
        self.first_arrival = self.first_arrival.min(row.arrival);
        self.last_finish = self.last_finish.max(row.finished);
        self.lag_max = self.lag_max.max(row.released.since(row.arrival));
    }

    fn shed(&mut self, _job: &ShedJob) {
        self.shed += 1;
    }

    fn lane_fault(&mut self, _fault: &LaneFault) {
        self.lane_faults += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{JobId, ProcessorId, QueryId};

    #[test]
    fn a_batch_is_busy_once_and_misses_are_strictly_late() {
        let row = |job: u32, batch: u32, started: u64, finished: u64| LogRow {
            job: JobId(job),
            query: QueryId(job),
            arrival: Nanos(0),
            released: Nanos(1_000_000),
            started: Nanos(started),
            finished: Nanos(finished),
            processor: ProcessorId(0),
            class: Class::CPU,
            batch,
            deadline: Nanos(10_000_000),
            predicted: PerClass::two(Nanos(2), Nanos(1)),
            stolen: job == 2,
            again: job == 1,
        };
        let rows = [row(1, 0, 0, 10_000_000), row(0, 1, 10_000_000, 20_000_000), row(2, 1, 10_000_000, 20_000_000)];
        let mut tally = Tally::new(&Machine::new(2, 0), rows.len());
        rows.iter().for_each(|row| tally.record(row));
        let summary = tally.summary().unwrap();
        assert_eq!(summary.utilisation, PerClass::two(Some(0.5), None));
        assert_eq!((summary.queries, summary.missed, summary.stolen, summary.again), (3, 2, 1, 1));
        assert_eq!((summary.p50_ms, summary.max_ms, summary.lag_max_ms), (20.0, 20.0, 1.0));
        assert_eq!(Tally::new(&Machine::new(1, 0), 0).summary(), None);
    }

    #[test]
    fn queries_without_an_answer_count_with_their_age_and_are_not_finished() {
        let mut tally = Tally::counting(&Machine::new(1, 0));
        tally.unanswered(Nanos(5_000_000), true);
        assert_eq!(tally.clone().summary(), None);
        tally.record(&LogRow {
            job: JobId(0),
            query: QueryId(0),
            arrival: Nanos(0),
            released: Nanos(0),
            started: Nanos(0),
            finished: Nanos(1_000_000),
            processor: ProcessorId(0),
            class: Class::CPU,
            batch: 0,
            deadline: Nanos(2_000_000),
            predicted: PerClass::default(),
            stolen: false,
            again: false,
        });
        let summary = tally.summary().unwrap();
        assert_eq!((summary.queries, summary.missed, summary.max_ms, summary.mean_ms), (1, 1, 5.0, 3.0));
    }
}
