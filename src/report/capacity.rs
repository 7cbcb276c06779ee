//! Capacities beside their bound; `capacity.csv`.

use std::io;
use std::path::Path;

use super::csv::write_rows;
use super::number;
use super::source::Source;
use crate::files::Provenance;
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

/// The columns of `capacity.csv`.
const COLUMNS: &str =
    "source,policy,deadline_ms,max_rate_qps,low_qps,high_qps,bound_qps,flips,region_qps,queries,seeds";

/// Writes `capacity.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_capacities(path: &Path, provenance: &Provenance, rows: &[CapacityRow]) -> io::Result<()> {
    write_rows(path, provenance, COLUMNS, rows, |row| {
        format!(
            "{},{},{},{low},{low},{},{},{},{},{},{}",
            row.source,
            row.policy,
            number::text(row.deadline.as_ms(), 12),
            number::optional(row.high_qps, 6),
            number::optional(row.bound_qps, 6),
            row.flips,
            number::optional(row.region_qps, 6),
            row.queries,
            row.seeds,
            low = number::text(row.low_qps, 6),
        )
    })
}
