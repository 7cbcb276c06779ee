//! Arrivals: times and queries, drawn from seeds or read from a trace.
//!
//! All arrivals have the rate of one query per second; a run at another rate divides the times. Rates and policies thus
//! share the same random draws.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::StudyError;
use crate::base::ids::QueryId;
use crate::cost::Workload;
use crate::sim::Arrivals;
use crate::traffic::{ArrivalProcess, Priorities, Trace};

/// `count` arrivals per seed, with queries drawn from `rows`. Each run draws them again, so that they take no memory.
#[must_use]
pub fn draw_all(process: &ArrivalProcess, seeds: &[u64], count: usize, rows: usize) -> Vec<Arrivals> {
    seeds.iter().map(|&seed| Arrivals::drawn(process, seed, count, rows)).collect()
}

/// The arrivals of a trace over a workload, with these priorities, and its rate from time 0 to the last arrival. `unknown` words the error for
/// a query that the workload lacks.
///
/// # Errors
/// If the trace cannot be read, names an unknown query or priority, or has no rate.
pub fn traced(
    path: &Path,
    workload: &Workload,
    priorities: Option<Priorities>,
    unknown: impl Fn(QueryId) -> String,
) -> Result<(Arrivals, f64), StudyError> {
    let positions: HashMap<QueryId, u32> =
        (0..).zip(&workload.rows).map(|(position, row)| (row.query_id, position)).collect();
    let trace = Trace::read_checked(path, |query| (!positions.contains_key(&query)).then(|| unknown(query)))?;
    let queries = trace.rows.iter().map(|(_, query)| positions[query]).collect();
    let span_s = trace.rows.last().map_or(0.0, |(at, _)| at.as_secs());
    if span_s == 0.0 {
        return Err(StudyError::NoRate { trace: path.display().to_string() });
    }
    let rate_qps = trace.rows.len() as f64 / span_s;
    let unit = trace.rows.iter().map(|(at, _)| at.as_secs() * rate_qps).collect();
    let seed = trace.provenance.get("seed").and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let priorities = match (priorities, trace.priorities.is_empty()) {
        (Some(priorities), false) => {
            let fault = |fault| StudyError::Priorities { trace: path.display().to_string(), fault };
            Some(priorities.of_trace(&trace.priorities).map_err(fault)?)
        }
        (None, false) => {
            let fault = String::from("the trace names priorities, which need deadlines (--priority)");
            return Err(StudyError::Priorities { trace: path.display().to_string(), fault });
        }
        (priorities, true) => priorities,
    };
    Ok((Arrivals::given(seed, unit, queries).with_priorities(priorities.map(Arc::new)), rate_qps))
}
