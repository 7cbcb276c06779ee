//! Capacities beside their bound; `capacity.csv`.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::summary::Source;
use tandem_core::files::{Digits, Provenance, Record, write_csv};
use tandem_core::lab::{Capacity, LiveCheck};

/// A line of `capacity.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityRow {
    /// What was found by simulation.
    pub capacity: Capacity,
    /// Live runs at that rate and beyond it, where they were made.
    pub live: Option<LiveCheck>,
    /// The highest rate that held live, which may be a lower one; `None` if none did, or none was driven.
    pub held_qps: Option<f64>,
}

impl CapacityRow {
    /// Of a policy that was not driven.
    #[must_use]
    pub fn simulated(capacity: Capacity) -> Self {
        Self { capacity, live: None, held_qps: None }
    }
}

/// A line of `capacity.csv`, as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    source: Cow<'static, str>,
    policy: String,
    deadline_ms: Digits<12>,
    max_rate_qps: Digits<6>,
    low_qps: Option<Digits<6>>,
    high_qps: Option<Digits<6>>,
    bound_qps: Option<Digits<6>>,
    flips: usize,
    region_qps: Option<Digits<6>>,
    queries: usize,
    seeds: usize,
    objective: String,
    confidence: Option<Digits<4>>,
    failing_qps: Option<Digits<6>>,
    confirmed_queries: usize,
    is_cut_off: bool,
    live_qps: Option<Digits<6>>,
    live_queries: Option<usize>,
    live_late: Option<usize>,
    live_held: Option<bool>,
    beyond_qps: Option<Digits<6>>,
    beyond_queries: Option<usize>,
    beyond_late: Option<usize>,
    beyond_held: Option<bool>,
    held_qps: Option<Digits<6>>,
    stable_qps: Option<Digits<6>>,
    seeds_low_qps: Option<Digits<6>>,
    seeds_high_qps: Option<Digits<6>>,
    query_error: Option<Digits<3>>,
    measured_queries: Option<usize>,
    covered_share: Digits<4>,
}

impl Record for Line {}

/// Writes `capacity.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_capacities(path: &Path, provenance: &Provenance, rows: &[CapacityRow]) -> io::Result<()> {
    let line = |CapacityRow { capacity, live, held_qps }: &CapacityRow| {
        let at = live.map(|live| live.at);
        let beyond = live.map(|live| live.beyond);
        let interval = capacity.known_interval();
        Line {
            source: Source::Simulated.name().into(),
            policy: capacity.policy.clone(),
            deadline_ms: Digits(capacity.criterion.deadline.as_ms()),
            max_rate_qps: Digits(capacity.qps),
            low_qps: interval.map(|interval| Digits(interval.low)),
            high_qps: interval.map(|interval| Digits(interval.high)),
            bound_qps: Some(Digits(capacity.bound_qps)),
            flips: capacity.flips,
            region_qps: Some(Digits(capacity.region_qps)),
            queries: capacity.queries,
            seeds: capacity.seeds,
            objective: capacity.criterion.to_string(),
            confidence: interval.map(|interval| Digits(interval.confidence)),
            failing_qps: capacity.failing_qps.map(Digits),
            confirmed_queries: capacity.confirmed_queries,
            is_cut_off: capacity.is_cut_off,
            live_qps: at.map(|live| Digits(live.qps)),
            live_queries: at.map(|live| live.verdict.queries),
            live_late: at.map(|live| live.verdict.late),
            live_held: at.map(|live| live.verdict.holds()),
            beyond_qps: beyond.map(|live| Digits(live.qps)),
            beyond_queries: beyond.map(|live| live.verdict.queries),
            beyond_late: beyond.map(|live| live.verdict.late),
            beyond_held: beyond.map(|live| live.verdict.holds()),
            held_qps: held_qps.map(Digits),
            stable_qps: Some(Digits(capacity.stable_qps)),
            seeds_low_qps: Some(Digits(capacity.interval.low)),
            seeds_high_qps: Some(Digits(capacity.interval.high)),
            query_error: capacity.query_error.map(|error| Digits(error.share)),
            measured_queries: capacity.query_error.map(|error| error.queries),
            covered_share: Digits(capacity.covered_share),
        }
    };
    write_csv(path, provenance, rows.iter().map(line))
}
