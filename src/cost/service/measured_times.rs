//! Batches as long as measured queries and a fitted machine say.

use super::{BatchLoad, BatchTime, Cost, MachineModel, ServiceTimes};
use crate::cost::machine_file::{LaneCosts, LaneState};
use crate::ids::ProcessorId;
use crate::machine::{Class, FaultKind, PerClass, PlannedFault, Processor, WATCHDOG};
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
    /// Whether it has failed, and goes on with a CPU in its place.
    has_failed: bool,
}

/// Service times from costs measured alone, with pipelines, devices that streams share, and batches.
#[derive(Clone, Debug)]
pub struct MeasuredTimes<'a, F> {
    model: &'a MachineModel,
    /// What the query in a row of the workload costs on a class.
    cost: F,
    lanes: Vec<LaneClock>,
    /// By class and device: when it will be free.
    devices: PerClass<Vec<Nanos>>,
    /// Batches so far: what varies by chance varies by this number.
    number: u64,
    /// Planned faults that have not come yet.
    faults: Vec<PlannedFault>,
}

impl<'a, F: Fn(u32, Class) -> Cost> MeasuredTimes<'a, F> {
    /// An idle machine; `cost` says what the query in a row of the workload costs on a class.
    #[must_use]
    pub fn new(model: &'a MachineModel, cost: F) -> Self {
        let lanes = vec![LaneClock::default(); model.machine.len()];
        let devices = PerClass::from_fn(|class| vec![Nanos::ZERO; model.machine.num_devices(class)]);
        Self { model, cost, lanes, devices, number: 0, faults: model.faults.clone() }
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
        let BatchTime { host, device: on_device } = self.model.batch_time(class, &load);
        let lane = &mut self.lanes[processor.index()];
        let taken = costs.work(&mut lane.state, host + on_device, idle, crowded, now, self.number);
        let begin = now + costs.hand_over(idle);
        if self.model.batches[class].is_some() {
            // Of a query alone most of the time is on its way, where the next one may be, too.
            let of_device = match load.queries {
                1 => load.alone.scaled(costs.spacing()).min(taken),
                _ => taken.since(taken.scaled(host.as_us() / (host + on_device).as_us().max(1e-3))),
            };
            lane.host_free = begin.max(lane.host_free) + taken.since(of_device);
            let device_free = &mut self.devices[class][device.index()];
            *device_free = lane.host_free.max(*device_free) + of_device;
            lane.done = *device_free;
            lane.host_free += Nanos(costs.check_each().0 * rows.len() as u64);
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
        if self.faults.is_empty() && !self.lanes[processor.index()].has_failed {
            return self.start_well(processor, rows, now);
        }
        self.start_or_fail(processor, rows, now)
    }
}

impl<F: Fn(u32, Class) -> Cost> MeasuredTimes<'_, F> {
    /// As [`ServiceTimes::start`], where something may go wrong on the way.
    ///
    /// A lane that fails loses the batch that is under way, runs it again on a CPU core in its place, query after query, and
    /// goes on with that. One that hangs does so when its watchdog has waited for the batch. A stall holds up the batch that
    /// is under way when it comes, or the next.
    #[cold]
    fn start_or_fail(&mut self, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos {
        let on_spare = |cost: &F| rows.iter().fold(Nanos::ZERO, |sum, &row| sum + cost(row, Class::CPU).alone);
        if self.lanes[processor.index()].has_failed {
            let lane = &mut self.lanes[processor.index()];
            lane.done = lane.done.max(now) + on_spare(&self.cost);
            lane.finish = lane.done;
            return lane.finish;
        }
        let begin = now.max(self.lanes[processor.index()].done);
        let mut finish = self.start_well(processor, rows, now);
        while let Some(next) = self.faults.iter().position(|fault| fault.processor == processor && fault.at < finish) {
            let fault = self.faults.remove(next);
            let lane = &mut self.lanes[processor.index()];
            if fault.kind == FaultKind::Stall {
                finish = finish.max(fault.at) + fault.lasts;
            } else {
                let noticed = match fault.kind {
                    FaultKind::Hang => begin.max(fault.at) + WATCHDOG,
                    _ => begin.max(fault.at),
                };
                lane.has_failed = true;
                finish = noticed + on_spare(&self.cost);
            }
            (lane.done, lane.host_free, lane.finish) = (finish, finish, finish);
            if lane.has_failed {
                break;
            }
        }
        finish
    }

    /// As [`ServiceTimes::start`], where nothing goes wrong.
    #[inline]
    fn start_well(&mut self, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos {
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
                let time = batches.time(&load);
                lane.host_free = begin.max(lane.host_free) + time.host;
                let device_free = &mut self.devices[class][device.index()];
                *device_free = lane.host_free.max(*device_free) + time.device;
                lane.finish = *device_free;
            }
        }
        lane.done = lane.finish;
        lane.finish
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::service::BatchCost;
    use crate::machine::Machine;

    /// Row r costs 10 (r + 1) us on a CPU, and on a GPU 5 on the host and 10 on the device, alone or not.
    fn cost(row: u32, class: Class) -> Cost {
        if class.is_gpu() {
            Cost { alone: Nanos(15_000), added: Nanos(10_000) }
        } else {
            Cost::alone(Nanos(10_000 * (u64::from(row) + 1)))
        }
    }

    fn model(machine: Machine) -> MachineModel {
        let batches = BatchCost {
            host_fixed_us: 0.0,
            host_each_us: 5.0,
            device_fixed_us: 0.0,
            longest: 0.0,
            crowding: vec![(1, 1.0)],
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
    fn a_lane_that_fails_runs_its_batch_again_on_a_cpu_and_goes_on_with_that() {
        let fault = |kind, lasts| PlannedFault { at: Nanos(20_000), processor: GPU, kind, lasts };
        let finishes = |faults: Vec<PlannedFault>| {
            let model = MachineModel { faults, ..model(Machine::new(1, 0).with_gpus(1, 1, 1)) };
            let mut times = MeasuredTimes::new(&model, cost);
            // Alone each takes 15 us there, and 10, 20, 30 on a CPU.
            let finish: Vec<u64> =
                [(0, 0), (1, 15_000), (2, 500_050_000)].map(|(row, at)| times.start(GPU, &[row], Nanos(at)).0).to_vec();
            finish
        };
        assert_eq!(finishes(Vec::new()), [15_000, 30_000, 500_065_000]);
        assert_eq!(finishes(vec![fault(FaultKind::Error, Nanos::ZERO)]), [15_000, 40_000, 500_080_000]);
        assert_eq!(finishes(vec![fault(FaultKind::Hang, Nanos::ZERO)]), [15_000, 500_040_000, 500_080_000]);
        assert_eq!(finishes(vec![fault(FaultKind::Stall, Nanos(7000))]), [15_000, 37_000, 500_065_000]);
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
