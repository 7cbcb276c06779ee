//! Batches filled from one FIFO queue: what the policies that batch have in common.

use super::forecast::Forecast;
use super::{Job, Lane, LanesToPoll, PolicyError, PolicyOptions};
use crate::base::ids::JobId;
use crate::base::machine::Class;
use crate::base::time::Nanos;
use crate::cost::{BatchLoad, MachineModel};

/// The classes that gain by batches: GPUs.
///
/// # Errors
/// If the machine has no processor of such a class.
pub(super) fn batching_classes(model: &MachineModel, policy: &'static str) -> Result<Vec<Class>, PolicyError> {
    PolicyError::require(&model.machine, policy, &[])?;
    let classes: Vec<Class> = model.machine.classes().filter(|class| class.is_gpu()).collect();
    if classes.is_empty() {
        return Err(PolicyError::MissingClass { policy, class: Class::GPU });
    }
    Ok(classes)
}

/// Whom an arrival concerns under a policy that leaves all to these classes: others would be asked in vain.
pub(super) fn poll_batching(classes: &[Class]) -> LanesToPoll {
    match classes {
        [class] => LanesToPoll::Class(*class),
        _ => LanesToPoll::ClassThenOthers(classes[0]),
    }
}

/// Of what a batch may take, a deadline that comes near leaves it this share at least.
const LEAST_SHARE: f64 = 0.5;

/// How large a batch may grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLimits {
    most_queries: u32,
    share: f64,
}

impl BatchLimits {
    pub(super) fn new(options: &PolicyOptions) -> Self {
        Self { most_queries: options.batch_limit, share: options.batch_share }
    }

    /// The same, with at most so many queries.
    pub(super) fn at_most(self, queries: u32) -> Self {
        Self { most_queries: self.most_queries.min(queries), ..self }
    }

    /// Fills `batch` with jobs in the order of `jobs`, as many as `lane` takes: until it holds as many queries as it may,
    /// would take too large a share of the time to a deadline, or would finish after the first job's. At least one.
    ///
    /// The first job's deadline makes a batch no smaller than half of what that share allows. Who is late, or nearly so,
    /// waits because work has piled up; small batches, which take longer a query, would pile up more of it, until every
    /// query ran alone.
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
                // What the queries take one after another is an upper bound, and quicker to compare.
                break;
            }
            load = larger;
            batch.push(job.id);
        }
        load
    }
}
