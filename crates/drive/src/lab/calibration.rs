//! Query costs under load, compared with the cost of each query alone.
//!
//! A profile takes the median of a few runs of each query alone. Live runs are slower: processors and driver share
//! caches and clocks, a rented core may be half a physical core, and the system interrupts. On virtual cores the
//! slowdown was 5 to 40 %, and it drifts within seconds. Each policy therefore serves backlogs of *other* draws from
//! the same queries before its live runs:
//!
//! ```text
//! start ──hand over──┤ worker at work ├──hand back── finish      live time = slowdown x predicted time + hand-off
//! ```
//!
//! The backlogs yield the two constants of this line for each class of processors. Queueing, placement and the
//! sustained rate are left to the simulator.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tandem_model::base::machine::{Class, PerClass};
use tandem_model::base::quantile::nearest_rank;
use tandem_model::base::time::Nanos;
use tandem_model::cost::machine_profile::Speed;
use tandem_model::cost::{BatchLoad, Cost, MachineModel};
use tandem_model::sched::LogRow;
use tandem_model::sim::SimQuery;

use crate::live::LiveOutcome;

/// Parameters that turn the predicted time of a batch into its live time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// For single queries, work time divided by predicted time; 1 for a processor that replays recorded times.
    pub slowdown: PerClass<f64>,
    /// For overlapping batches, device time divided by predicted device time; 1 without such batches.
    pub device: PerClass<f64>,
    /// For overlapping batches, time of the lane's thread divided by its prediction; 1 without such batches.
    pub host: PerClass<f64>,
    /// Time to hand a batch to the worker and its results back.
    pub handoff: PerClass<Nanos>,
    /// Time of the dispatcher per event.
    pub decision: Nanos,
}

impl Default for Calibration {
    /// Queries that cost what was predicted, and a dispatcher that takes no time.
    fn default() -> Self {
        let one = PerClass::from_fn(|_| 1.0);
        Self { slowdown: one, device: one, host: one, handoff: PerClass::default(), decision: Nanos::ZERO }
    }
}

impl Calibration {
    /// The machine with its profile, at the speed that this calibration shows. The profile has the shape: how ratios depend on
    /// busy lanes, batch sizes and idle times. Its level is that of the moment in which it was measured, and machines drift.
    pub(super) fn adapt(&self, model: &MachineModel, queries: &[SimQuery]) -> MachineModel {
        // A class without work in the backlogs did not slow down the others.
        let has_worked = |class: Class| {
            [self.slowdown[class], self.host[class], self.device[class]].iter().any(|&ratio| ratio != 1.0)
        };
        let busy = PerClass::from_fn(|class| if has_worked(class) { model.machine.count(class) as u32 } else { 0 });
        let adapted = |class: Class| {
            let lanes = model.lanes[class].as_ref()?;
            let known = queries.iter().map(|query| query.service[class]).filter(|&cost| cost != Cost::NEVER);
            let (sum, count) = known.fold((0, 0), |(sum, count), cost| (sum + cost.alone.0, count + 1));
            let profiled = lanes.under_load(class, &busy, Nanos(sum / count.max(1)));
            // A ratio of 1 means that there was no such work.
            let speed = |measured: f64, profiled: f64| if measured == 1.0 { 1.0 } else { measured / profiled };
            Some(Arc::new(lanes.at_speed(Speed {
                single: speed(self.slowdown[class], profiled.single),
                host: speed(self.host[class], profiled.host),
                device: speed(self.device[class], profiled.device),
            })))
        };
        MachineModel { lanes: PerClass::from_fn(adapted), ..model.clone() }
    }

