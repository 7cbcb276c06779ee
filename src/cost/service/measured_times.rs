//! Batches as long as measured queries and a fitted machine say.

use super::{BatchLoad, BatchTime, Cost, MachineModel, ServiceTimes};
use crate::cost::machine_file::{LaneCosts, LaneState};
use crate::ids::ProcessorId;
use crate::machine::{Class, PerClass, Processor};
use crate::time::Nanos;

/// A lane's two halves.
#[derive(Clone, Copy, Debug, Default)]
struct LaneClock {
    /// When its thread has prepared what it was given.
    host_free: Nanos,
    /// When its last batch will have finished.
    finish: Nanos,
    /// When its thread will have nothing to do: before that is known to the dispatcher.
    done: Nanos,
    /// What a machine file lets be remembered of it.
    state: LaneState,
}

/// A device, and its bus to the host's memory: streams share both, and one batch may have the one while another has the
/// other.
#[derive(Clone, Copy, Debug, Default)]
struct DeviceClock {
    free: Nanos,
    bus_free: Nanos,
}

impl DeviceClock {
    /// When a batch has finished that is prepared at `ready`, and takes both for so long.
    #[inline]
    fn take(&mut self, ready: Nanos, device: Nanos, bus: Nanos) -> Nanos {
        self.free = ready.max(self.free) + device;
        if bus == Nanos::ZERO {
            return self.free;
        }
        self.bus_free = ready.max(self.bus_free) + bus;
        self.free.max(self.bus_free)
    }
}

impl LaneClock {
    /// When a batch is done that its thread may take up from `begin` on, once it has prepared what came before.
    #[inline]
    fn run(&mut self, time: BatchTime, begin: Nanos, device: &mut DeviceClock) -> Nanos {
        let begin = begin.max(self.host_free);
        self.host_free = begin + time.host;
        let done = device.take(begin + time.exposed, time.device, time.bus);
        // A batch that needs no bus does not overtake the lane's last one, which may still wait for it.
        self.host_free.max(done).max(self.done)
    }
}

/// Service times from costs measured alone, with pipelines, devices that streams share, and batches.
#[derive(Clone, Debug)]
pub struct MeasuredTimes<'a, F> {
    model: &'a MachineModel,
    /// What the query in a row of the workload costs on a class.
    cost: F,
    lanes: Vec<LaneClock>,
    /// By class and device: when it will be free.
    devices: PerClass<Vec<DeviceClock>>,
    /// Batches so far: what varies by chance varies by this number.
    number: u64,
}

impl<'a, F: Fn(u32, Class) -> Cost> MeasuredTimes<'a, F> {
    /// An idle machine; `cost` says what the query in a row of the workload costs on a class.
    #[must_use]
    pub fn new(model: &'a MachineModel, cost: F) -> Self {
        let lanes = vec![LaneClock::default(); model.machine.len()];
        let devices = PerClass::from_fn(|class| vec![DeviceClock::default(); model.machine.num_devices(class)]);
        Self { model, cost, lanes, devices, number: 0 }
    }

    /// By class, how many lanes work now, the one that starts counted.
    #[inline]
    fn busy(&self, class: Class, processor: ProcessorId, now: Nanos) -> PerClass<u32> {
        let mut busy = PerClass::default();
        for ((other, on), lane) in self.model.machine.processors().zip(&self.lanes) {
            busy[on.class] += u32::from(lane.done > now && other != processor);
        }
        busy[class] += 1;
        busy
    }

