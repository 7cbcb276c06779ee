//! Rates where what lies near follows the queries, beside the same budget with what a log said beforehand.
//!
//! All queries are asked again and again, in batches, so that the first pass is of queries that nobody has seen, and the last of
//! ones that have been counted. Answers under moving pages are compared with those under still ones, all of them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::queries::K;
use crate::cache::OnlineOptions;
use crate::cli::{Failure, defaults};
use crate::exec::gpu::{GpuExecutor, GpuMemory};
use crate::exec::{Answers, ExecError, Executor, Request};
use crate::files::{Digits, Record};
use crate::gpu::GpuError;
use crate::index::Index;
use crate::query::{Mode, Query};
use crate::report::table::Table;

const MODES: [Mode; 2] = [Mode::Or, Mode::And];
const BATCH: usize = 4096;
/// Passes over the queries go on for so long, but there are two at least.
const TIME: Duration = Duration::from_millis(1500);

/// A line of `gpu-budgets-online.csv`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OnlineRow {
    mode: String,
    /// GPU memory for the index,
    budget_mb: Digits<9>,
    /// and what lies in the host's: all rows.
    host_mb: Digits<9>,
    /// Passes over the queries.
    passes: usize,
    /// Of the queries' expected reads, those that are far: as learned before,
    learned_far_share: Digits<4>,
    /// and at the end.
    online_far_share: Digits<4>,
    /// Rates as learned before,
    learned_qps: Digits<6>,
    /// of the first pass,
    first_qps: Digits<6>,
    /// and of the last.
    last_qps: Digits<6>,
    /// Epochs, and what came in them.
    epochs: u64,
    copied_mb: Digits<6>,
    /// Gigabytes a second of copies, while queries ran.
    copy_gb_s: Digits<4>,
    /// Milliseconds to decide, an epoch.
    decide_ms: Digits<4>,
    /// Of the time of batches, what passed in those with copies beside them,
    copying_share: Digits<4>,
    /// and their rate, over that of other batches in the same pass or a later one.
    copying_rate: Option<Digits<4>>,
}

impl Record for OnlineRow {}

/// Batches of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Time {
    queries: usize,
    seconds: f64,
}

impl Time {
    fn add(&mut self, queries: usize, seconds: f64) {
        self.queries += queries;
        self.seconds += seconds;
    }

    fn qps(self) -> f64 {
        self.queries as f64 / self.seconds
    }
}

/// Measures a budget; nothing if it has room for all rows, so that nothing need follow, or has none for a page, which is noted.
pub(super) fn measure(
    index: &Arc<Index>,
    queries: &[Query],
    memory: &GpuMemory,
    epoch_queries: u32,
    budget_bytes: u64,
    notes: &mut String,
) -> Result<Vec<OnlineRow>, Failure> {
    let online = memory.online(OnlineOptions::of_epochs(epoch_queries));
    let mut rows = Vec::new();
    for mode in MODES {
        // Each mode begins with what the log said.
        let mut moving = match defaults::gpu_executor(index, index.built_with(), Some(&online)) {
            Ok(moving) => moving,
            Err(ExecError::Gpu(error @ GpuError::BadBudget { .. })) => {
                let _ = writeln!(notes, "following the queries: {error}");
                return Ok(rows);
            }
            Err(error) => return Err(error.into()),
        };
        if moving.online_report().is_none() {
            return Ok(rows);
        }
        let mut still = defaults::gpu_executor(index, index.built_with(), Some(memory))?;
        rows.push(row(&mut still, &mut moving, queries, mode, budget_bytes)?);
    }
    Ok(rows)
}

/// What share of a query's expected reads is far now, in the mean.
fn far_share(executor: &GpuExecutor, queries: &[Query]) -> Digits<4> {
    let shares = queries.iter().filter_map(|query| executor.far_share(query));
    Digits(shares.sum::<f64>() / queries.len() as f64)
}

