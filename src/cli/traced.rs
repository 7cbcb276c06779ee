//! `--trace`: arrivals and queries from a file.

use std::collections::HashMap;
use std::path::Path;

use super::Failure;
use crate::cost::Workload;
use crate::ids::QueryId;
use crate::query::{Mode, Trace};
use crate::sim::Arrivals;

/// A trace's arrivals at one query per second, and its rate: arrivals per second from time 0 to the last.
pub(super) fn traced(path: &Path, workload: &Workload, mode: Mode) -> Result<(Arrivals, f64), Failure> {
    let positions: HashMap<QueryId, u32> =
        (0..).zip(&workload.rows).map(|(position, row)| (row.query_id, position)).collect();
    let unknown = |query| {
        let message = || {
            let what = format!("`query_id` is {query}, and the workload has no such query in mode {mode}");
            format!("{what} (`tandem trace --mode {mode}` draws from those that it has)")
        };
        (!positions.contains_key(&query)).then(message)
    };
    let trace = Trace::read_checked(path, unknown)?;
    let queries = trace.rows.iter().map(|(_, query)| positions[query]).collect();
    let span_s = trace.rows.last().map_or(0.0, |(at, _)| at.as_secs());
    if span_s == 0.0 {
        return Err(Failure::input(format!("{}: all arrivals are at time 0, so it has no rate", path.display())));
    }
    let rate_qps = trace.rows.len() as f64 / span_s;
    let unit = trace.rows.iter().map(|(at, _)| at.as_secs() * rate_qps).collect();
    let seed = trace.provenance.get("seed").and_then(|seed| seed.parse().ok()).unwrap_or(0);
    Ok((Arrivals { seed, unit, queries }, rate_qps))
}
