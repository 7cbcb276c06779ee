//! Capacities beside their bound; `capacity.csv`.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::source::Source;
use crate::files::{Digits, Provenance, Record, write_csv};
use crate::time::Nanos;

/// A line of `capacity.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityRow {
    /// Simulated or measured.
    pub source: Source,
    /// The policy's name.
    pub policy: String,
    /// The deadline.
    pub deadline: Nanos,
    /// The highest rate up to which no query missed; 0 if even the lowest rate tried had a miss.
    pub low_qps: f64,
    /// The lowest rate tried at which a query missed; `None` if none was found.
    pub high_qps: Option<f64>,
    /// The highest rate that any scheduler could sustain on these arrivals; `None` if they exclude no rate.
    pub bound_qps: Option<f64>,
    /// How often the verdict changed along the rates tried.
    pub flips: usize,
    /// The highest rate at which any scheduler is stable in the long run.
    pub region_qps: Option<f64>,
    /// Queries in a run.
    pub queries: usize,
    /// Runs at each rate, with different seeds.
    pub seeds: usize,
}

impl CapacityRow {
    /// Capacity as a share of the bound.
    #[must_use]
    pub fn share_of_bound(&self) -> Option<f64> {
        self.bound_qps.filter(|&bound| bound > 0.0).map(|bound| self.low_qps / bound)
    }
}

/// A line of `capacity.csv`, as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    source: Cow<'static, str>,
    policy: String,
    deadline_ms: Digits<12>,
    max_rate_qps: Digits<6>,
    low_qps: Digits<6>,
    high_qps: Option<Digits<6>>,
    bound_qps: Option<Digits<6>>,
    flips: usize,
    region_qps: Option<Digits<6>>,
    queries: usize,
    seeds: usize,
}

impl Record for Line {}

/// Writes `capacity.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_capacities(path: &Path, provenance: &Provenance, rows: &[CapacityRow]) -> io::Result<()> {
    let line = |row: &CapacityRow| Line {
        source: row.source.name().into(),
        policy: row.policy.clone(),
        deadline_ms: Digits(row.deadline.as_ms()),
        max_rate_qps: Digits(row.low_qps),
        low_qps: Digits(row.low_qps),
        high_qps: row.high_qps.map(Digits),
        bound_qps: row.bound_qps.map(Digits),
        flips: row.flips,
        region_qps: row.region_qps.map(Digits),
        queries: row.queries,
        seeds: row.seeds,
    };
    write_csv(path, provenance, rows.iter().map(line))
}