    /// As [`ServiceTimes::start`], on a machine of which a machine file tells.
    fn start_among_others(&mut self, costs: &LaneCosts, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos {
        let Processor { class, device, .. } = self.model.machine.processor(processor);
        let idle = now.since(self.lanes[processor.index()].done);
        let crowded = costs.crowded(class, &self.busy(class, processor, now));
        self.number += 1;
        let load = rows.iter().fold(BatchLoad::default(), |load, &row| load.with((self.cost)(row, class)));
        let time = self.model.batch_time(class, &load);
        let lane = &mut self.lanes[processor.index()];
        let taken = costs.work(&mut lane.state, time.total(), idle, crowded, now, self.number);
        let begin = now + costs.hand_over(idle);
        if self.model.batches[class].is_some() {
            let times = taken.as_us() / time.total().as_us().max(1e-3);
            let time = match load.queries {
                // Of a query alone most of the time is on its way, where the next one may be, too.
                1 => {
                    let device = load.alone.scaled(costs.spacing()).min(taken);
                    let exposed = taken.since(device);
                    BatchTime { host: exposed, exposed, device, bus: time.bus.scaled(times).min(device) }
                }
                _ => BatchTime {
                    host: time.host.scaled(times * costs.batch_host()),
                    exposed: time.exposed.scaled(times),
                    device: time.device.scaled(times * costs.batch_device()),
                    bus: time.bus.scaled(times),
                },
            };
            lane.done = lane.run(time, begin, &mut self.devices[class][device.index()]);
        } else {
            lane.done = begin.max(lane.done) + taken;
        }
        lane.finish = lane.done + costs.hand_back();
        lane.finish
    }
}

impl<F: Fn(u32, Class) -> Cost> ServiceTimes for MeasuredTimes<'_, F> {
    #[inline]
    fn start(&mut self, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos {
        let Processor { class, device, .. } = self.model.machine.processor(processor);
        let model = self.model;
        if let Some(costs) = &model.lanes[class] {
            return self.start_among_others(costs, processor, rows, now);
        }
        let begin = now + self.model.handoff[class];
        let lane = &mut self.lanes[processor.index()];
        match &self.model.batches[class] {
            None => {
                let alone = rows.iter().fold(Nanos::ZERO, |sum, &row| sum + (self.cost)(row, class).alone);
                lane.finish = begin.max(lane.finish) + alone;
            }
            Some(batches) => {
                let load = rows.iter().fold(BatchLoad::default(), |load, &row| load.with((self.cost)(row, class)));
                lane.finish = lane.run(batches.time(&load), begin, &mut self.devices[class][device.index()]);
            }
        }
        lane.done = lane.finish;
        lane.finish
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::service::{BatchCost, Exposed};
    use crate::machine::Machine;

    /// Row r costs 10 (r + 1) us on a CPU, and on a GPU 5 on the host and 10 on the device, alone or not.
    fn cost(row: u32, class: Class) -> Cost {
        if class.is_gpu() {
            // Rows from 100 on take the bus for 30 us.
            let bus = if row < 100 { Nanos::ZERO } else { Nanos(30_000) };
            Cost { alone: Nanos(15_000) + bus, added: Nanos(10_000), bus }
        } else {
            Cost::alone(Nanos(10_000 * (u64::from(row) + 1)))
        }
    }

    fn model(machine: Machine) -> MachineModel {
        let batches = BatchCost {
            host_fixed_us: 0.0,
            host_each_us: 5.0,
            exposed: None,
            device_fixed_us: 0.0,
            longest: 0.0,
            crowding: vec![(1, 1.0)],
            bus_crowding: Vec::new(),
            most_queries: 64,
        };
        MachineModel { batches: PerClass::two(None, Some(batches)), ..MachineModel::from(machine) }
    }

    const GPU: ProcessorId = ProcessorId(1);

    #[test]
    fn a_cpu_runs_a_batch_one_query_after_another() {
        let model = model(Machine::new(2, 0));
        let mut times = MeasuredTimes::new(&model, cost);
        assert_eq!(times.start(ProcessorId(1), &[0, 1, 2], Nanos(7)), Nanos(60_007));
        assert_eq!(times.start(ProcessorId(0), &[4], Nanos(7)), Nanos(50_007));
    }

    #[test]
    fn the_host_prepares_while_the_device_runs() {
        let model = model(Machine::new(1, 0).with_gpus(1, 1, 2));
        let mut times = MeasuredTimes::new(&model, cost);
        // 10 us of host, 20 of device; the second batch is prepared meanwhile and waits for the device.
        assert_eq!(times.start(GPU, &[0, 1], Nanos(0)), Nanos(30_000));
        assert_eq!(times.start(GPU, &[2, 3], Nanos(0)), Nanos(50_000));
        // After a pause, both halves again.
        assert_eq!(times.start(GPU, &[0], Nanos(100_000)), Nanos(115_000));
    }

    #[test]
    fn the_bus_is_shared_by_streams_and_overlaps_what_others_score() {
        let model = model(Machine::new(1, 0).with_gpus(1, 2, 2));
        let mut times = MeasuredTimes::new(&model, cost);
        let other = ProcessorId(2);
        // 10 us of host; the device has scored after 30, the bus has read what the two need after 70.
        assert_eq!(times.start(GPU, &[100, 101], Nanos(0)), Nanos(70_000));
        // Another stream's batch of near lists scores as soon as the device is free, long before.
        assert_eq!(times.start(other, &[0, 1], Nanos(0)), Nanos(50_000));
        // One that needs the bus, too, waits for it.
        assert_eq!(times.start(other, &[102, 103], Nanos(0)), Nanos(130_000));
        // Batches of a lane finish in order, also one that needs no bus.
        assert_eq!(times.start(other, &[2], Nanos(0)), Nanos(130_000));
        // After a pause all is free.
        assert_eq!(times.start(GPU, &[100, 101], Nanos(1_000_000)), Nanos(1_070_000));
    }

    #[test]
    fn whichever_is_longer_sets_the_pace_of_batches_in_a_stream() {
        let mut model = model(Machine::new(1, 0).with_gpus(1, 1, 2));
        if let Some(batches) = &mut model.batches[Class::GPU] {
            batches.host_each_us = 30.0;
            batches.exposed = Some(Exposed { fixed_us: 10.0, each_us: 0.0 });
        }
        let cost = |_, _| Cost { alone: Nanos(100_000), added: Nanos(10_000), ..Cost::default() };
        let mut times = MeasuredTimes::new(&model, cost);
        // 60 us of the thread, of which 10 before the device begins on its 20.
        let ends: Vec<u64> = (0..3).map(|_| times.start(GPU, &[0, 1], Nanos(0)).0).collect();
        assert_eq!(ends, [60_000, 120_000, 180_000]);
    }

    #[test]
    fn streams_share_their_device_and_gpus_do_not() {
        let start_both = |machine: Machine| {
            let model = model(machine);
            let mut times = MeasuredTimes::new(&model, cost);
            [GPU, ProcessorId(2)].map(|gpu| times.start(gpu, &[0], Nanos(0)).0)
        };
        assert_eq!(start_both(Machine::new(1, 0).with_gpus(1, 2, 1)), [15_000, 25_000]);
        assert_eq!(start_both(Machine::new(1, 2)), [15_000, 15_000]);
    }

    #[test]
    fn handing_over_takes_its_time() {
        let mut model = model(Machine::new(1, 1));
        model.handoff = PerClass::two(Nanos(3), Nanos(4));
        let mut times = MeasuredTimes::new(&model, cost);
        assert_eq!(times.start(ProcessorId(0), &[0], Nanos(0)), Nanos(10_003));
        assert_eq!(times.start(GPU, &[0], Nanos(0)), Nanos(15_004));
    }
}
