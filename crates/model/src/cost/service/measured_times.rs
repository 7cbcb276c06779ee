//! Service times from measured queries and a fitted machine.

use super::{BatchLoad, BatchTime, Cost, MachineModel, Preparing, Rerun, ServiceTimes};
use crate::base::ids::ProcessorId;
use crate::base::machine::{Class, FaultKind, LaneFault, PATIENCE, PerClass, PlannedFault, Processor};
use crate::base::random::{NodeSeed, Purpose, Random};
use crate::base::time::Nanos;
use crate::cost::machine_profile::LaneCosts;

#[derive(Clone, Copy, Debug, Default)]
struct LaneClock {
    /// When its thread has prepared all batches so far.
    host_free: Nanos,
    /// When its last batch will have finished.
    finish: Nanos,
    /// When its thread will be idle, before the dispatcher notices it.
    done: Nanos,
    /// When its permanent failure was noticed. From then on a CPU replaces it.
    retired_at: Option<Nanos>,
    /// Consecutive batches for which it found no memory.
    without_memory: u32,
}

/// A device that streams share.
#[derive(Clone, Copy, Debug, Default)]
struct DeviceClock {
    free: Nanos,
}

impl DeviceClock {
    /// When a batch finishes that is ready at `ready` and takes `device`. It occupies the device exclusively only for `alone`,
    /// since a small batch does not fill it.
    #[inline]
    fn take(&mut self, ready: Nanos, device: Nanos, alone: Nanos) -> Nanos {
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
    fn prepare(&mut self, prepared: Nanos, begin: Nanos, hand_back: Nanos) -> Option<Preparing> {
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
    fn run_among_others(&mut self, time: BatchTime, alone: Nanos, begin: Nanos, device: &mut DeviceClock) -> Nanos {
        let begin = begin.max(self.host_free);
        self.host_free = begin + time.host;
        let done = device.take(begin + time.exposed, time.device, alone);
        // A short batch does not overtake the lane's last one.
        self.host_free.max(done).max(self.done)
    }
}

/// Service times from costs measured alone, with pipelines, shared devices, and batches.
#[derive(Clone, Debug)]
pub struct MeasuredTimes<'a, F> {
    model: &'a MachineModel,
    /// The cost of a workload row's query on a class.
    cost: F,
    lanes: Vec<LaneClock>,
    /// By class and device: when it will be free.
    devices: PerClass<Vec<DeviceClock>>,
    /// By lane: the stream for variations of service times; empty without a machine profile.
    chance: Vec<Random>,
    /// Planned faults that may still come, in order of time.
    faults: Vec<PlannedFault>,
    /// Whether the last started batch is rerun; `preparing` says how long its thread prepares it.
    rerun: Option<Rerun>,
    preparing: Option<Preparing>,
    /// Whether nothing can fail and there is no machine profile. Most runs are so, and this case is fastest.
    is_exact: bool,
}

impl<'a, F: Fn(u32, Class) -> Cost> MeasuredTimes<'a, F> {
    /// An idle machine; `cost` gives the cost of a workload row's query on a class. Each lane draws from a stream of `seed`.
    #[must_use]
    pub fn new(model: &'a MachineModel, seed: NodeSeed, cost: F) -> Self {
        let lanes = vec![LaneClock::default(); model.machine.len()];
        let devices = PerClass::from_fn(|class| vec![DeviceClock::default(); model.machine.num_devices(class)]);
        let varies = Class::ALL.into_iter().any(|class| model.lanes[class].is_some());
        let num_streams = if varies { model.machine.len() as u32 } else { 0 };
        Self {
            model,
            cost,
            lanes,
            devices,
            chance: (0..num_streams).map(|lane| seed.stream(Purpose::Service, lane)).collect(),
            faults: model.faults.faults.clone(),
            rerun: None,
            preparing: None,
            is_exact: model.is_exact(),
        }
    }

    /// The summed costs of the queries of these rows.
    #[inline]
    fn load(&self, class: Class, rows: &[u32]) -> BatchLoad {
        rows.iter().fold(BatchLoad::default(), |load, &row| load.with((self.cost)(row, class)))
    }

    /// Busy lanes by class, including the one that starts.
    #[inline]
    fn busy(&self, class: Class, processor: ProcessorId, now: Nanos) -> PerClass<u32> {
        let mut busy = PerClass::default();
        for ((other, on), lane) in self.model.machine.processors().zip(&self.lanes) {
            let class = if lane.retired_at.is_some() { Class::CPU } else { on.class };
            busy[class] += u32::from(lane.done > now && other != processor);
        }
        busy[class] += 1;
        busy
    }

