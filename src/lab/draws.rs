//! When queries arrive and which they are: drawn from seeds, or from a trace.
//!
//! All of it at one query a second; a run at another rate divides the times. So two rates, or two policies, differ by
//! what they are and not by luck.

use std::collections::HashMap;
use std::path::Path;

use rayon::prelude::*;

use super::LabError;
use crate::cost::{MachineModel, Workload};
use crate::ids::QueryId;
use crate::query::{ArrivalProcess, Trace, draw_queries, unit_arrivals};
use crate::sim::{Arrivals, SimQuery, bounds};
use crate::stats::significant;
use crate::time::Nanos;

/// A run is at least this long where its length is left open,
const LEAST_QUERIES: usize = 10_000;
/// and lasts for this many deadlines at the rate that the machine sustains: a backlog that grows by a tenth of the time
/// then reaches the deadline, so that a run tells rates of 10 % too much from sustainable ones,
const DEADLINES: f64 = 10.0;
/// but it is no longer than this.
const MOST_QUERIES: usize = 300_000;

/// `count` arrivals of a process, each with a query drawn from `rows`.
#[must_use]
pub fn draw(process: &ArrivalProcess, seed: u64, count: usize, rows: usize) -> Arrivals {
    Arrivals { seed, unit: unit_arrivals(process, seed, count), queries: draw_queries(seed, count, rows) }
}

/// As [`draw`], for each of several seeds.
#[must_use]
pub fn draw_all(process: &ArrivalProcess, seeds: &[u64], count: usize, rows: usize) -> Vec<Arrivals> {
    seeds.par_iter().map(|&seed| draw(process, seed, count, rows)).collect()
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
    Ok((Arrivals { seed, unit, queries }, rate_qps))
}

/// How long a run must be to tell rates apart on this machine: ten deadlines at the rate that it sustains.
#[must_use]
pub fn run_length(queries: &[SimQuery], model: &MachineModel, deadline: Nanos) -> usize {
    let region = bounds::region(queries.iter().map(|query| query.service), model);
    let wanted = region.map_or(0.0, |region| DEADLINES * deadline.as_secs() * region.rate_qps);
    (significant(wanted, 2) as usize).clamp(LEAST_QUERIES, MOST_QUERIES)
}