    /// The calibration from a run without idle times. `model` predicts batch times from the `costs` of each log row.
    #[must_use]
    pub fn of(outcome: &LiveOutcome, model: &MachineModel, costs: impl Fn(&LogRow) -> PerClass<Cost>) -> Self {
        let mut batches: HashMap<u32, (Class, BatchLoad)> = HashMap::new();
        // Queries on several lanes take less than alone.
        for row in outcome.log.rows.iter().filter(|row| row.lanes == 1) {
            let (_, load) = batches.entry(row.batch).or_insert((row.class, BatchLoad::default()));
            *load = load.with(costs(row)[row.class]);
        }
        let mut work = PerClass::<Sums>::default();
        let mut device = PerClass::<Sums>::default();
        let mut host = PerClass::<Sums>::default();
        for batch in &outcome.served {
            let Some(&(class, load)) = batches.get(&batch.number) else { continue };
            let time = model.batch_time(class, &load);
            // A single query takes another path through the device than its profile, so that only total times compare.
            if batch.overlaps() && load.queries > 1 {
                device[class].add(batch.device, time.device);
                host[class].add(batch.host, time.host);
            } else {
                work[class].add(batch.worked, time.total());
            }
        }
        Self {
            slowdown: PerClass::from_fn(|class| work[class].ratio()),
            device: PerClass::from_fn(|class| device[class].ratio()),
            host: PerClass::from_fn(|class| host[class].ratio()),
            handoff: PerClass::from_fn(|class| outcome.handoff[class].p50),
            decision: undisturbed_decision(outcome),
        }
    }

    /// The median of several calibrations, taken for each number; without any, costs as profiled.
    #[must_use]
    pub fn median(several: &[Self]) -> Self {
        let times = |of: &dyn Fn(&Self) -> f64| {
            let mut sorted: Vec<f64> = several.iter().map(of).collect();
            sorted.sort_by(f64::total_cmp);
            nearest_rank(&sorted, 0.5).unwrap_or(1.0)
        };
        let time = |of: &dyn Fn(&Self) -> Nanos| {
            let mut sorted: Vec<Nanos> = several.iter().map(of).collect();
            sorted.sort_unstable();
            nearest_rank(&sorted, 0.5).unwrap_or_default()
        };
        Self {
            slowdown: PerClass::from_fn(|class| times(&|one| one.slowdown[class])),
            device: PerClass::from_fn(|class| times(&|one| one.device[class])),
            host: PerClass::from_fn(|class| times(&|one| one.host[class])),
            handoff: PerClass::from_fn(|class| time(&|one| one.handoff[class])),
            decision: time(&|one| one.decision),
        }
    }

    /// The slowdown of the slowest part of a class's work.
    #[must_use]
    pub fn slowest(&self, class: Class) -> f64 {
        let times = [self.slowdown[class], self.device[class], self.host[class]];
        times.into_iter().filter(|&times| times != 1.0).reduce(f64::max).unwrap_or(1.0)
    }

    /// The slowdown of the slowest class.
    #[must_use]
    pub fn slowest_of_all(&self) -> f64 {
        Class::ALL.into_iter().map(|class| self.slowest(class)).fold(0.0, f64::max)
    }

    /// The machine model for the simulator.
    #[must_use]
    pub fn model(&self, profiled: &MachineModel) -> MachineModel {
        let batches = PerClass::from_fn(|class| {
            profiled.batches[class].as_ref().map(|batches| batches.slower(self.host[class], self.device[class]))
        });
        MachineModel { handoff: self.handoff, decision: self.decision, batches, ..profiled.clone() }
    }

    /// The query with calibrated costs; its estimates stay unchanged.
    #[must_use]
    pub fn query(&self, profiled: &SimQuery) -> SimQuery {
        SimQuery { service: self.service(&profiled.service), ..*profiled }
    }

    /// The calibrated costs of a query with these profiled costs.
    #[must_use]
    pub fn service(&self, profiled: &PerClass<Cost>) -> PerClass<Cost> {
        PerClass::from_fn(|class| match profiled[class] {
            Cost::NEVER => Cost::NEVER,
            Cost { alone, added } => {
                let slowdown = self.slowdown[class];
                // Without a gain from batches, both costs are equal.
                let added = if added == alone { added.scaled(slowdown) } else { added };
                Cost { alone: alone.scaled(slowdown), added }
            }
        })
    }
}

/// Mean dispatcher time per event without interrupted rounds, which would dominate the mean of a short backlog.
fn undisturbed_decision(outcome: &LiveOutcome) -> Nanos {
    let usual = outcome.rounds.iter().filter(|round| !round.is_disturbed());
    let (time, events) =
        usual.fold((Nanos::ZERO, 0), |sum, round| (sum.0 + round.time, sum.1 + u64::from(round.events())));
    Nanos(time.0 / events.max(1))
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    measured: Nanos,
    predicted: Nanos,
}

