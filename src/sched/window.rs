//! `window`: a batch closes when it holds so many queries, or when its oldest has waited so long.
//!
//! The textbook's batching, and most servers' default ("delayed batching" with a maximum size). The window is what a
//! lone query pays at low load; [`greedy`](super::Greedy) pays nothing.

use super::batching::{BatchLimits, batching_classes, poll_batching};
use super::forecast::Forecast;
use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyOptions};
use crate::cost::MachineModel;
use crate::ids::JobId;
use crate::machine::Class;
use crate::time::Nanos;

/// Batches by size and time, on GPUs.
#[derive(Clone, Debug)]
pub struct Window {
    classes: Vec<Class>,
    size: usize,
    length: Nanos,
    limits: BatchLimits,
    forecast: Forecast,
}

impl Window {
    /// For this machine.
    ///
    /// # Errors
    /// If the machine has no GPU, or an option makes no sense.
    pub fn new(options: &PolicyOptions, model: &MachineModel) -> Result<Self, PolicyError> {
        options.check()?;
        Ok(Self {
            classes: batching_classes(model, "window")?,
            size: options.window_queries as usize,
            length: options.window(),
            limits: BatchLimits::new(options).at_most(options.window_queries),
            forecast: Forecast::new(model),
        })
    }
}

impl Policy for Window {
    fn name(&self) -> &str {
        "window"
    }

    fn arrive(&mut self, _job: &Job, jobs: &Jobs, now: Nanos) -> LanesToPoll {
        // The first of a window sets the clock, the last closes it; those between change nothing.
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
