//! Totals of runs, as `summary.csv`.

use std::io;
use std::path::Path;

use tandem_drive::live::GapSum;
use tandem_model::base::machine::Class;
use tandem_model::base::named::named_enum;
use tandem_model::files::{Decimals, Digits, Provenance, write_csv};
use tandem_model::study::{Played, Verdict};
pub use tandem_model::study::{Summary, Tally};

use crate::row::{Text, row};

named_enum! {
    /// Origin of a row.
    pub enum Source {
        /// Simulated runs.
        Simulated = "simulated",
        /// Live runs. The column `gpu` of their summaries says whether the GPU was real.
        Live = "live",
    }
}

/// A row of `summary.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRow {
    /// Origin of the run.
    pub source: Source,
    /// Name of the policy.
    pub policy: String,
    /// Offered rate.
    pub rate_qps: f64,
    /// Seed of arrivals and queries.
    pub seed: u64,
    /// Totals of the run.
    pub summary: Summary,
    /// The share that it played of the slowest change in its arrivals; `None` of live runs.
    pub covered_share: Option<f64>,
}

impl SummaryRow {
    /// The row of a run.
    pub fn of(source: Source, run: Played) -> Self {
        let Played { policy, rate_qps, seed, summary, covered_share, .. } = run;
        Self { source, policy, rate_qps, seed, summary, covered_share: Some(covered_share) }
    }
}

/// A row of a live `summary.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveSummaryRow {
    /// Columns that simulated runs have, too. They count finished jobs.
    pub row: SummaryRow,
    /// Median of the driver's lag.
    pub lag_p50_ms: f64,
    /// 99th percentile of the driver's lag.
    pub lag_p99_ms: f64,
    /// Median overhead of handing a batch to a worker and back.
    pub handoff_p50_us: f64,
    /// Released jobs that did not finish before the run ended early.
    pub unfinished: usize,
    /// Jobs that were not released before the run ended early.
    pub unreleased: usize,
    /// Whether the run was given up, because it had missed the objective and its backlog grew.
    pub overloaded: bool,
    /// Kind of GPU: `real`, `replay` or `none`.
    pub gpu: &'static str,
    /// Whether the run met the objective.
    pub verdict: Verdict,
    /// Whether it missed the objective only because the machine paused.
    pub is_paused: bool,
    /// The gaps of the driver, and of the lanes.
    pub gaps: [GapSum; 2],
    /// Cores that other processes used during the run; `None` if the system does not report it.
    pub others_cores: Option<f64>,
    /// Cores that the hypervisor withheld during the run; `None` if the system does not report it.
    pub steal_cores: Option<f64>,
}

row! {
    struct SummaryLine of (row: &SummaryRow, live: Option<&LiveSummaryRow>) with {
        s = &row.summary;
    } {
        source: Text = row.source.name().into(),
        policy: String = row.policy.clone(),
        rate_qps: Digits<9> = Digits(row.rate_qps),
        seed: u64 = row.seed,
        queries: usize = s.queries,
        mean_ms: Decimals<6> = Decimals(s.mean_ms),
        p50_ms: Decimals<6> = Decimals(s.p50_ms),
        p95_ms: Decimals<6> = Decimals(s.p95_ms),
        p99_ms: Decimals<6> = Decimals(s.p99_ms),
        max_ms: Decimals<6> = Decimals(s.max_ms),
        missed: usize = s.missed,
        cpu_utilisation: Option<Digits<6>> = s.utilisation[Class::CPU].map(Digits),
        gpu_utilisation: Option<Digits<6>> = s.utilisation[Class::GPU].map(Digits),
        stolen: usize = s.stolen,
        p999_ms: Decimals<6> = Decimals(s.p999_ms),
        throughput_qps: Digits<9> = Digits(s.throughput_qps),
        lag_max_ms: Decimals<6> = Decimals(s.lag_max_ms),
        shed: usize = s.shed,
        again: usize = s.again,
        lane_faults: usize = s.lane_faults,
    } optional {
        covered_share: Digits<4> = row.covered_share.map(Digits),
        lag_p50_ms: Decimals<6> = live.map(|live| Decimals(live.lag_p50_ms)),
        lag_p99_ms: Decimals<6> = live.map(|live| Decimals(live.lag_p99_ms)),
        handoff_p50_us: Decimals<3> = live.map(|live| Decimals(live.handoff_p50_us)),
        unfinished: usize = live.map(|live| live.unfinished),
        unreleased: usize = live.map(|live| live.unreleased),
        overloaded: bool = live.map(|live| live.overloaded),
        gpu: Text = live.map(|live| live.gpu.into()),
        late: usize = live.map(|live| live.verdict.late),
        late_allowed: usize = live.map(|live| live.verdict.allowed),
        // The outcome of a run that was cut short is unknown, unless the objective was already lost.
        held: Option<bool> = live.map(|live| (!live.verdict.is_undecided()).then(|| live.verdict.holds())),
        others_cores: Option<Decimals<3>> = live.map(|live| live.others_cores.map(Decimals)),
        steal_cores: Option<Decimals<3>> = live.map(|live| live.steal_cores.map(Decimals)),
        paused: bool = live.map(|live| live.is_paused),
        driver_gaps: u32 = live.map(|live| live.gaps[0].count),
        driver_gaps_ms: Digits<4> = live.map(|live| Digits(live.gaps[0].time.as_ms())),
        lane_gaps: u32 = live.map(|live| live.gaps[1].count),
        lane_gaps_ms: Digits<4> = live.map(|live| Digits(live.gaps[1].time.as_ms())),
    } added {
        gpu_energy_j: Option<Digits<5>> = s.gpu_energy_j.map(Digits),
        gpu_mj_per_query: Option<Digits<5>> = s.gpu_mj_per_query().map(Digits),
    }
}

/// Writes `summary.csv` of simulated runs atomically.
pub fn write_summaries(path: &Path, provenance: &Provenance, rows: &[SummaryRow]) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().map(|row| SummaryLine::of(row, None)))
}

/// Writes `summary.csv` of live runs atomically.
pub fn write_live_summaries(path: &Path, provenance: &Provenance, rows: &[LiveSummaryRow]) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().map(|live| SummaryLine::of(&live.row, Some(live))))
}
