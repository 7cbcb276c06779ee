//! `predictive`: queries that are predicted to be long run in parallel from their start, all others on one lane.
//!
//! Parallel work costs more lane time than sequential work, and most queries are short. Only the long ones decide the tail, so that
//! only they are worth it. A long query gets an even share of the lanes, which falls with the number of queries in the machine.
//! Long are the queries above the 90th percentile of the workload.
//!
//! Source: Jeon, Kim, Hwang, He, Elnikety, Cox, Rixner, "Predictive Parallelization: Taming Tail Latencies in Web Search",
//! SIGIR 2014.

use super::registry::PolicyEntry;
use super::sharing::{Busy, Rule, Shared, Sharing};
use crate::base::time::Nanos;
use crate::cost::MachineModel;

pub(super) const ENTRY: PolicyEntry =
    PolicyEntry::sharing("predictive", "Queries that are predicted to be long run on several CPU workers", |setup| {
        Ok(Box::new(Sharing::new(Predictive { long: long(setup.model) }, setup.model)?))
    });

/// The share of the queries that is not long.
const SHORT_SHARE: f64 = 0.9;

/// The predicted time from which a query is long; `None` if no query gains from several lanes.
pub(super) fn long(model: &MachineModel) -> Option<Nanos> {
    model.parallelism.as_ref().map(|parallelism| parallelism.quantile(SHORT_SHARE))
}

#[derive(Clone, Debug)]
struct Predictive {
    long: Option<Nanos>,
}

impl Rule for Predictive {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn at_start(&self, predicted: Nanos, busy: Busy) -> u32 {
        if self.long.is_some_and(|long| predicted >= long) { busy.even_share() } else { 1 }
    }

    fn next_lane_at(&self, _job: &Shared, _busy: Busy) -> Option<Nanos> {
        None
    }

    fn joins_running(&self) -> bool {
        false
    }
}
