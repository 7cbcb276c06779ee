//! `window`: a batch closes when it holds so many queries, or when its oldest has waited so long.
//!
//! The textbook's batching, and most servers' default ("delayed batching" with a maximum size). The window is what a
//! lone query pays at low load; [`greedy`](super::Greedy) pays nothing.

use std::collections::VecDeque;

use super::batching::{BatchLimits, ask_batching, batching_classes};
use super::forecast::Forecast;
use super::{Ask, Job, Lane, Next, Policy, PolicyError, PolicyOptions};
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
    queue: VecDeque<Job>,
}

impl Window {
    /// An empty queue.
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
            queue: VecDeque::new(),
        })
    }
}

impl Policy for Window {
    fn name(&self) -> &str {
        "window"
    }

    fn arrive(&mut self, job: &Job, now: Nanos) -> Ask {
        self.queue.push_back(*job);
        // The first of a window sets the clock, the last closes it; those between change nothing.
        let concerns = self.queue.len() == 1 || self.queue.len() >= self.size || self.closes_at() <= now;
        if concerns { ask_batching(&self.classes) } else { Ask::Nobody }
    }

    fn next(&mut self, lane: Lane, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if self.queue.is_empty() || !self.classes.contains(&lane.class) {
            return Next::Wait;
        }
        let closes_at = self.closes_at();
        if self.queue.len() < self.size && now < closes_at {
            return Next::WaitUntil(closes_at);
        }
        let load = self.limits.fill(&self.queue, lane, &self.forecast, now, batch);
        self.queue.drain(..batch.len());
        self.forecast.start(lane, &load, now);
        Next::Run
    }

    fn finished(&mut self, lane: Lane, _batch: &[Job], _service: Nanos, now: Nanos) -> Ask {
        self.forecast.finished(lane, now);
        Ask::Nobody
    }
}

impl Window {
    /// When the window of the oldest job closes, counted from its arrival.
    fn closes_at(&self) -> Nanos {
        self.queue.front().map_or(Nanos::MAX, |job| job.arrival + self.length)
    }
}
