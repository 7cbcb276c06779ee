//! Capacities with their bounds, as `capacity.csv`.

use std::io;
use std::path::Path;

use tandem_core::files::{Digits, Provenance, Record, write_csv};
use tandem_core::lab::{Capacity, LiveCheck};

use crate::row::{Text, row};
use crate::summary::Source;

/// A policy's capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityRow {
    /// Capacity found by simulation.
    pub capacity: Capacity,
    /// Live runs at and above that rate, if there were any.
    pub live: Option<LiveCheck>,
    /// The highest rate that a live run sustained. It may be below the capacity, or `None`.
    pub held_qps: Option<f64>,
}

impl CapacityRow {
    /// A capacity without live runs.
    pub fn simulated(capacity: Capacity) -> Self {
        Self { capacity, live: None, held_qps: None }
    }
}

row! {
    struct CapacityLine of (row: &CapacityRow) with {
        found = &row.capacity;
        at = row.live.as_ref().map(|live| &live.at);
        beyond = row.live.as_ref().map(|live| &live.beyond);
    } {
        source: Text = Source::Simulated.name().into(),
        policy: String = found.policy.clone(),
        deadline_ms: Digits<12> = Digits(found.criterion.deadline.as_ms()),
        max_rate_qps: Digits<6> = Digits(found.qps),
        low_qps: Digits<6> = Digits(found.interval.low),
        high_qps: Option<Digits<6>> = Some(Digits(found.interval.high)),
        bound_qps: Option<Digits<6>> = Some(Digits(found.bound_qps)),
        flips: usize = found.flips,
        region_qps: Option<Digits<6>> = Some(Digits(found.region_qps)),
        queries: usize = found.queries,
        seeds: usize = found.seeds,
        objective: String = found.criterion.to_string(),
        confidence: Digits<4> = Digits(found.interval.confidence),
        failing_qps: Option<Digits<6>> = found.failing_qps.map(Digits),
        confirmed_queries: usize = found.confirmed_queries,
        is_cut_off: bool = found.is_cut_off,
        live_qps: Option<Digits<6>> = at.map(|live| Digits(live.qps)),
        live_queries: Option<usize> = at.map(|live| live.verdict.queries),
        live_late: Option<usize> = at.map(|live| live.verdict.late),
        live_held: Option<bool> = at.map(|live| live.verdict.holds()),
        beyond_qps: Option<Digits<6>> = beyond.map(|live| Digits(live.qps)),
        beyond_queries: Option<usize> = beyond.map(|live| live.verdict.queries),
        beyond_late: Option<usize> = beyond.map(|live| live.verdict.late),
        beyond_held: Option<bool> = beyond.map(|live| live.verdict.holds()),
        held_qps: Option<Digits<6>> = row.held_qps.map(Digits),
        stable_qps: Option<Digits<6>> = Some(Digits(found.stable_qps)),
    }
}

impl Record for CapacityLine {}

/// Writes `capacity.csv`, whole or not at all.
pub fn write_capacities(path: &Path, provenance: &Provenance, rows: &[CapacityRow]) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().map(CapacityLine::of))
}