fn row(
    still: &mut GpuExecutor,
    moving: &mut GpuExecutor,
    queries: &[Query],
    mode: Mode,
    budget_bytes: u64,
) -> Result<OnlineRow, Failure> {
    let learned_far_share = far_share(moving, queries);
    let (mut expected, mut found) = (Answers::default(), Answers::default());
    let (mut learned, mut first, mut last) = (Time::default(), Time::default(), Time::default());
    // Batches with copies beside them, and without.
    let (mut copying, mut resting) = (Time::default(), Time::default());
    let (mut passes, began) = (0, Instant::now());
    while passes < 2 || began.elapsed() < TIME {
        last = Time::default();
        for queries in queries.chunks(BATCH) {
            let batch: Vec<Request<'_>> = queries.iter().map(|query| Request { query, mode, k: K }).collect();
            let seconds = |executor: &mut GpuExecutor, answers: &mut Answers| {
                let began = Instant::now();
                executor.search_batch(&batch, answers)?;
                Ok::<_, Failure>(began.elapsed().as_secs_f64())
            };
            let before = moving.online_report().unwrap_or_default();
            let moving_s = seconds(moving, &mut found)?;
            let after = moving.online_report().unwrap_or_default();
            learned.add(batch.len(), seconds(still, &mut expected)?);
            last.add(batch.len(), moving_s);
            let is_copying = before.is_copying || after.is_copying || after.pages > before.pages;
            if is_copying { &mut copying } else { &mut resting }.add(batch.len(), moving_s);
            if expected.iter().ne(found.iter()) {
                return Err(Failure::failed(format!("{mode}: other documents while pages move; this is a bug")));
            }
        }
        if passes == 0 {
            first = last;
        }
        passes += 1;
    }
    let report = moving.online_report().unwrap_or_default();
    let rate = copying.qps() / resting.qps();
    Ok(OnlineRow {
        mode: mode.to_string(),
        budget_mb: Digits(budget_bytes as f64 / 1e6),
        host_mb: Digits(moving.upload_report().far_bytes as f64 / 1e6),
        passes,
        learned_far_share,
        online_far_share: far_share(moving, queries),
        learned_qps: Digits(learned.qps()),
        first_qps: Digits(first.qps()),
        last_qps: Digits(last.qps()),
        epochs: report.epochs,
        copied_mb: Digits(report.copied_bytes as f64 / 1e6),
        copy_gb_s: Digits(report.copied_bytes as f64 / report.copy_ms.max(1e-9) / 1e6),
        decide_ms: Digits(report.decide_ms / report.epochs.max(1) as f64),
        copying_share: Digits(copying.seconds / (copying.seconds + resting.seconds)),
        copying_rate: rate.is_finite().then_some(Digits(rate)),
    })
}

pub(super) fn table(rows: &[OnlineRow]) -> Table {
    let mut table = Table::new([
        "mode",
        "GPU MB",
        "far, learned",
        "online",
        "learned q/s",
        "first pass",
        "last pass",
        "passes",
        "epochs",
        "MB copied",
        "GB/s",
        "ms to decide",
        "time with copies",
        "rate with copies",
    ])
    .with_keys(1);
    for row in rows {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        table.row([
            row.mode.clone(),
            format!("{:.1}", row.budget_mb.0),
            percent(row.learned_far_share.0),
            percent(row.online_far_share.0),
            format!("{:.0}", row.learned_qps.0),
            format!("{:.0}", row.first_qps.0),
            format!("{:.0}", row.last_qps.0),
            row.passes.to_string(),
            row.epochs.to_string(),
            format!("{:.1}", row.copied_mb.0),
            format!("{:.1}", row.copy_gb_s.0),
            format!("{:.2}", row.decide_ms.0),
            percent(row.copying_share.0),
            row.copying_rate.map_or(String::new(), |rate| percent(rate.0)),
        ]);
    }
    table
}
