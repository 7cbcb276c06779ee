//! `greedy`: an idle GPU takes all waiting jobs as one batch.
//!
//! No job waits for a batch to fill, so a lone query is answered as early as under any policy. Under load, batches grow to the
//! number of arrivals during one batch. A batch ends where its predicted time would take too large a share of the time to its
//! queries' deadlines. A GPU that prepares one batch while another runs closes the second as late as possible.
//!
//! Inference servers know this rule as continuous batching, databases as group commit.

use super::batching::{BatchLimits, batching_classes, poll_batching};
use super::forecast::Forecast;
use super::registry::PolicyEntry;
use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyOptions};
use crate::base::ids::JobId;
use crate::base::machine::Class;
use crate::base::time::Nanos;
use crate::cost::MachineModel;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    batches: true,
    required_classes: &[Class::GPU],
    may_run_on: |class, _| class.is_gpu(),
    ..PolicyEntry::new("greedy", "An idle GPU takes all waiting queries as one batch", |setup| {
        Ok(Box::new(Greedy::new(setup.options, setup.model)?))
    })
};

#[derive(Clone, Debug)]
struct Greedy {
    classes: Vec<Class>,
    limits: BatchLimits,
    forecast: Forecast,
}

impl Greedy {
    /// A policy for this machine. Fails if the machine has no GPU, or an option is out of range.
    fn new(options: &PolicyOptions, model: &MachineModel) -> Result<Self, PolicyError> {
        options.check()?;
        Ok(Self {
            classes: batching_classes(model, ENTRY.name)?,
            limits: BatchLimits::new(options),
            forecast: Forecast::new(model),
        })
    }
}

impl Policy for Greedy {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, _job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        poll_batching(&self.classes)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if jobs.num_waiting() == 0 || !self.classes.contains(&lane.class) {
            return Next::Wait;
        }
        if lane.under_way > 0 {
            let close_at = self.forecast.close_at(lane, jobs.num_waiting());
            if close_at > now {
                return Next::WaitUntil(close_at);
            }
        }
        let load = self.limits.fill(jobs.iter_waiting(), lane, &self.forecast, now, batch);
        self.forecast.start(lane, &load, now);
        Next::Run
    }

    fn finished(&mut self, lane: Lane, _batch: &[JobId], _jobs: &Jobs, _service: Nanos, now: Nanos) -> LanesToPoll {
        self.forecast.finished(lane, now);
        LanesToPoll::Nobody
    }
}
