//! Workload files: what is known of each query, and what it cost when measured.
//!
//! One CSV row a query and mode; columns as in `traces/README.md`.

use std::path::Path;

use crate::files::{InputError, Provenance};
use crate::ids::{PerKind, QueryId};
use crate::query::{Features, Mode};

/// A service time measured on one kind of processor, alone and warm: the median of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Median service time as a scheduler experiences it, in microseconds (GPU: submission to results on the host).
    pub median_us: f64,
    /// Spread: the interquartile range of the runs, in microseconds; 0 where it was not recorded.
    pub spread_us: f64,
    /// The device's own time (GPU events), median, in microseconds, where there is one.
    pub device_us: Option<f64>,
}

/// One query in one mode.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadRow {
    /// Unique in the file.
    pub query_id: QueryId,
    /// The query's number in its log: the same in the rows of all modes.
    pub log_id: u32,
    /// How its terms combine.
    pub mode: Mode,
    /// What is known before it runs.
    pub features: Features,
    /// What it cost on each kind of processor, where measured.
    pub measured: PerKind<Option<Measured>>,
    /// Documents returned (at most k).
    pub results: u32,
}

/// A workload: rows with distinct query ids, and where they come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The comment lines of its file.
    pub provenance: Provenance,
    /// The queries.
    pub rows: Vec<WorkloadRow>,
}

impl Workload {
    /// Reads a workload file (`.csv`, also `.gz` or `.zst`).
    ///
    /// # Errors
    /// With line and column: missing or unknown columns, values that are not what the column holds (NaN, negative or zero
    /// times, unknown modes), query ids that repeat, no rows at all.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        todo!("{path:?}")
    }

    /// Writes a workload file, whole or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        todo!("{path:?}")
    }

    /// The rows in `mode` only.
    #[must_use]
    pub fn only(&self, mode: Mode) -> Self {
        let rows = self.rows.iter().filter(|row| row.mode == mode).cloned().collect();
        Self { provenance: self.provenance.clone(), rows }
    }
}
