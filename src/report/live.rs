//! What live runs say beyond simulated ones: the last columns of their `summary.csv`.

use std::io;
use std::path::Path;

use super::summary::{Line, SummaryRow};
use crate::files::{Decimals, Provenance, write_csv};
use crate::lab::Verdict;

/// A line of a live `summary.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveSummaryRow {
    /// The columns that simulated runs have too. They count jobs that finished.
    pub row: SummaryRow,
    /// Median of the driver's lag.
    pub lag_p50_ms: f64,
    /// 99th percentile of the driver's lag.
    pub lag_p99_ms: f64,
    /// Median time that handing a batch to a worker and back took beyond the work.
    pub handoff_p50_us: f64,
    /// Jobs released that never finished, because the run ended early.
    pub unfinished: usize,
    /// Jobs never released, because the run ended early.
    pub unreleased: usize,
    /// Whether the run was given up because of a hopeless backlog: then the delays are those of its beginning only.
    pub overloaded: bool,
    /// What stood in the GPU's place: `real`, `replay` or `none`.
    pub gpu: &'static str,
    /// Whether it came up to the objective; `None` where it was interrupted.
    pub verdict: Option<Verdict>,
}

/// Writes a live `summary.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_live_summaries(path: &Path, provenance: &Provenance, rows: &[LiveSummaryRow]) -> io::Result<()> {
    let line = |live: &LiveSummaryRow| {
        let mut line = Line::of(&live.row);
        line.lag_p50_ms = Some(Decimals(live.lag_p50_ms));
        line.lag_p99_ms = Some(Decimals(live.lag_p99_ms));
        line.handoff_p50_us = Some(Decimals(live.handoff_p50_us));
        line.unfinished = Some(live.unfinished);
        line.unreleased = Some(live.unreleased);
        line.overloaded = Some(live.overloaded);
        line.gpu = Some(live.gpu.into());
        line.late = Some(live.verdict.map(|verdict| verdict.late));
        line.late_allowed = Some(live.verdict.map(|verdict| verdict.allowed));
        line.held = Some(live.verdict.map(|verdict| verdict.holds()));
        line
    };
    write_csv(path, provenance, rows.iter().map(line))
}
