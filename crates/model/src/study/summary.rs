//! Summary of a run: delays, misses, utilisation.
//!
//! Percentiles are observed delays: the p-th is the smallest that at least p % of the delays do not exceed
//! ([`quantile`](crate::base::quantile)). In live runs and above four million queries it may be 1/4096 too long. Delay
//! counts from the intended arrival. A query without an answer counts with its age at the end of the run.

use crate::base::histogram::Histogram;
use crate::base::machine::{Class, LaneFault, Machine, PerClass};
use crate::base::time::Nanos;
use crate::cost::{EnergyMeter, MachineModel};
use crate::sched::{LogRow, ShedJob, Sink};
use crate::sim::SimQuery;
use crate::study::delays::Delays;
use crate::traffic::Priorities;

/// The statistics of a run.
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
    /// Queries that were answered after their deadline, or were past it without an answer when the run ended.
    pub missed: usize,
    /// Busy share of each class between the first arrival and the last finish; `None` if the machine has none.
    pub utilisation: PerClass<Option<f64>>,
    /// Queries that the policy took from the jobs of another class.
    pub stolen: usize,
    /// Queries finished per second between the first arrival and the last finish.
    pub throughput_qps: f64,
    /// Longest delay of the driver in releasing a query.
    pub lag_max_ms: f64,
    /// Queries that were dropped; the other counts exclude them.
    pub shed: usize,
    /// Queries that ran twice because their lane failed.
    pub again: usize,
    /// Number of lane failures; a fallback executor takes over.
    pub lane_faults: usize,
    /// Energy of the GPUs in joules: measured in live runs, and predicted in simulated ones. `None` without energy counters or
    /// power in the machine profile.
    pub gpu_energy_j: Option<f64>,
}

impl Summary {
    /// Energy of the GPUs per finished query, in millijoules, if it is known.
    #[must_use]
    pub fn gpu_mj_per_query(&self) -> Option<f64> {
        Some(1e3 * self.gpu_energy_j? / self.queries as f64)
    }
}

/// Collects a [`Summary`] row by row. It takes 8 bytes per query, up to four million queries.
#[derive(Clone, Debug)]
pub struct Tally {
    machine: Machine,
    delays: Delays,
    finished: usize,
    delay_sum: u128,
    missed: usize,
    stolen: usize,
    busy: PerClass<Nanos>,
    /// By processor, the end of its busy time so far.
    busy_until: Vec<Nanos>,
    first_arrival: Nanos,
    last_finish: Nanos,
    lag_max: Nanos,
    last_batch: Option<u32>,
    shed: usize,
    again: usize,
    lane_faults: usize,
    energy: Option<Box<EnergyMeter>>,
}

impl Tally {
    /// An empty tally that expects `queries` rows. Utilisation covers only the processors of `machine`.
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
            energy: None,
        }
    }

    /// This tally with the energy of the GPUs of `model` for these queries, if their power is known.
    #[must_use]
    pub fn with_energy(self, model: &MachineModel, queries: &[SimQuery]) -> Self {
        let queries = queries.iter().map(|query| (query.id, query.service));
        Self { energy: EnergyMeter::new(model, queries).map(Box::new), ..self }
    }

    /// An empty tally whose memory is allocated at once and never grows.
    #[must_use]
    pub fn counting(machine: &Machine) -> Self {
        Self { delays: Delays::counted(), ..Self::new(machine, 0) }
    }

    /// Adds a query without an answer when the run ended. Its age is a lower bound of its delay.
    pub fn unanswered(&mut self, age: Nanos, has_missed: bool) {
        self.delays.push(age);
        self.delay_sum += u128::from(age.0);
        self.missed += usize::from(has_missed);
    }

    /// Whether a query has missed its deadline.
    #[must_use]
    pub fn has_missed(&self) -> bool {
        self.missed > 0
    }

    /// The summary; `None` if no query has finished.
    #[must_use]
    pub fn summary(mut self) -> Option<Summary> {
        let mut delays = std::mem::replace(&mut self.delays, Delays::with_room_for(0));
        self.with_delays(delays.len(), |share| delays.nearest_rank(share))
    }

    /// The summary with percentiles of delays that were counted elsewhere; `None` if no query has finished.
    #[must_use]
    pub fn summary_of(self, delays: &Histogram) -> Option<Summary> {
        self.with_delays(delays.len(), |share| delays.nearest_rank(share))
    }

    fn with_delays(self, delays: usize, mut percentile: impl FnMut(f64) -> Option<Nanos>) -> Option<Summary> {
        let queries = self.finished;
        if queries == 0 {
            return None;
        }
        let mut percentile_ms = |share| percentile(share).map(Nanos::as_ms);
        let (p50_ms, p95_ms) = (percentile_ms(0.5)?, percentile_ms(0.95)?);
        let (p99_ms, p999_ms) = (percentile_ms(0.99)?, percentile_ms(0.999)?);
        let max_ms = percentile_ms(1.0)?;
        let span = self.last_finish.since(self.first_arrival);
        let span_s = span.as_secs();
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
            gpu_energy_j: self.energy.map(|energy| energy.joules(span)),
        })
    }
}

