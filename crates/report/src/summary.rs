//! What runs come to, as `summary.csv`.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use tandem_core::base::machine::Class;
use tandem_core::files::{Decimals, Digits, Provenance, Record, write_csv};
use tandem_core::lab::{Played, Verdict};
pub use tandem_core::lab::{Summary, Tally};

/// Whether a row was simulated or measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// By the simulator.
    Simulated,
    /// Driven live; in live summaries the column `gpu` says whether the GPU was real.
    Live,
}

impl Source {
    /// As in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Live => "live",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A line of `summary.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRow {
    /// Simulated or measured.
    pub source: Source,
    /// The policy's name.
    pub policy: String,
    /// The rate offered.
    pub rate_qps: f64,
    /// The seed of arrivals and queries.
    pub seed: u64,
    /// What the run came to.
    pub summary: Summary,
    /// The share that it played of the slowest change in its arrivals; `None` of live runs.
    pub covered_share: Option<f64>,
}

impl SummaryRow {
    /// A run's line.
    #[must_use]
    pub fn of(source: Source, run: Played) -> Self {
        let Played { policy, rate_qps, seed, summary, covered_share, .. } = run;
        Self { source, policy, rate_qps, seed, summary, covered_share: Some(covered_share) }
    }
}

/// A line of `summary.csv`, as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    source: Cow<'static, str>,
    policy: String,
    rate_qps: Digits<9>,
    seed: u64,
    queries: usize,
    mean_ms: Decimals<6>,
    p50_ms: Decimals<6>,
    p95_ms: Decimals<6>,
    p99_ms: Decimals<6>,
    max_ms: Decimals<6>,
    missed: usize,
    cpu_utilisation: Option<Digits<6>>,
    gpu_utilisation: Option<Digits<6>>,
    stolen: usize,
    p999_ms: Decimals<6>,
    throughput_qps: Digits<9>,
    lag_max_ms: Decimals<6>,
    shed: usize,
    again: usize,
    lane_faults: usize,
    /// What live runs say beyond simulated ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    lag_p50_ms: Option<Decimals<6>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lag_p99_ms: Option<Decimals<6>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handoff_p50_us: Option<Decimals<3>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreleased: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overloaded: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    late: Option<Option<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    late_allowed: Option<Option<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Option<bool>>,
    /// What simulated runs say beyond live ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    covered_share: Option<Digits<4>>,
}

impl Record for Line {
    const OPTIONAL: &'static [&'static str] = &[
        "lag_p50_ms",
        "lag_p99_ms",
        "handoff_p50_us",
        "unfinished",
        "unreleased",
        "overloaded",
        "gpu",
        "late",
        "late_allowed",
        "held",
        "covered_share",
    ];
}

/// Writes `summary.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_summaries(path: &Path, provenance: &Provenance, rows: &[SummaryRow]) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().map(Line::of))
}

impl Line {
    /// Without the columns of live runs.
    fn of(row: &SummaryRow) -> Self {
        let SummaryRow { source, policy, rate_qps, seed, summary: s, covered_share } = row;
        Self {
            source: source.name().into(),
            policy: policy.clone(),
            rate_qps: Digits(*rate_qps),
            seed: *seed,
            queries: s.queries,
            mean_ms: Decimals(s.mean_ms),
            p50_ms: Decimals(s.p50_ms),
            p95_ms: Decimals(s.p95_ms),
            p99_ms: Decimals(s.p99_ms),
            max_ms: Decimals(s.max_ms),
            missed: s.missed,
            cpu_utilisation: s.utilisation[Class::CPU].map(Digits),
            gpu_utilisation: s.utilisation[Class::GPU].map(Digits),
            stolen: s.stolen,
            p999_ms: Decimals(s.p999_ms),
            throughput_qps: Digits(s.throughput_qps),
            lag_max_ms: Decimals(s.lag_max_ms),
            shed: s.shed,
            again: s.again,
            lane_faults: s.lane_faults,
            lag_p50_ms: None,
            lag_p99_ms: None,
            handoff_p50_us: None,
            unfinished: None,
            unreleased: None,
            overloaded: None,
            gpu: None,
            late: None,
            late_allowed: None,
            held: None,
            covered_share: covered_share.map(Digits),
        }
    }
}

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
