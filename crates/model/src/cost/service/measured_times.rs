//! Service times from measured queries and a fitted machine.

use super::pipeline::LaneClock;
use super::profiled::Profiled;
use super::{Cost, MachineModel, Preparing, Rerun, ServiceTimes};
use crate::base::ids::ProcessorId;
use crate::base::machine::{Class, FaultKind, LaneFault, PATIENCE, PlannedFault, Processor};
use crate::base::random::NodeSeed;
use crate::base::time::Nanos;

/// Service times from costs measured alone, with pipelines, shared devices, batches, and planned faults.
#[derive(Clone, Debug)]
pub struct MeasuredTimes<'a, F> {
    times: Profiled<'a, F>,
    /// Planned faults that may still come, in order of time.
    faults: Vec<PlannedFault>,
    /// Whether the last started batch is rerun; `preparing` says how long its thread prepares it.
    rerun: Option<Rerun>,
    /// Whether nothing can fail and there is no machine profile. Most runs are so, and this case is fastest.
    is_exact: bool,
}

impl<F: Fn(u32, Class) -> Cost> ServiceTimes for MeasuredTimes<'_, F> {
    #[inline]
    fn start(&mut self, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos {
        let class = self.model().machine.class(processor);
        if self.is_exact {
            return self.times.pipeline.start(processor, class, rows, now);
        }
        if self.faults.is_empty() && self.times.pipeline.lanes[processor.index()].retired_at.is_none() {
            return self.times.start(processor, class, rows, now);
        }
        self.start_or_fail(processor, rows, now)
    }

    fn join(&mut self, lead: ProcessorId, row: u32, helpers: &[(ProcessorId, Nanos)], now: Nanos) -> Nanos {
        self.times.pipeline.join(lead, row, helpers, now)
    }

    #[inline]
    fn take_rerun(&mut self) -> Option<Rerun> {
        self.rerun.take()
    }

    #[inline]
    fn take_preparing(&mut self) -> Option<Preparing> {
        self.times.preparing.take()
    }
}

impl<'a, F: Fn(u32, Class) -> Cost> MeasuredTimes<'a, F> {
    /// An idle machine; `cost` gives the cost of a workload row's query on a class. Each lane draws from a stream of `seed`.
    #[must_use]
    pub fn new(model: &'a MachineModel, seed: NodeSeed, cost: F) -> Self {
        let times = Profiled::new(model, seed, cost);
        Self { times, faults: model.faults.faults.clone(), rerun: None, is_exact: model.is_exact() }
    }

    #[inline]
    fn model(&self) -> &'a MachineModel {
        self.times.pipeline.model
    }

    /// Starts a batch as [`ServiceTimes::start`], with planned faults, by the same [rule](crate::base::machine::FaultPlan) as
    /// live lanes.
    ///
    /// A batch that a lane loses is rerun on a replacement CPU, query after query, once the fault is noticed: at once, or by
    /// the watchdog. A stall delays the batch under way, and has no effect on an idle lane. Memory is requested when a batch
    /// is handed over.
    #[cold]
    fn start_or_fail(&mut self, processor: ProcessorId, rows: &[u32], now: Nanos) -> Nanos {
        let Processor { class, device, .. } = self.model().machine.processor(processor);
        let before = self.times.pipeline.lanes[processor.index()];
        if let Some(retired_at) = before.retired_at {
            // Batches handed over before are lost with the failed one.
            self.rerun = (now < retired_at).then_some(Rerun { fault: None });
            return self.times.start(processor, Class::CPU, rows, now);
        }
        let device_before = self.times.pipeline.devices[class][device.index()];
        let begin = now.max(before.done);
        let finish = self.times.start(processor, class, rows, now);
        match self.meet_faults(processor, now, begin, finish) {
            Ok(finish) => {
                self.times.pipeline.lanes[processor.index()].without_memory = 0;
                finish
            }
            Err((kind, noticed)) => {
                self.times.pipeline.devices[class][device.index()] = device_before;
                self.times.preparing = None;
                self.lose(processor, before, rows.len(), kind, noticed);
                self.times.start(processor, Class::CPU, rows, noticed)
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
        let barks_at = begin + self.model().faults.watchdog;
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
                    let lane = &mut self.times.pipeline.lanes[processor.index()];
                    (lane.done, lane.host_free, lane.finish) = (finish, finish, finish);
                }
            }
        }
    }

    /// Resets a lane to its state `before` a lost batch of `queries` queries, and notes the outcome of both.
    fn lose(&mut self, processor: ProcessorId, before: LaneClock, queries: usize, kind: FaultKind, noticed: Nanos) {
        let without_memory = before.without_memory + u32::from(kind == FaultKind::Memory);
        let is_retired = kind != FaultKind::Memory || without_memory >= PATIENCE;
        self.times.pipeline.lanes[processor.index()] = LaneClock {
            done: noticed,
            host_free: noticed,
            finish: noticed,
            retired_at: is_retired.then_some(noticed),
            without_memory,
        };
        let what = String::from("as planned");
        let fault = LaneFault { processor, at: noticed, kind, queries, is_retired, what };
        self.rerun = Some(Rerun { fault: Some(fault) });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::base::machine::{FaultPlan, Idle, Machine, PerClass};
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
