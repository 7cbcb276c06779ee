//! When queries arrive and which they are: drawn from seeds, or from a trace.
//!
//! All of it at one query a second; a run at another rate divides the times. So two rates, or two policies, differ by
//! what they are and not by luck.

use std::collections::HashMap;
use std::path::Path;

use super::LabError;
use crate::base::ids::QueryId;
use crate::cost::Workload;
use crate::query::{ArrivalProcess, Trace};
use crate::sim::Arrivals;

/// `count` arrivals of a process for each of several seeds, each with a query drawn from `rows`. They are drawn afresh whenever
/// they are played, and take no memory.
#[must_use]
pub fn draw_all(process: &ArrivalProcess, seeds: &[u64], count: usize, rows: usize) -> Vec<Arrivals> {
    seeds.iter().map(|&seed| Arrivals::drawn(process, seed, count, rows)).collect()
}

/// A trace's arrivals over a workload's queries, and its rate: arrivals per second from time 0 to the last. `unknown`
/// says in words that the workload has no such query.
///
/// # Errors
/// If the trace can't be read, names a query that the workload lacks, or has no rate.
pub fn traced(
    path: &Path,
    workload: &Workload,
    unknown: impl Fn(QueryId) -> String,
) -> Result<(Arrivals, f64), LabError> {
    let positions: HashMap<QueryId, u32> =
        (0..).zip(&workload.rows).map(|(position, row)| (row.query_id, position)).collect();
    let trace = Trace::read_checked(path, |query| (!positions.contains_key(&query)).then(|| unknown(query)))?;
    let queries = trace.rows.iter().map(|(_, query)| positions[query]).collect();
    let span_s = trace.rows.last().map_or(0.0, |(at, _)| at.as_secs());
    if span_s == 0.0 {
        return Err(LabError::NoRate { trace: path.display().to_string() });
    }
    let rate_qps = trace.rows.len() as f64 / span_s;
    let unit = trace.rows.iter().map(|(at, _)| at.as_secs() * rate_qps).collect();
    let seed = trace.provenance.get("seed").and_then(|seed| seed.parse().ok()).unwrap_or(0);
    Ok((Arrivals::given(seed, unit, queries), rate_qps))
}
