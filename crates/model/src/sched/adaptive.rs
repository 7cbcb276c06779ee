//! `adaptive`: batches whose size is found by trial. The size grows a little after a batch that met its time limit, and
//! shrinks after one that did not.
//!
//! This is additive increase, multiplicative decrease, as Clipper sizes the batches of its models (Crankshaw et al., NSDI
//! 2017, section 4.3). The policy uses measured batch times only, no cost model. It shows what predictions are worth.
//!
//! ```text
//!   size  |      /|    /|  /|     time allowed = batch share · time to the deadline
//!         |    /  |  /  |/  |
//!         |  /    |/        |/    after a batch that took longer: nine tenths
//!         |/                      after a full batch that kept it: four more
//! ```

use super::batching::{batching_classes, poll_batching};
use super::registry::PolicyEntry;
use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyOptions};
use crate::base::ids::JobId;
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::cost::MachineModel;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    batches: true,
    required_classes: &[Class::GPU],
    may_run_on: |class, _| class.is_gpu(),
    ..PolicyEntry::new("adaptive", "GPUs take batches whose size is found by trial (Clipper, NSDI 2017)", |setup| {
        Ok(Box::new(Adaptive::new(setup.options, setup.model)?))
    })
};

/// Queries added to the size after a full batch met its time limit.
const INCREASE: f64 = 4.0;
/// Factor on the size after a batch missed its time limit.
const DECREASE: f64 = 0.9;

#[derive(Clone, Debug)]
struct Adaptive {
    classes: Vec<Class>,
    most_queries: PerClass<f64>,
    share: f64,
    /// By class: the size of the next batch.
    size: PerClass<f64>,
}

impl Adaptive {
    /// A policy whose batches start at one query. Fails if the machine has no GPU, or an option is out of range.
    fn new(options: &PolicyOptions, model: &MachineModel) -> Result<Self, PolicyError> {
        options.check()?;
        let most = |class| f64::from(options.batch_limit.min(model.most_queries(class)));
        Ok(Self {
            classes: batching_classes(model, ENTRY.name)?,
            most_queries: PerClass::from_fn(most),
            share: options.batch_share,
            size: PerClass::from_fn(|_| 1.0),
        })
    }
}

impl Policy for Adaptive {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, _job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        poll_batching(&self.classes)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, _now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if jobs.num_waiting() == 0 || !self.classes.contains(&lane.class) || lane.under_way > 0 {
            return Next::Wait;
        }
        batch.extend(jobs.iter_waiting().take(self.size[lane.class] as usize).map(|job| job.id));
        Next::Run
    }

    fn finished(&mut self, lane: Lane, batch: &[JobId], jobs: &Jobs, service: Nanos, _now: Nanos) -> LanesToPoll {
        let allowed = batch.iter().map(|&id| jobs.job(id).allowance()).min().unwrap_or(Nanos::MAX).scaled(self.share);
        let size = &mut self.size[lane.class];
        if service > allowed {
            *size = (*size * DECREASE).max(1.0);
        } else if batch.len() >= *size as usize {
            *size = (*size + INCREASE).min(self.most_queries[lane.class]);
        }
        LanesToPoll::Nobody
    }
}