impl Sums {
    fn add(&mut self, measured: Nanos, predicted: Nanos) {
        self.measured += measured;
        self.predicted += predicted;
    }

    /// Measured time divided by predicted time; 1 without measurements.
    fn ratio(self) -> f64 {
        let is_known = self.measured > Nanos::ZERO && self.predicted > Nanos::ZERO;
        if is_known { self.measured.as_us() / self.predicted.as_us() } else { 1.0 }
    }
}

/// The kind of run in a [`ServiceRow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceRun {
    /// A backlog that measures current query costs before a live run.
    Backlog,
    /// A live run at a rate.
    Live,
}

impl ServiceRun {
    /// The name in files: `backlog` or `live`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Backlog => "backlog",
            Self::Live => "live",
        }
    }
}

/// The query costs of one run, relative to their profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceRow {
    /// The policy's name.
    pub policy: String,
    /// Time from the start of the first policy to the end of this run.
    pub at: Duration,
    /// The kind of run.
    pub run: ServiceRun,
    /// Arrival rate, in queries per second.
    pub rate_qps: f64,
    /// Number of answered queries.
    pub queries: usize,
    /// Work time divided by the time of the same queries alone.
    pub slowdown: PerClass<f64>,
    /// Time to hand a query over and its results back.
    pub handoff: PerClass<Nanos>,
    /// For overlapping batches, device time divided by predicted device time; else 1.
    pub device: PerClass<f64>,
    /// For overlapping batches, time of the lane's thread divided by its prediction; else 1.
    pub host: PerClass<f64>,
    /// Time of the dispatcher per event.
    pub decision: Nanos,
}

