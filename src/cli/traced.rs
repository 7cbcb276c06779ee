//! `--trace`: arrivals and queries from a file.

use std::path::Path;

use super::Failure;
use crate::cost::Workload;
use crate::query::{Mode, Trace};
use crate::sim::Arrivals;

/// A trace's arrivals at one query per second, and its rate: arrivals per second from time 0 to the last.
pub(super) fn traced(path: &Path, workload: &Workload, mode: Mode) -> Result<(Arrivals, f64), Failure> {
    let trace = Trace::read(path)?;
    let positions: std::collections::HashMap<_, _> =
        workload.rows.iter().enumerate().map(|(position, row)| (row.query_id, position as u32)).collect();
    let mut queries = Vec::with_capacity(trace.rows.len());
    for (number, (_, query)) in (1..).zip(&trace.rows) {
        let Some(&position) = positions.get(query) else {
            let what = format!("query {query} is not in the workload in mode {mode} (arrival {number})");
            let message = format!("{}: {what}", path.display());
            return Err(Failure::input(message));
        };
        queries.push(position);
    }
    let span_s = trace.rows.last().map_or(0.0, |(at, _)| at.as_secs());
    if span_s == 0.0 {
        return Err(Failure::input(format!("{}: all arrivals are at time 0, so it has no rate", path.display())));
    }
    let rate_qps = trace.rows.len() as f64 / span_s;
    let unit = trace.rows.iter().map(|(at, _)| at.as_secs() * rate_qps).collect();
    let seed = trace.provenance.get("seed").and_then(|seed| seed.parse().ok()).unwrap_or(0);
    Ok((Arrivals { seed, unit, queries }, rate_qps))
}
