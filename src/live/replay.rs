//! Lanes that take recorded times instead of working.

use std::collections::HashMap;

use crate::cost::Workload;
use crate::ids::QueryId;
use crate::machine::{Class, PerClass};
use crate::sched::Batch;
use crate::time::Nanos;

/// What each query took when it was measured; what a replayed lane takes for it.
///
/// A batch takes the sum of its queries' times, as in the simulator.
#[derive(Clone, Debug, Default)]
pub struct RecordedTimes {
    times: HashMap<QueryId, PerClass<Option<Nanos>>>,
}

impl RecordedTimes {
    /// From times by query.
    pub fn new(times: impl IntoIterator<Item = (QueryId, PerClass<Option<Nanos>>)>) -> Self {
        Self { times: times.into_iter().collect() }
    }

    /// The medians that a workload holds.
    #[must_use]
    pub fn of(workload: &Workload) -> Self {
        Self::new(workload.rows.iter().map(|row| {
            let time = |kind| row.measured[kind].map(|measured| Nanos::from_us(measured.median_us));
            (row.query_id, PerClass::from_fn(time))
        }))
    }

    /// What `query` took on a processor of `kind`, if it was measured there.
    #[must_use]
    pub fn time(&self, query: QueryId, kind: Class) -> Option<Nanos> {
        self.times.get(&query).and_then(|times| times[kind])
    }

    /// What `batch` takes; `None` if one of its queries was not measured.
    pub(super) fn batch_time(&self, batch: &Batch, kind: Class) -> Option<Nanos> {
        batch.jobs().iter().try_fold(Nanos::ZERO, |sum, job| Some(sum + self.time(job.query, kind)?))
    }
}
