//! A forecast of when the lanes of a batching policy finish.
//!
//! A lane that prepares one batch while another runs should close the next one as late as possible without idling the device,
//! because later arrivals can still join. A policy keeps a forecast of each lane, from predicted costs and the machine's
//! fitted ones. It corrects the forecast whenever a batch ends.

use super::Lane;
use crate::base::ids::ProcessorId;
use crate::base::machine::Class;
use crate::base::time::Nanos;
use crate::cost::{BatchLoad, MachineModel};

/// Overlapping batches close earlier than the forecast by this share. An idle device costs more than the few queries that miss
/// the batch.
const EARLY_SHARE: f64 = 0.1;

#[derive(Clone, Debug)]
pub(super) struct Forecast {
    model: MachineModel,
    /// By processor: when its batches are predicted to finish, and when its thread has prepared them.
    lanes: Vec<LaneForecast>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LaneForecast {
    finish: Nanos,
    host_free: Nanos,
}

impl Forecast {
    pub(super) fn new(model: &MachineModel) -> Self {
        Self { model: model.clone(), lanes: vec![LaneForecast::default(); model.machine.len()] }
    }

    pub(super) fn model(&self) -> &MachineModel {
        &self.model
    }

    /// The forecast of a lane after one more batch that starts now.
    fn after(&self, before: LaneForecast, class: Class, load: &BatchLoad, now: Nanos) -> LaneForecast {
        let time = self.model.batch_time(class, load);
        let begin = (now + self.model.handoff[class]).max(before.host_free);
        let host_free = begin + time.host;
        let finish = ((begin + time.exposed).max(before.finish) + time.device).max(host_free);
        LaneForecast { host_free, finish }
    }

    /// When to close the next batch of a lane that runs one, given the preparation time of `queries` queries.
    pub(super) fn close_at(&self, lane: Lane, queries: usize) -> Nanos {
        let queries = u32::try_from(queries).unwrap_or(u32::MAX).min(self.model.most_queries(lane.class));
        let exposed = self.model.exposed_time(lane.class, queries) + self.model.handoff[lane.class];
        self.lanes[lane.processor.index()].finish.since(exposed.scaled(1.0 + EARLY_SHARE))
    }

    pub(super) fn start(&mut self, lane: Lane, load: &BatchLoad, now: Nanos) {
        let before = if lane.under_way > 0 { self.lanes[lane.processor.index()] } else { LaneForecast::default() };
        self.lanes[lane.processor.index()] = self.after(before, lane.class, load, now);
    }

    /// Notes that the oldest batch of a lane has ended; `lane` says what it still holds.
    pub(super) fn finished(&mut self, lane: Lane, now: Nanos) {
        if lane.under_way == 0 {
            self.lanes[lane.processor.index()] = LaneForecast { finish: now, host_free: now };
        }
    }

    /// The earliest finish of a batch on these lanes, if it starts after the batches that they hold.
    pub(super) fn earliest_finish(&self, lanes: &[(ProcessorId, Class)], load: &BatchLoad, now: Nanos) -> Nanos {
        let finish = |&(processor, class): &(ProcessorId, Class)| {
            self.after(self.lanes[processor.index()], class, load, now).finish
        };
        lanes.iter().map(finish).min().unwrap_or(Nanos::MAX)
    }
}
