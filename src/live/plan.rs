//! From arrivals to jobs, before the run: the driver's loop makes nothing.

use crate::cost::Cost;
use crate::ids::{JobId, QueryId};
use crate::machine::PerClass;
use crate::sched::Job;
use crate::time::Nanos;

/// The jobs of a run: one for each arrival, which names a row of `queries`; a query is its id and estimates.
///
/// # Panics
/// If an arrival names a row that `queries` lacks.
#[must_use]
pub fn plan(
    arrivals: impl IntoIterator<Item = (Nanos, u32)>,
    queries: &[(QueryId, PerClass<Cost>)],
    deadline: Nanos,
) -> Vec<Job> {
    let job = |(id, (arrival, row)): (JobId, (Nanos, u32))| {
        let (query, predicted) = queries[row as usize];
        Job { id, query, row, arrival, deadline: arrival + deadline, predicted }
    };
    (0..).map(JobId).zip(arrivals).map(job).collect()
}
