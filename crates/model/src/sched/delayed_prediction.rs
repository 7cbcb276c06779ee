//! `delayed-prediction`: all queries start on one lane; those that still run after a delay are parallelised if they are predicted
//! to be long, or once they have outlived their prediction.
//!
//! ```text
//!   0 ── delay ──────────── predicted time ───────────▶
//!   one lane | long: an even share of the lanes        | short by mistake: an even share, too
//! ```
//!
//! Most queries end before the delay and are never predicted wrongly. A query that was predicted to be short and is not gets its
//! lanes late, but gets them. The delay is the median time of the workload's queries, the limit of long ones that of
//! [`predictive`](super::predictive).
//!
//! Source: Kim, He, Hwang, Elnikety, Choi, "Delayed-Dynamic-Selective (DDS) Prediction for Reducing Extreme Tail Latency in Web
//! Search", WSDM 2015.

use super::predictive::long;
use super::registry::PolicyEntry;
use super::sharing::{Busy, Rule, Shared, Sharing};
use crate::base::time::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry::sharing(
    "delayed-prediction",
    "Queries that outlast a delay and are long, or outlast their prediction, get several CPU workers",
    |setup| {
        let delay =
            setup.model.parallelism.as_ref().map_or(Nanos::MAX, |parallelism| parallelism.quantile(DELAY_SHARE));
        Ok(Box::new(Sharing::new(Delayed { delay, long: long(setup.model) }, setup.model)?))
    },
);

/// The share of the queries that end before the delay.
const DELAY_SHARE: f64 = 0.5;

#[derive(Clone, Debug)]
struct Delayed {
    delay: Nanos,
    long: Option<Nanos>,
}

impl Rule for Delayed {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn at_start(&self, _predicted: Nanos, _busy: Busy) -> u32 {
        1
    }

    fn next_lane_at(&self, job: &Shared, busy: Busy) -> Option<Nanos> {
        let long = self.long.filter(|_| job.lanes < busy.even_share())?;
        let wait = if job.predicted >= long { self.delay } else { self.delay.max(job.predicted) };
        Some(job.started + wait)
    }
}
