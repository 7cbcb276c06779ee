//! From arrivals to jobs, before the run: the driver's loop makes nothing.

use crate::ids::{JobId, QueryId};
use crate::machine::PerClass;
use crate::sched::Job;
use crate::time::Nanos;

/// The jobs of a run: one for each arrival, which names a position in `queries`; a query is its id and estimates.
///
/// # Panics
/// If an arrival names a position that `queries` lacks.
#[must_use]
pub fn plan(
    arrivals: impl IntoIterator<Item = (Nanos, u32)>,
    queries: &[(QueryId, PerClass<Nanos>)],
    deadline: Nanos,
) -> Vec<Job> {
    let job = |(number, (arrival, position)): (usize, (Nanos, u32))| {
        let (query, predicted) = queries[position as usize];
        Job { id: JobId(number as u32), query, arrival, deadline: arrival + deadline, predicted }
    };
    arrivals.into_iter().enumerate().map(job).collect()
}
