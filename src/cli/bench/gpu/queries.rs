//! What queries cost on the GPU: one at a time, from submission to results on the host, and many together.

use std::sync::Arc;
use std::time::Instant;

use super::{Row, median};
use crate::bench::Times;
use crate::cli::Failure;
use crate::exec::Executor;
use crate::exec::gpu::{DeviceLimits, GpuExecutor};
use crate::index::Index;
use crate::query::{Mode, Query};

/// Documents that a query asks for.
pub(super) const K: usize = 10;
/// Queries after each other, before anything is timed: clocks rise, and lists come into the caches that they may be in.
const WARM_UP: usize = 200;

/// The modes that have targets: at most so many microseconds for one query.
const MODES: [(Mode, f64, f64); 2] = [(Mode::Or, 80.0, 30.0), (Mode::And, 40.0, 15.0)];

/// Adds the rows of both modes.
pub(super) fn measure(
    limits: &DeviceLimits,
    index: &Arc<Index>,
    queries: &[Query],
    rounds: usize,
    rows: &mut Vec<Row>,
) -> Result<(), Failure> {
    let mut gpu = GpuExecutor::new(index, index.built_with())?;
    let mut hits = Vec::new();
    for (mode, at_most_us, aim_us) in MODES {
        for query in queries.iter().cycle().take(WARM_UP) {
            gpu.search(query, mode, K, &mut hits)?;
        }
        let (mut host_us, mut device_us) = (vec![Vec::new(); queries.len()], vec![Vec::new(); queries.len()]);
        for _ in 0..rounds {
            for (number, query) in queries.iter().enumerate() {
                let began = Instant::now();
                let execution = gpu.search(query, mode, K, &mut hits)?;
                host_us[number].push(began.elapsed().as_secs_f64() * 1e6);
                device_us[number].extend(execution.device_us);
            }
        }
        let times = |us: Vec<Vec<f64>>| Times::of(us.into_iter().map(median).collect());
        let (host, device) = (times(host_us), times(device_us));
        let what = |part: &str| format!("{} top {K}, one query, submission to host: {part}", mode.name());
        let of_launch = |us: f64| limits.launch_and_wait_us / us;
        let row = |part: &str, us: f64| Row::new(what(part), "us", us).of(of_launch(us), "launch and wait");
        rows.push(row("mean", host.mean_us()).with_target(at_most_us, aim_us));
        rows.push(row("p50", host.quantile_us(0.5)));
        rows.push(row("p95", host.quantile_us(0.95)));
        rows.push(Row::new(what("mean on the device"), "us", device.mean_us()));
    }
    Ok(())
}
