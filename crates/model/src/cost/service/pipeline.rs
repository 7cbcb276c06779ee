//! Lanes whose threads prepare batches while their devices run earlier ones.

use super::{BatchLoad, BatchTime, Cost, MachineModel, Preparing};
use crate::base::ids::ProcessorId;
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LaneClock {
    /// When its thread has prepared all batches so far.
    pub(super) host_free: Nanos,
    /// When its last batch will have finished.
    pub(super) finish: Nanos,
    /// When its thread will be idle, before the dispatcher notices it.
    pub(super) done: Nanos,
    /// When its permanent failure was noticed. From then on a CPU replaces it.
    pub(super) retired_at: Option<Nanos>,
    /// Consecutive batches for which it found no memory.
    pub(super) without_memory: u32,
}

/// A device that streams share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeviceClock {
    free: Nanos,
}

impl DeviceClock {
    /// When a batch finishes that is ready at `ready` and takes `device`. It occupies the device exclusively only for `alone`,
    /// since a small batch does not fill it.
    #[inline]
    pub(super) fn take(&mut self, ready: Nanos, device: Nanos, alone: Nanos) -> Nanos {
        self.free = ready.max(self.free) + alone;
        self.free.max(ready + device)
    }
}

impl LaneClock {
    /// When a batch finishes that its thread may start from `begin` on, after earlier preparations.
    #[inline]
    fn run(&mut self, time: BatchTime, begin: Nanos, device: &mut DeviceClock) -> Nanos {
        self.run_among_others(time, time.device, begin, device)
    }

    /// Notes that the thread prepares a batch for `prepared`, from `begin` on at the earliest. Batches of the lane that would
    /// end during this time are noticed afterwards.
    #[inline]
    pub(super) fn prepare(&mut self, prepared: Nanos, begin: Nanos, hand_back: Nanos) -> Option<Preparing> {
        let from = begin.max(self.host_free);
        if self.done <= from || prepared == Nanos::ZERO {
            return None;
        }
        let until = from + prepared;
        self.done = self.done.max(until);
        Some(Preparing { from: from + hand_back, until: until + hand_back })
    }

    /// When a batch finishes that occupies the device exclusively only for `alone`.
    #[inline]
    pub(super) fn run_among_others(
        &mut self,
        time: BatchTime,
        alone: Nanos,
        begin: Nanos,
        device: &mut DeviceClock,
    ) -> Nanos {
        let begin = begin.max(self.host_free);
        self.host_free = begin + time.host;
        let done = device.take(begin + time.exposed, time.device, alone);
        // A short batch does not overtake the lane's last one.
        self.host_free.max(done).max(self.done)
    }
}

/// Times by the costs measured alone: queries one after another on a thread, batches through a thread and a device.
#[derive(Clone, Debug)]
pub(super) struct Pipeline<'a, F> {
    pub(super) model: &'a MachineModel,
    /// The cost of a workload row's query on a class.
    pub(super) cost: F,
    pub(super) lanes: Vec<LaneClock>,
    /// By class and device: when it will be free.
    pub(super) devices: PerClass<Vec<DeviceClock>>,
}

impl<'a, F: Fn(u32, Class) -> Cost> Pipeline<'a, F> {
    pub(super) fn new(model: &'a MachineModel, cost: F) -> Self {
        let lanes = vec![LaneClock::default(); model.machine.len()];
        let devices = PerClass::from_fn(|class| vec![DeviceClock::default(); model.machine.num_devices(class)]);
        Self { model, cost, lanes, devices }
    }

    /// The summed costs of the queries of these rows.
    #[inline]
    pub(super) fn load(&self, class: Class, rows: &[u32]) -> BatchLoad {
        rows.iter().fold(BatchLoad::default(), |load, &row| load.with((self.cost)(row, class)))
    }

