//! When a policy that batches expects its lanes to be done.
//!
//! A lane that prepares one batch while another runs should close the next one as late as it can without letting the
//! device idle: whatever arrives until then still joins. So a policy keeps a forecast of each lane, from predicted
//! costs and the machine's fitted ones, and corrects it whenever a batch has ended.

use super::Lane;
use crate::cost::{BatchLoad, MachineModel};
use crate::ids::ProcessorId;
use crate::machine::Class;
use crate::time::Nanos;

/// Batches that overlap are closed this much sooner than the forecast asks for: a device that idles costs more than the
/// few queries that miss the batch.
const EARLY_SHARE: f64 = 0.1;

/// Predicted times of the lanes of a machine.
#[derive(Clone, Debug)]
pub(super) struct Forecast {
    model: MachineModel,
    /// By processor: when its batches are predicted to have finished.
    finish: Vec<Nanos>,
}

impl Forecast {
    /// All lanes are idle.
    pub(super) fn new(model: &MachineModel) -> Self {
        Self { model: model.clone(), finish: vec![Nanos::ZERO; model.machine.len()] }
    }

    pub(super) fn model(&self) -> &MachineModel {
        &self.model
    }

    /// When a batch that starts on the lane now would have finished.
    pub(super) fn finish_of(&self, lane: Lane, load: &BatchLoad, now: Nanos) -> Nanos {
        let time = self.model.batch_time(lane.class, load);
        let prepared = now + self.model.handoff[lane.class] + time.host;
        let device_free = if lane.under_way > 0 { self.finish[lane.processor.index()] } else { Nanos::ZERO };
        prepared.max(device_free) + time.on_device()
    }

    /// When to close the next batch of a lane that runs one: so many queries need their time to be prepared in.
    pub(super) fn close_at(&self, lane: Lane, queries: usize) -> Nanos {
        let queries = u32::try_from(queries).unwrap_or(u32::MAX).min(self.model.most_queries(lane.class));
        let host = self.model.host_time(lane.class, queries) + self.model.handoff[lane.class];
        self.finish[lane.processor.index()].since(host.scaled(1.0 + EARLY_SHARE))
    }

    /// Notes that a batch starts on the lane.
    pub(super) fn start(&mut self, lane: Lane, load: &BatchLoad, now: Nanos) {
        self.finish[lane.processor.index()] = self.finish_of(lane, load, now);
    }

    /// Notes that the oldest batch of a lane has ended; `lane` tells what it still holds.
    pub(super) fn finished(&mut self, lane: Lane, now: Nanos) {
        if lane.under_way == 0 {
            self.finish[lane.processor.index()] = now;
        }
    }

    /// When one of the lanes of a class would have a batch done at the earliest, if it started once what they hold has
    /// finished.
    pub(super) fn earliest_finish(&self, lanes: &[(ProcessorId, Class)], load: &BatchLoad, now: Nanos) -> Nanos {
        let finish = |&(processor, class): &(ProcessorId, Class)| {
            let time = self.model.batch_time(class, load);
            let prepared = now + self.model.handoff[class] + time.host;
            prepared.max(self.finish[processor.index()]) + time.on_device()
        };
        lanes.iter().map(finish).min().unwrap_or(Nanos::MAX)
    }
}
