//! The costs of a machine profile, on top of a [`Pipeline`].

use super::pipeline::Pipeline;
use super::{BatchTime, Cost, MachineModel, Preparing};
use crate::base::ids::ProcessorId;
use crate::base::machine::Class;
use crate::base::random::{NodeSeed, Purpose, Random};
use crate::base::time::Nanos;

/// Times that vary as observed on the machine, where a profile describes a class; those of the pipeline on other classes.
#[derive(Clone, Debug)]
pub(super) struct Profiled<'a, F> {
    pub(super) pipeline: Pipeline<'a, F>,
    /// By lane: the stream for variations of service times; empty without a machine profile.
    chance: Vec<Random>,
    /// How long the thread prepares the last started batch.
    pub(super) preparing: Option<Preparing>,
}

impl<'a, F: Fn(u32, Class) -> Cost> Profiled<'a, F> {
    pub(super) fn new(model: &'a MachineModel, seed: NodeSeed, cost: F) -> Self {
        let varies = Class::ALL.into_iter().any(|class| model.lanes[class].is_some());
        let num_streams = if varies { model.machine.len() as u32 } else { 0 };
        Self {
            pipeline: Pipeline::new(model, cost),
            chance: (0..num_streams).map(|lane| seed.stream(Purpose::Service, lane)).collect(),
            preparing: None,
        }
    }

    /// When a batch finishes that starts now: its hand-over, the thread's part, the device's part, and its hand-back.
    #[inline]
    pub(super) fn start(&mut self, processor: ProcessorId, class: Class, rows: &[u32], now: Nanos) -> Nanos {
        let model = self.pipeline.model;
        let Some(costs) = &model.lanes[class] else { return self.pipeline.start(processor, class, rows, now) };
        let load = self.pipeline.load(class, rows);
        let idle = now.since(self.pipeline.lanes[processor.index()].done);
        let busy = self.pipeline.busy(class, processor, now);
        self.preparing = None;
        let (lane, random) = (&mut self.pipeline.lanes[processor.index()], &mut self.chance[processor.index()]);
        let begin = now + costs.hand_over();
        if model.batches[class].is_none() {
            let (taken, _) = costs.one_by_one(random, &load, idle, class, &busy);
            lane.done = begin.max(lane.done) + taken;
        } else {
            let predicted = model.batch_time(class, &load);
            let several = load.queries > 1;
            let times = several.then(|| costs.batch(random, &load, predicted, class, &busy)).flatten();
            let (time, spacing, prepared) = if let Some(times) = times {
                let (host, exposed) = (predicted.host.scaled(times.host), predicted.exposed.scaled(times.host));
                let device = predicted.device.scaled(times.device);
                (BatchTime { host, exposed, device }, times.spacing, times.prepared)
            } else {
                // A single query spends most of its time off the device, where the next ones may be too. They follow each
                // other at the observed spacing.
                let (taken, spacing) = costs.one_by_one(random, &load, idle, class, &busy);
                let device = load.alone.scaled(spacing).min(taken);
                let exposed = taken.since(device);
                (BatchTime { host: exposed.min(device), exposed, device }, 1.0, 0.0)
            };
            self.preparing = lane.prepare(time.host.scaled(prepared), begin, costs.hand_back());
            // A failed lane runs on a CPU, which is on no device of its class.
            let device = &mut self.pipeline.devices[class][model.machine.processor(processor).device.index()];
            lane.done = lane.run_among_others(time, time.device.scaled(spacing), begin, device);
        }
        lane.finish = lane.done + costs.hand_back();
        lane.finish
    }
}
