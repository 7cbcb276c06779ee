//! `window`: a batch closes at a set number of queries, or when its oldest has waited for a set time.
//!
//! This is textbook batching and the default of most servers ("delayed batching" with a maximum size). At low load a lone
//! query waits for the whole window; under `greedy` it does not wait.

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
    ..PolicyEntry::new("window", "GPUs take batches that close by size or time", |setup| {
        Ok(Box::new(Window::new(setup.options, setup.model)?))
    })
};

#[derive(Clone, Debug)]
struct Window {
    classes: Vec<Class>,
    size: usize,
    length: Nanos,
    limits: BatchLimits,
    forecast: Forecast,
}

impl Window {
    /// A policy for this machine. Fails if the machine has no GPU, or an option is out of range.
    fn new(options: &PolicyOptions, model: &MachineModel) -> Result<Self, PolicyError> {
        options.check()?;
        Ok(Self {
            classes: batching_classes(model, ENTRY.name)?,
            size: options.window_queries as usize,
            length: options.window(),
            limits: BatchLimits::new(options).at_most(options.window_queries),
            forecast: Forecast::new(model),
        })
    }
}

impl Policy for Window {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, _job: &Job, jobs: &Jobs, now: Nanos) -> LanesToPoll {
        // The first job of a window sets the clock and the last closes it; jobs between change nothing.
        let waiting = jobs.num_waiting();
        let concerns = waiting == 1 || waiting >= self.size || self.closes_at(jobs) <= now;
        if concerns { poll_batching(&self.classes) } else { LanesToPoll::Nobody }
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if jobs.num_waiting() == 0 || !self.classes.contains(&lane.class) {
            return Next::Wait;
        }
        let closes_at = self.closes_at(jobs);
        if jobs.num_waiting() < self.size && now < closes_at {
            return Next::WaitUntil(closes_at);
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

impl Window {
    /// When the window of the oldest job closes, counted from its arrival.
    fn closes_at(&self, jobs: &Jobs) -> Nanos {
        jobs.oldest().map_or(Nanos::MAX, |job| job.arrival + self.length)
    }
}