impl ServiceRow {
    /// The row of a run that answered `queries` queries at this rate.
    pub(super) fn of(
        policy: &str,
        at: Duration,
        (run, rate_qps): (ServiceRun, f64),
        queries: usize,
        found: &Calibration,
    ) -> Self {
        let Calibration { slowdown, device, host, handoff, decision } = *found;
        Self { policy: policy.to_owned(), at, run, rate_qps, queries, slowdown, handoff, device, host, decision }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::live::{Ending, Round, ServedBatch, Spread};
    use tandem_model::base::ids::{JobId, ProcessorId, QueryId};
    use tandem_model::base::machine::{Idle, Machine};
    use tandem_model::cost::machine_profile::{Beside, DispatcherProfile, LaneProfile, Slowdown};
    use tandem_model::cost::{BatchCost, BatchTime, Exposed, MachineProfile};
    use tandem_model::sched::RunLog;

    fn row(query: u32, class: Class, batch: u32, started: u64, finished: u64) -> LogRow {
        LogRow {
            job: JobId(query),
            query: QueryId(query),
            arrival: Nanos::ZERO,
            released: Nanos::ZERO,
            started: Nanos(started),
            finished: Nanos(finished),
            processor: ProcessorId(0),
            class,
            batch,
            deadline: Nanos::MAX,
            priority: 0,
            predicted: PerClass::default(),
            stolen: false,
            again: false,
            lanes: 1,
            helped: Nanos::ZERO,
        }
    }

    #[test]
    fn a_profile_keeps_its_shape_and_takes_the_level_of_backlogs() {
        let slowdown = |busy, work| Slowdown { busy, work, ..Slowdown::default() };
        // Work takes twice as long while the GPU is busy.
        let of_class = LaneProfile {
            slowdown: vec![slowdown(1, 0.8), slowdown(2, 1.6)],
            beside: BTreeMap::from([(Class::GPU, Beside { lanes: 1, work: 2.0, device: 1.0 })]),
            ..LaneProfile::default()
        };
        let classes = BTreeMap::from([(Class::CPU, of_class)]);
        let profile = MachineProfile::new(BTreeMap::new(), Idle::Spin, classes, DispatcherProfile::default());
        let model = profile.model(&Machine::new(2, 1).into(), |_| false);
        let cost = PerClass::two(Cost::alone(Nanos(1000)), Cost::NEVER);
        let queries = [SimQuery { id: QueryId(0), service: cost, estimate: cost }];
        // Two busy lanes took 1.6 times as long as alone when the machine was profiled, and 0.8 times now.
        let backlogs = Calibration { slowdown: PerClass::two(0.8, 1.0), ..Calibration::default() };
        let least =
            |backlogs: Calibration| backlogs.adapt(&model, &queries).lanes[Class::CPU].as_ref().unwrap().least().single;
        assert_eq!(least(backlogs), 0.4);
        // If the GPU was busy meanwhile, the CPU alone is faster by as much.
        assert_eq!(least(Calibration { device: PerClass::two(1.0, 1.1), ..backlogs }), 0.2);
        assert_eq!(Calibration::default().adapt(&model, &queries), model);
    }

    #[test]
    fn work_and_hand_over_are_told_apart_and_a_batch_counts_once() {
        // One batch has two queries of 1000 ns and works 2600 of 3000 ns; another batch is replayed.
        let rows =
            vec![row(0, Class::CPU, 0, 0, 3000), row(1, Class::CPU, 0, 0, 3000), row(2, Class::GPU, 1, 100, 640)];
        let spread = |ns| Spread { p50: Nanos(ns), ..Spread::default() };
        let outcome = LiveOutcome {
            course: Default::default(),
            log: RunLog { rows, ..RunLog::default() },
            ending: Ending::Complete,
            lag: Spread::default(),
            decision: Spread { p99: Nanos(200), ..Spread::default() },
            served: vec![ServedBatch { number: 0, worked: Nanos(2600), ..ServedBatch::default() }],
            // The first round takes 120 ns per event; the second has an interrupt.
            rounds: vec![
                Round { arrivals: 1, batches: 1, answers: 1, time: Nanos(240) },
                Round { arrivals: 1, time: Nanos(90_000), ..Round::default() },
            ],
            handoff: PerClass::two(spread(400), Spread::default()),
            worked: PerClass::two(Nanos(2600), Nanos::ZERO),
            driver_time: std::time::Duration::ZERO,
            unreleased: 0,
            unfinished: 0,
        };
        let costs = PerClass::two(Cost::alone(Nanos(1000)), Cost::alone(Nanos(500)));
        let found = Calibration::of(&outcome, &Machine::new(1, 1).into(), |_| costs);
        assert_eq!((found.slowdown[Class::CPU], found.slowdown[Class::GPU]), (1.3, 1.0));
        assert_eq!((found.handoff[Class::CPU], found.decision), (Nanos(400), Nanos(120)));
        assert_eq!(found.service(&costs)[Class::CPU], Cost::alone(Nanos(1300)));
        // The batch of two keeps the device busy for 540 ns instead of 500, and its thread for 700 instead of 350.
        let batches = BatchCost {
            host_fixed_us: 0.35,
            exposed: Some(Exposed::default()),
            crowding: vec![(1, 1.0)],
            ..BatchCost::default()
        };
        let model = MachineModel { batches: PerClass::two(None, Some(batches)), ..Machine::new(1, 1).into() };
        let overlapping = ServedBatch {
            number: 1,
            worked: Nanos(700),
            host: Nanos(700),
            device: Nanos(540),
            ..ServedBatch::default()
        };
        let together = vec![row(2, Class::GPU, 1, 100, 640), row(3, Class::GPU, 1, 100, 640)];
        let outcome =
            LiveOutcome { served: vec![overlapping], log: RunLog { rows: together, ..RunLog::default() }, ..outcome };
        let shared = PerClass::two(Cost::NEVER, Cost { alone: Nanos(500), added: Nanos(250) });
        let found_there = Calibration::of(&outcome, &model, |_| shared);
        let gpu = Class::GPU;
        assert_eq!((found_there.slowdown[gpu], found_there.device[gpu], found_there.host[gpu]), (1.0, 1.08, 2.0));
        let simulated = found_there.model(&model);
        let load = BatchLoad::default().with(shared[gpu]).with(shared[gpu]);
        assert_eq!(
            simulated.batch_time(gpu, &load),
            BatchTime { host: Nanos(700), exposed: Nanos::ZERO, device: Nanos(540) }
        );
        let disturbed = Calibration { slowdown: PerClass::from_fn(|_| 9.0), ..found };
        assert_eq!(Calibration::median(&[found, disturbed, found]), found);
    }
}
