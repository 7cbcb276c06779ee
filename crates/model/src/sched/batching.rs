//! Batches filled from one FIFO queue, shared by the policies that batch.

use super::forecast::Forecast;
use super::{Job, Lane, LanesToPoll, PolicyError, PolicyOptions};
use crate::base::ids::JobId;
use crate::base::machine::Class;
use crate::base::time::Nanos;
use crate::cost::{BatchLoad, MachineModel};

/// The classes that benefit from batches: GPUs. Fails if the machine has no processor of such a class.
pub(super) fn batching_classes(model: &MachineModel, policy: &'static str) -> Result<Vec<Class>, PolicyError> {
    PolicyError::require(&model.machine, policy, &[])?;
    let classes: Vec<Class> = model.machine.classes().filter(|class| class.is_gpu()).collect();
    if classes.is_empty() {
        return Err(PolicyError::MissingClass { policy, class: Class::GPU });
    }
    Ok(classes)
}

/// The lanes to poll after an arrival, under a policy that runs all work on these classes.
pub(super) fn poll_batching(classes: &[Class]) -> LanesToPoll {
    match classes {
        [class] => LanesToPoll::Class(*class),
        _ => LanesToPoll::ClassThenOthers(classes[0]),
    }
}

/// The least share of its time limit that a near deadline leaves to a batch.
const LEAST_SHARE: f64 = 0.5;

#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLimits {
    most_queries: u32,
    share: f64,
}

impl BatchLimits {
    pub(super) fn new(options: &PolicyOptions) -> Self {
        Self { most_queries: options.batch_limit, share: options.batch_share }
    }

    /// These limits, with at most `queries` queries per batch.
    pub(super) fn at_most(self, queries: u32) -> Self {
        Self { most_queries: self.most_queries.min(queries), ..self }
    }

    /// Fills `batch` with jobs in the order of `jobs`, at least one. Filling stops at the batch's limit of queries. It also
    /// stops where the batch would take too large a share of the time to a deadline, or would end after the first job's
    /// deadline.
    ///
    /// The first job's deadline shrinks a batch to no less than half of that share. A job is late because work has piled up.
    /// Small batches cost more per query and would make the backlog longer, until every query ran alone.
    pub(super) fn fill<'a>(
        self,
        jobs: impl IntoIterator<Item = &'a Job>,
        lane: Lane,
        forecast: &Forecast,
        now: Nanos,
        batch: &mut Vec<JobId>,
    ) -> BatchLoad {
        let most = self.most_queries.min(forecast.model().most_queries(lane.class));
        let mut load = BatchLoad::default();
        let mut allowed = Nanos::MAX;
        for job in jobs {
            if load.queries >= most {
                break;
            }
            let larger = load.with(job.predicted[lane.class]);
            if batch.is_empty() {
                let most = job.allowance().scaled(self.share);
                allowed = job.deadline.since(now).clamp(most.scaled(LEAST_SHARE), most);
            } else if larger.alone > allowed && forecast.model().batch_time(lane.class, &larger).total() > allowed {
                // The serial sum is an upper bound and quicker to compare.
                break;
            }
            load = larger;
            batch.push(job.id);
        }
        load
    }
}