    /// Busy lanes by class, including the one that starts.
    #[inline]
    pub(super) fn busy(&self, class: Class, processor: ProcessorId, now: Nanos) -> PerClass<u32> {
        let mut busy = PerClass::default();
        for ((other, on), lane) in self.model.machine.processors().zip(&self.lanes) {
            let class = if lane.retired_at.is_some() { Class::CPU } else { on.class };
            busy[class] += u32::from(lane.done > now && other != processor);
        }
        busy[class] += 1;
        busy
    }

    /// When a batch finishes that starts now. `class` is the lane's own, or that of a CPU that has replaced it.
    #[inline]
    pub(super) fn start(&mut self, processor: ProcessorId, class: Class, rows: &[u32], now: Nanos) -> Nanos {
        let model = self.model;
        let begin = now + model.handoff[class];
        let finish = if let Some(batches) = &model.batches[class] {
            let time = batches.time(&self.load(class, rows));
            let device = model.machine.processor(processor).device;
            self.lanes[processor.index()].run(time, begin, &mut self.devices[class][device.index()])
        } else {
            let alone = rows.iter().fold(Nanos::ZERO, |sum, &row| sum + (self.cost)(row, class).alone);
            begin.max(self.lanes[processor.index()].finish) + alone
        };
        let lane = &mut self.lanes[processor.index()];
        (lane.done, lane.finish) = (finish, finish);
        finish
    }

    /// As [`ServiceTimes::join`](super::ServiceTimes::join): the rest of the work is done at the new speed once the helper has
    /// taken over its part.
    pub(super) fn join(&mut self, lead: ProcessorId, row: u32, helpers: &[(ProcessorId, Nanos)], now: Nanos) -> Nanos {
        let class = self.model.machine.class(lead);
        let alone = (self.cost)(row, class).alone;
        let speed = |lanes: usize| self.model.speed_up(class, alone, lanes as u32);
        let slower = speed(helpers.len()) / speed(helpers.len() + 1);
        if helpers.is_empty() {
            return self.lanes[lead.index()].finish;
        }
        let handover = match &self.model.lanes[class] {
            Some(costs) => costs.hand_over(),
            None => self.model.handoff[class],
        };
        let lane = &mut self.lanes[lead.index()];
        let left = lane.done.since(now + handover);
        let sooner = left.since(left.scaled(slower));
        (lane.done, lane.finish) = (lane.done - sooner, lane.finish - sooner);
        let (done, finish) = (lane.done, lane.finish);
        for &(helper, _) in helpers {
            let lane = &mut self.lanes[helper.index()];
            (lane.done, lane.finish) = (done, finish);
        }
        finish
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_that_do_not_fill_the_device_overlap_there() {
        // Each takes 20 us, 12 of them exclusively.
        let mut device = DeviceClock::default();
        let mut take = |ready| device.take(Nanos(ready), Nanos(20), Nanos(12)).0;
        assert_eq!([take(0), take(0), take(1)], [20, 24, 36]);
        // A batch that comes to an idle device takes its time alone.
        assert_eq!([take(30), take(100)], [50, 120]);
    }

    #[test]
    fn completions_wait_for_the_preparing_thread() {
        // Preparation takes 10 us; the thread is free from 5 on and holds a batch that ends at `done`.
        let prepare = |done: u64, begin: u64| {
            let mut lane = LaneClock { host_free: Nanos(5), done: Nanos(done), ..LaneClock::default() };
            let preparing = lane.prepare(Nanos(10), Nanos(begin), Nanos(2));
            (lane.done.0, preparing.map(|preparing| (preparing.from.0, preparing.until.0)))
        };
        assert_eq!(prepare(12, 8), (18, Some((10, 20))));
        assert_eq!(prepare(12, 0), (15, Some((7, 17))));
        // Batches before the last may end during this time.
        assert_eq!(prepare(40, 8), (40, Some((10, 20))));
        assert_eq!(prepare(8, 8), (8, None));
    }
}
