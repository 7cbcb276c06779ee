//! Whether a run is stationary, in constant memory.
//!
//! The run is cut into parts of equal length. The first ones are its warm-up. A backlog that grows shows in two series over
//! the other parts: the mean delay of the queries that arrived in a part, and the age of the oldest query without an
//! answer. The second series rises even if only few queries starve and the mean hides them.
//!
//! ```text
//!   oldest  |        .  .  '  '      age at 8 moments of each part: the rows whose arrival and finish enclose it tell
//!   mean    |  _  .  _  .  _  .
//!           |warm|--+--+--+--+--|    20 parts
//! ```
//!
//! Each series has a [drift](crate::base::stats::drift) with a test that takes account of its autocorrelation.
//! Recorded arrivals are compared pass by pass: their parts are phases of a pass, and each phase is compared with itself.
//!
//! A *busy period* is a stretch in which all lanes work. It has ended if a lane waited for a query: the lane's next query
//! arrived after the lane had finished. A run is settled if this happened in at least ten of its parts.

use crate::base::stats::{Drift, drift};
use crate::base::time::Nanos;
use crate::sched::LogRow;
use crate::study::Unsteady;

/// Parts of a run without passes, and those among them that are its warm-up; at least as many of a run with many passes.
const PARTS: usize = 25;
const WARM_UP: usize = 5;
/// Phases of a pass through recorded arrivals.
const PHASES: usize = 20;
/// Moments of a part at which the age of the oldest query is taken.
const MOMENTS: usize = 8;
/// Significance level of the two tests together. The series are alike, so that half of it for each is strict.
const SIGNIFICANCE: f64 = 0.01;
/// A smaller rise in a run, as a share of the level, is no growth: delays of evenly spaced arrivals differ by rounding only.
const LEAST_RISE: f64 = 0.01;
/// Parts in which a busy period has ended, in a settled run.
const SETTLED_PARTS: usize = 10;

/// The parts of a run.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// Parts per nanosecond.
    by_ns: f64,
    phases: usize,
    parts: Vec<Part>,
    /// By moment, the age of the oldest query.
    ages: Vec<Nanos>,
    /// By processor, its last finish.
    finished: Vec<Nanos>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// The delays of the queries that arrived in it, in nanoseconds.
    delays: f64,
    queries: u32,
    /// Whether a lane waited for a query.
    has_idled: bool,
}

impl Parts {
    /// The parts of a run of this length. Arrivals that repeat after `pass` seconds are compared pass by pass.
    pub(super) fn new(seconds: f64, pass: Option<f64>) -> Self {
        let seconds = seconds.max(1e-9);
        let (phases, parts, by_second) = match pass.map(|pass| (pass, (seconds / pass).round() as usize)) {
            None => (1, PARTS, PARTS as f64 / seconds),
            // A pass cannot be compared with itself.
            Some((_, 0 | 1)) => (0, PARTS, PARTS as f64 / seconds),
            Some((pass, passes @ 2..PARTS)) => (PHASES, PHASES * passes, PHASES as f64 / pass),
            // Of many passes each part has one, or several.
            Some((pass, passes)) => {
                let several = passes / PARTS;
                (1, passes / several, 1.0 / (several as f64 * pass))
            }
        };
        let by_ns = by_second / 1e9;
        let (all, ages) = (vec![Part::default(); parts], vec![Nanos::ZERO; parts * MOMENTS]);
        Self { by_ns, phases, parts: all, ages, finished: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn record(&mut self, row: &LogRow) {
        let lane = row.processor.index();
        if lane >= self.finished.len() {
            self.finished.resize(lane + 1, Nanos::ZERO);
        }
        let waited = row.arrival > self.finished[lane];
        self.finished[lane] = row.finished.max(self.finished[lane]);
        self.add(row.arrival, row.finished, waited);
    }

    /// Adds a query that was unanswered from `arrival` to `end`. `has_idled`: a lane had waited for it.
    #[inline(always)]
    pub(super) fn add(&mut self, arrival: Nanos, end: Nanos, has_idled: bool) {
        let at = arrival.0 as f64 * self.by_ns;
        let last = self.parts.len() - 1;
        let part = &mut self.parts[(at as usize).min(last)];
        part.delays += (end.0 - arrival.0) as f64;
        part.queries += 1;
        part.has_idled |= has_idled;
        let by_moment = self.by_ns * MOMENTS as f64;
        let first = (at * MOMENTS as f64) as usize + 1;
        let end = ((end.0 as f64 * by_moment) as usize + 1).min(self.ages.len());
        for moment in first..end {
            let age = Nanos((moment as f64 / by_moment) as u64).since(arrival);
            self.ages[moment] = self.ages[moment].max(age);
        }
    }

    /// The drifts of the age of the oldest query and of the mean delay, in nanoseconds, from the first to the last part after the
    /// warm-up; `None` of a run that has no queries in some part, or a single pass.
    pub(super) fn drifts(&self) -> Option<[Drift; 2]> {
        let warm_up = if self.phases == 1 { self.parts.len() * WARM_UP / PARTS } else { 0 };
        if self.phases == 0 || self.parts.iter().any(|part| part.queries == 0) {
            return None;
        }
        let ages =
            self.ages.chunks(MOMENTS).map(|ages| ages.iter().map(|age| age.0 as f64).sum::<f64>() / MOMENTS as f64);
        let ages: Vec<f64> = ages.skip(warm_up).collect();
        let means = self.parts.iter().map(|part| part.delays / f64::from(part.queries));
        let means: Vec<f64> = means.skip(warm_up).collect();
        Some([drift(&ages, self.phases)?, drift(&means, self.phases)?])
    }

    /// Which of the two series grows, if one does.
    pub(super) fn grows(&self) -> Option<Unsteady> {
        let [age, mean] = self.drifts()?;
        let grows = |drift: Drift| drift.p_value < SIGNIFICANCE / 2.0 && drift.rise > LEAST_RISE * drift.level;
        match (grows(age), grows(mean)) {
            (_, true) => Some(Unsteady::MeanGrows),
            (true, false) => Some(Unsteady::AgeGrows),
            (false, false) => None,
        }
    }

    /// Whether enough busy periods have ended.
    pub(super) fn is_settled(&self) -> bool {
        self.parts.iter().filter(|part| part.has_idled).count() >= SETTLED_PARTS
    }
}