impl Tally {
    /// Adds a query whose delay is counted elsewhere.
    // Inlining lets the compiler skip unused fields of the row.
    #[inline(always)]
    pub fn record_the_rest(&mut self, row: &LogRow) {
        let delay = row.delay();
        self.finished += 1;
        self.delay_sum += u128::from(delay.0);
        self.missed += usize::from(row.missed());
        self.stolen += usize::from(row.stolen);
        self.again += usize::from(row.again);
        // The rows of a batch are consecutive. Each batch, and each overlap of batches on a processor, counts once.
        if self.last_batch != Some(row.batch) {
            self.last_batch = Some(row.batch);
            if let Some(busy_until) = self.busy_until.get_mut(row.processor.index()) {
                self.busy[row.class] += row.finished.since(row.started.max(*busy_until));
                *busy_until = row.finished.max(*busy_until);
                self.busy[row.class] += row.helped;
            }
            if let Some(energy) = &mut self.energy {
                energy.begin(row.processor, row.query);
            }
        } else if let Some(energy) = &mut self.energy {
            energy.add(row.query);
        }
        self.first_arrival = self.first_arrival.min(row.arrival);
        self.last_finish = self.last_finish.max(row.finished);
        self.lag_max = self.lag_max.max(row.released.since(row.arrival));
    }
}

impl Sink for Tally {
    #[inline(always)]
    fn record(&mut self, row: &LogRow) {
        self.delays.push(row.delay());
        self.record_the_rest(row);
    }

    fn shed(&mut self, _job: &ShedJob) {
        self.shed += 1;
    }

    fn lane_fault(&mut self, _fault: &LaneFault) {
        self.lane_faults += 1;
    }
}

/// Collects a [`Summary`] of the queries of each priority.
#[derive(Clone, Debug, Default)]
pub struct PriorityTally {
    levels: Vec<(String, Tally)>,
}

impl PriorityTally {
    /// An empty tally of these priorities.
    #[must_use]
    pub fn new(priorities: Option<&Priorities>) -> Self {
        let levels = priorities.into_iter().flat_map(Priorities::levels);
        Self { levels: levels.map(|level| (level.name.clone(), Tally::counting(&Machine::default()))).collect() }
    }

    /// Adds a query without an answer, as [`Tally::unanswered`].
    pub fn unanswered(&mut self, priority: u8, age: Nanos, has_missed: bool) {
        if let Some((_, tally)) = self.levels.get_mut(usize::from(priority)) {
            tally.unanswered(age, has_missed);
        }
    }

    /// The summary of each priority with a finished query, by its name.
    #[must_use]
    pub fn summaries(self) -> Vec<(String, Summary)> {
        self.levels.into_iter().filter_map(|(name, tally)| Some((name, tally.summary()?))).collect()
    }
}

impl Sink for PriorityTally {
    #[inline]
    fn record(&mut self, row: &LogRow) {
        if let Some((_, tally)) = self.levels.get_mut(usize::from(row.priority)) {
            tally.record(row);
        }
    }

    fn shed(&mut self, job: &ShedJob) {
        if let Some((_, tally)) = self.levels.get_mut(usize::from(job.priority)) {
            tally.shed(job);
        }
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
            priority: 0,
            predicted: PerClass::two(Nanos(2), Nanos(1)),
            stolen: job == 2,
            again: job == 1,
            lanes: 1,
            helped: Nanos::ZERO,
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
            priority: 0,
            predicted: PerClass::default(),
            stolen: false,
            again: false,
            lanes: 1,
            helped: Nanos::ZERO,
        });
        let summary = tally.summary().unwrap();
        assert_eq!((summary.queries, summary.missed, summary.max_ms, summary.mean_ms), (1, 1, 5.0, 3.0));
    }
}