    /// Starts a batch as [`ServiceTimes::start`], with the costs of a machine profile.
    fn start_on_profile(
        &mut self,
        costs: &LaneCosts,
        (processor, class): (ProcessorId, Class),
        rows: &[u32],
        now: Nanos,
    ) -> Nanos {
        let device = self.model.machine.processor(processor).device;
        let busy = self.busy(class, processor, now);
        self.preparing = None;
        let load = self.load(class, rows);
        let time = self.model.batch_time(class, &load);
        let (lane, random) = (&mut self.lanes[processor.index()], &mut self.chance[processor.index()]);
        let begin = now + costs.hand_over();
        // A failed lane runs on a CPU, which is on no device of its class.
        let devices = &mut self.devices[class];
        let batches = self.model.batches[class].as_ref();
        let several = batches.filter(|_| load.queries > 1);
        if let Some(times) = several.and_then(|_| costs.batch(random, &load, time, class, &busy)) {
            let time = BatchTime {
                host: time.host.scaled(times.host),
                exposed: time.exposed.scaled(times.host),
                device: time.device.scaled(times.device),
            };
            let alone = time.device.scaled(times.spacing);
            self.preparing = lane.prepare(time.host.scaled(times.prepared), begin, costs.hand_back());
            lane.done = lane.run_among_others(time, alone, begin, &mut devices[device.index()]);
        } else {
            let (taken, spacing) = costs.one_by_one(random, &load, class, &busy);
            lane.done = if batches.is_some() {
                // A single query spends most of its time off the device, where the next ones may be too. They follow each
                // other at the observed spacing.
                let on_device = load.alone.scaled(spacing).min(taken);
                let exposed = taken.since(on_device);
                let time = BatchTime { host: exposed.min(on_device), exposed, device: on_device };
                lane.run(time, begin, &mut devices[device.index()])
            } else {
                begin.max(lane.done) + taken
            };
        }
        lane.finish = lane.done + costs.hand_back();
        lane.finish
    }
}

impl<F: Fn(u32, Class) -> Cost> ServiceTimes for MeasuredTimes<'_, F> {
    #[inline]
    fn start(&mut self, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos {
        if self.is_exact {
            let class = self.model.machine.class(processor);
            if self.model.batches[class].is_none() {
                return self.start_one_by_one(processor, class, rows, now);
            }
            return self.start_well(processor, class, rows, now);
        }
        if self.faults.is_empty() && self.lanes[processor.index()].retired_at.is_none() {
            return self.start_well(processor, self.model.machine.class(processor), rows, now);
        }
        self.start_or_fail(processor, rows, now)
    }

    /// The rest of the work is done at the new speed once the helper has taken over its part.
    fn join(&mut self, lead: ProcessorId, row: u32, helpers: &[(ProcessorId, Nanos)], now: Nanos) -> Nanos {
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

    #[inline]
    fn take_rerun(&mut self) -> Option<Rerun> {
        self.rerun.take()
    }

    #[inline]
    fn take_preparing(&mut self) -> Option<Preparing> {
        self.preparing.take()
    }
}

impl<F: Fn(u32, Class) -> Cost> MeasuredTimes<'_, F> {
    /// Starts a batch as [`ServiceTimes::start`], with planned faults, by the same [rule](crate::base::machine::FaultPlan) as
    /// live lanes.
    ///
    /// A batch that a lane loses is rerun on a replacement CPU, query after query, once the fault is noticed: at once, or by
    /// the watchdog. A stall delays the batch under way, and has no effect on an idle lane. Memory is requested when a batch
    /// is handed over.
    #[cold]
    fn start_or_fail(&mut self, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos {
        let Processor { class, device, .. } = self.model.machine.processor(processor);
        let before = self.lanes[processor.index()];
        if let Some(retired_at) = before.retired_at {
            // Batches handed over before are lost with the failed one.
            self.rerun = (now < retired_at).then_some(Rerun { fault: None });
            return self.start_well(processor, Class::CPU, rows, now);
        }
        let device_before = self.devices[class][device.index()];
        let begin = now.max(before.done);
        let finish = self.start_well(processor, class, rows, now);
        match self.meet_faults(processor, now, begin, finish) {
            Ok(finish) => {
                self.lanes[processor.index()].without_memory = 0;
                finish
            }
            Err((kind, noticed)) => {
                self.devices[class][device.index()] = device_before;
                self.preparing = None;
                self.lose(processor, before, rows.len(), kind, noticed);
                self.start_well(processor, Class::CPU, rows, noticed)
            }
        }
    }

    /// When a batch finishes that was handed over at `now`, starts at `begin` and would finish at `finish`, with the planned
    /// stalls.
    ///
    /// # Errors
    /// With the fault that loses the batch, and when it is noticed.
    fn meet_faults(
        &mut self,
        processor: ProcessorId,
        now: Nanos,
        begin: Nanos,
        mut finish: Nanos,
    ) -> Result<Nanos, (FaultKind, Nanos)> {
        let barks_at = begin + self.model.faults.watchdog;
        let meets = |fault: &PlannedFault, finish| match fault.kind {
            FaultKind::Memory => fault.at <= now,
            _ => fault.at < finish,
        };
        loop {
            let of_lane = |fault: &PlannedFault| fault.processor == processor && meets(fault, finish);
            let Some(next) = self.faults.iter().position(of_lane) else { return Ok(finish) };
            let fault = self.faults[next];
            let is_over = match fault.kind {
                FaultKind::Memory => fault.end() <= now,
                _ => fault.end() <= begin,
            };
            if is_over {
                self.faults.remove(next);
                continue;
            }
            match fault.kind {
                FaultKind::Error | FaultKind::Panic => return Err((fault.kind, begin.max(fault.at))),
                FaultKind::Hang => return Err((FaultKind::Hang, barks_at.max(fault.at))),
                FaultKind::Memory => return Err((FaultKind::Memory, begin)),
                FaultKind::Stall => {
                    let until = finish + fault.end().since(begin.max(fault.at));
                    if until > barks_at {
                        return Err((FaultKind::Hang, barks_at.max(fault.at)));
                    }
                    self.faults.remove(next);
                    finish = until;
                    let lane = &mut self.lanes[processor.index()];
                    (lane.done, lane.host_free, lane.finish) = (finish, finish, finish);
                }
            }
        }
    }

    /// Resets a lane to its state `before` a lost batch of `queries` queries, and notes the outcome of both.
    fn lose(&mut self, processor: ProcessorId, before: LaneClock, queries: usize, kind: FaultKind, noticed: Nanos) {
        let without_memory = before.without_memory + u32::from(kind == FaultKind::Memory);
        let is_retired = kind != FaultKind::Memory || without_memory >= PATIENCE;
        self.lanes[processor.index()] = LaneClock {
            done: noticed,
            host_free: noticed,
            finish: noticed,
            retired_at: is_retired.then_some(noticed),
            without_memory,
            ..before
        };
        let what = String::from("as planned");
        let fault = LaneFault { processor, at: noticed, kind, queries, is_retired, what };
        self.rerun = Some(Rerun { fault: Some(fault) });
    }

    /// Starts a batch as [`ServiceTimes::start`], without faults.
    ///
    /// `class` is the lane's own, or that of a CPU that has replaced it.
    #[inline]
    fn start_well(&mut self, processor: ProcessorId, class: Class, rows: &[u32], now: Nanos) -> Nanos {
        let model = self.model;
        let device = model.machine.processor(processor).device;
        if let Some(costs) = &model.lanes[class] {
            return self.start_on_profile(costs, (processor, class), rows, now);
        }
        let Some(batches) = &model.batches[class] else { return self.start_one_by_one(processor, class, rows, now) };
        let begin = now + model.handoff[class];
        let load = self.load(class, rows);
        let lane = &mut self.lanes[processor.index()];
        lane.finish = lane.run(batches.time(&load), begin, &mut self.devices[class][device.index()]);
        lane.done = lane.finish;
        lane.finish
    }

    /// Starts a batch without faults whose queries run one after another.
    #[inline]
    fn start_one_by_one(&mut self, processor: ProcessorId, class: Class, rows: &[u32], now: Nanos) -> Nanos {
        let begin = now + self.model.handoff[class];
        let alone = rows.iter().fold(Nanos::ZERO, |sum, &row| sum + (self.cost)(row, class).alone);
        let lane = &mut self.lanes[processor.index()];
        lane.finish = begin.max(lane.finish) + alone;
        lane.done = lane.finish;
        lane.finish
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::base::machine::{FaultPlan, Idle, Machine};
    use crate::cost::machine_profile::{DispatcherProfile, LaneProfile, Slowdown};
    use crate::cost::service::{BatchCost, Exposed};
    use crate::cost::{MachineProfile, Parallelism, SpeedUp};

    /// Row r costs 10 (r + 1) us on a CPU. On a GPU it costs 5 on the host and 10 on the device, alone or not.
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
            exposed: None,
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
        let mut times = MeasuredTimes::new(&model, NodeSeed::default(), cost);
        assert_eq!(times.start(ProcessorId(1), &[0, 1, 2], Nanos(7)), Nanos(60_007));
        assert_eq!(times.start(ProcessorId(0), &[4], Nanos(7)), Nanos(50_007));
    }

    #[test]
    fn a_lane_that_joins_speeds_up_the_rest_of_the_work() {
        let speed_up = SpeedUp::of_all(vec![1.0, 2.0, 3.0]);
        let parallelism = Some(Arc::new(Parallelism::of(speed_up, vec![Nanos(1)])));
        let model = MachineModel { parallelism, ..model(Machine::new(3, 0)) };
        let mut times = MeasuredTimes::new(&model, NodeSeed::default(), cost);
        let [first, second, third] = [0, 1, 2].map(ProcessorId);
        assert_eq!(times.start(first, &[5], Nanos(0)), Nanos(60_000));
        // 50 us are left at 10 us, then 15 us at 20 us.
        let helpers = [(second, Nanos(10_000)), (third, Nanos(20_000))];
        assert_eq!(times.join(first, 5, &helpers[..1], Nanos(10_000)), Nanos(35_000));
        assert_eq!(times.join(first, 5, &helpers, Nanos(20_000)), Nanos(30_000));
        // The helpers are free with the end.
        assert_eq!(times.start(second, &[0], Nanos(30_000)), Nanos(40_000));
    }

    #[test]
    fn gpu_queries_follow_at_the_observed_spacing() {
        let slowdown = Slowdown { work: 1.4, spacing: 0.5, ..Slowdown::default() };
        let lanes = LaneProfile { slowdown: vec![slowdown], ..LaneProfile::default() };
        let classes = BTreeMap::from([(Class::GPU, lanes)]);
        let profile = MachineProfile::new(BTreeMap::new(), Idle::Spin, classes, DispatcherProfile::default());
        let model = profile.model(&model(Machine::new(1, 0).with_gpus(1, 1, 4)), |_| false);
        let mut times = MeasuredTimes::new(&model, NodeSeed::default(), cost);
        let mut finish = || times.start(GPU, &[0], Nanos::ZERO);
        // A query takes 1.4 times 15 us, and the next one ends half of 15 us later.
        assert_eq!([finish(), finish(), finish()], [21_000, 28_500, 36_000].map(Nanos));
    }

    #[test]
    fn the_host_prepares_while_the_device_runs() {
        let model = model(Machine::new(1, 0).with_gpus(1, 1, 2));
        let mut times = MeasuredTimes::new(&model, NodeSeed::default(), cost);
        // A batch takes 10 us of host and 20 of device. The second is prepared during this time and waits for the device.
        assert_eq!(times.start(GPU, &[0, 1], Nanos(0)), Nanos(30_000));
        assert_eq!(times.start(GPU, &[2, 3], Nanos(0)), Nanos(50_000));
        // After a pause, host and device times add up again.
        assert_eq!(times.start(GPU, &[0], Nanos(100_000)), Nanos(115_000));
    }

    #[test]
    fn whichever_is_longer_sets_the_pace_of_batches_in_a_stream() {
        let mut model = model(Machine::new(1, 0).with_gpus(1, 1, 2));
        if let Some(batches) = &mut model.batches[Class::GPU] {
            batches.host_each_us = 30.0;
            batches.exposed = Some(Exposed { fixed_us: 10.0, each_us: 0.0 });
        }
        let cost = |_, _| Cost { alone: Nanos(100_000), added: Nanos(10_000) };
        let mut times = MeasuredTimes::new(&model, NodeSeed::default(), cost);
        // The thread takes 60 us, 10 of them before the device begins its 20.
        let ends: Vec<u64> = (0..3).map(|_| times.start(GPU, &[0, 1], Nanos(0)).0).collect();
        assert_eq!(ends, [60_000, 120_000, 180_000]);
    }

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

    #[test]
    fn streams_share_their_device_and_gpus_do_not() {
        let start_both = |machine: Machine| {
            let model = model(machine);
            let mut times = MeasuredTimes::new(&model, NodeSeed::default(), cost);
            [GPU, ProcessorId(2)].map(|gpu| times.start(gpu, &[0], Nanos(0)).0)
        };
        assert_eq!(start_both(Machine::new(1, 0).with_gpus(1, 2, 1)), [15_000, 25_000]);
        assert_eq!(start_both(Machine::new(1, 2)), [15_000, 15_000]);
    }

    #[test]
    fn a_failed_lane_repeats_its_batch_on_a_cpu() {
        let fault = |kind, at, lasts| PlannedFault { at: Nanos(at), processor: GPU, kind, lasts: Nanos(lasts) };
        // For batches of one query: finish time, whether it was rerun, and the fault.
        let played = |faults: Vec<PlannedFault>| {
            let faults = FaultPlan::new(faults, Nanos(1_000_000));
            let model = MachineModel { faults, ..model(Machine::new(1, 0).with_gpus(1, 1, 1)) };
            let mut times = MeasuredTimes::new(&model, NodeSeed::default(), cost);
            // Each takes 15 us alone on the GPU, and 10, 20, 30, 40 on a CPU.
            [(0, 0), (1, 15_000), (2, 2_000_000), (3, 4_000_000)].map(|(row, at)| {
                let finish = times.start(GPU, &[row], Nanos(at)).0;
                let rerun = times.take_rerun();
                (finish, rerun.map(|rerun| rerun.fault.map(|fault| (fault.kind, fault.at.0, fault.is_retired))))
            })
        };
        let (well, retired) = (|at: u64| (at + 15_000, None), |finish: u64| (finish, None));
        assert_eq!(played(vec![]), [well(0), well(15_000), well(2_000_000), well(4_000_000)]);
        let told = |finish: u64, kind, at: u64, is_retired| (finish, Some(Some((kind, at, is_retired))));
        for kind in [FaultKind::Error, FaultKind::Panic] {
            let expected = [well(0), told(40_000, kind, 20_000, true), retired(2_030_000), retired(4_040_000)];
            assert_eq!(played(vec![fault(kind, 20_000, 0)]), expected);
        }
        let hangs =
            [well(0), told(1_035_000, FaultKind::Hang, 1_015_000, true), retired(2_030_000), retired(4_040_000)];
        assert_eq!(played(vec![fault(FaultKind::Hang, 20_000, 0)]), hangs);
        // A stall that outlasts the watchdog is a hang; a shorter one only delays a batch under way.
        assert_eq!(played(vec![fault(FaultKind::Stall, 20_000, 2_000_000)]), hangs);
        let held = [well(0), (37_000, None), well(2_000_000), well(4_000_000)];
        assert_eq!(played(vec![fault(FaultKind::Stall, 20_000, 7_000)]), held);
        let idle = [well(0), well(15_000), well(2_000_000), well(4_000_000)];
        assert_eq!(played(vec![fault(FaultKind::Stall, 50_000, 7_000)]), idle);
        // Without memory a batch runs elsewhere and the lane is tried again, three times in a row.
        let memory = |lasts| played(vec![fault(FaultKind::Memory, 10_000, lasts)]);
        let one = told(35_000, FaultKind::Memory, 15_000, false);
        assert_eq!(memory(100_000), [well(0), one, well(2_000_000), well(4_000_000)]);
        let two = told(2_030_000, FaultKind::Memory, 2_000_000, false);
        assert_eq!(memory(9_000_000), [well(0), one, two, told(4_040_000, FaultKind::Memory, 4_000_000, true)]);
    }

    #[test]
    fn what_a_lane_holds_when_it_fails_runs_again_too() {
        let fault = PlannedFault { at: Nanos(5_000), processor: GPU, kind: FaultKind::Error, lasts: Nanos::ZERO };
        let faults = FaultPlan::new(vec![fault], FaultPlan::WATCHDOG);
        let model = MachineModel { faults, ..model(Machine::new(1, 0).with_gpus(1, 1, 2)) };
        let mut times = MeasuredTimes::new(&model, NodeSeed::default(), cost);
        assert_eq!(times.start(GPU, &[0], Nanos(0)), Nanos(15_000));
        assert!(times.take_rerun().unwrap().fault.is_some());
        // The first batch is handed over before the fault, the second after it.
        assert_eq!(times.start(GPU, &[1], Nanos(4_000)), Nanos(35_000));
        assert_eq!(times.take_rerun(), Some(Rerun { fault: None }));
        assert_eq!(times.start(GPU, &[0], Nanos(15_000)), Nanos(45_000));
        assert_eq!(times.take_rerun(), None);
    }

    #[test]
    fn handing_over_takes_its_time() {
        let mut model = model(Machine::new(1, 1));
        model.handoff = PerClass::two(Nanos(3), Nanos(4));
        let mut times = MeasuredTimes::new(&model, NodeSeed::default(), cost);
        assert_eq!(times.start(ProcessorId(0), &[0], Nanos(0)), Nanos(10_003));
        assert_eq!(times.start(GPU, &[0], Nanos(0)), Nanos(15_004));
    }
}
