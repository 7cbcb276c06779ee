//! Random runs, as plain data that a test can spell out.

use tandem::base::ids::{DeviceId, ProcessorId, QueryId};
use tandem::base::machine::{Class, FaultKind, FaultPlan, Machine, PerClass, PlannedFault, Processor};
use tandem::base::random::Random;
use tandem::base::time::Nanos;
use tandem::cost::{BatchCost, Cost, MachineModel};
use tandem::sched::{PolicyKind, PolicyOptions, Shed, StealGuard};
use tandem::sim::{Arrivals, Cluster, ClusterShape, Routing, ShardCosts, SimQuery};
use tandem::traffic::{ArrivalProcess, Burstiness};

use crate::machines::on_profile;

/// The classes of lanes, in the order of the costs.
const CLASSES: [Class; 3] = [Class::CPU, Class::GPU, Class::CPU2];

/// A run with all of its inputs. Times are in nanoseconds. Lists of one element stand for options, so that the text of
/// `Debug` is nearly Rust.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Seed of noise and of random choices.
    pub seed: u64,
    pub policy: PolicyKind,
    pub options: PolicyOptions,
    /// Class (an index of [`CLASSES`]), device, stream and depth.
    pub lanes: Vec<(usize, u32, u32, u32)>,
    /// Fixed host time, host time per query, longest share, crowding and most queries of a GPU's batches.
    pub batches: Vec<(f64, f64, f64, f64, u32)>,
    /// A machine profile: variation of the lanes in permille.
    pub profile: Vec<u32>,
    pub handoff: u64,
    pub decision: u64,
    /// Time, lane, kind and duration.
    pub faults: Vec<(u64, usize, FaultKind, u64)>,
    pub watchdog: u64,
    /// By query: for each class alone and added, then the same of the estimates.
    pub costs: Vec<Vec<(u64, u64)>>,
    /// Time and query.
    pub arrivals: Vec<(u64, u32)>,
    pub deadline: u64,
    /// In percent; 100 stands for no miss.
    pub objective: f64,
    pub shards: usize,
    pub replicas: usize,
    pub routing: Routing,
}

/// The source of all draws of a scenario.
struct Dice(Random);

impl Dice {
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + (self.0.unit() * (high - low) as f64) as u64
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.below(all.len() as u32) as usize]
    }

    fn real(&mut self, low: f64, high: f64) -> f64 {
        low + self.0.unit() * (high - low)
    }

    fn is(&mut self, share: f64) -> bool {
        self.0.unit() < share
    }

    /// A cost alone and added to a batch. Small whole microseconds make ties.
    fn cost(&mut self, has_ties: bool) -> (u64, u64) {
        let alone = if has_ties { 1000 * self.between(1, 30) } else { self.between(0, 2_000_000) };
        let added = if has_ties { alone / self.between(1, 3) } else { (alone as f64 * self.0.unit()) as u64 };
        (alone, added)
    }

    fn options(&mut self) -> PolicyOptions {
        let usual = PolicyOptions::default();
        if self.is(0.3) {
            return usual;
        }
        PolicyOptions {
            threshold_ratio: self.real(1.0, 4.0),
            urgent_share: self.real(0.0, 1.0),
            cost_weight: self.real(0.0, 20.0),
            deadline_weight: self.real(0.0, 3.0),
            affinity_weight: self.real(0.0, 3.0),
            steal_guard: self.one_of(&StealGuard::ALL),
            batch_limit: self.between(1, 50) as u32,
            batch_share: self.real(0.01, 1.0),
            window_us: self.real(0.0, 2000.0),
            window_queries: self.between(1, 50) as u32,
            length_threshold: self.between(0, 2) as u32,
            patience: self.between(0, 8) as u32,
            shed: if self.is(0.3) { Shed::Late } else { Shed::Nothing },
        }
    }

    /// CPU workers, perhaps of two kinds, and GPUs of one or two streams.
    fn lanes(&mut self) -> Vec<(usize, u32, u32, u32)> {
        let cpus = self.between(0, 4) as u32;
        let gpus = self.between(u64::from(cpus == 0), 3) as u32;
        let second = if self.is(0.25) { self.between(1, 3) as u32 } else { 0 };
        let (streams, depth) = (self.between(1, 3) as u32, self.between(1, 5) as u32);
        let mut lanes: Vec<_> = (0..cpus).map(|stream| (0, 0, stream, 1)).collect();
        lanes.extend((0..gpus).flat_map(|device| (0..streams).map(move |stream| (1, device, stream, depth))));
        lanes.extend((0..second).map(|stream| (2, 0, stream, 1)));
        lanes
    }

    fn process(&mut self) -> ArrivalProcess {
        match self.between(0, 3) {
            0 => ArrivalProcess::Poisson,
            1 => ArrivalProcess::Uniform,
            _ => {
                let (ratio, share, seconds) = (self.real(1.0, 10.0), self.real(0.05, 0.95), self.real(1e-4, 0.01));
                ArrivalProcess::Bursty(Burstiness::new(ratio, share, seconds).expect("all are in range"))
            }
        }
    }
}

impl Scenario {
    /// The scenario of a seed.
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice(Random::new(seed, 34));
        let has_ties = dice.is(0.5);
        let lanes = dice.lanes();
        let policy = dice.one_of(&PolicyKind::ALL);
        let num_queries = dice.between(1, 8) as usize;
        let costs: Vec<Vec<(u64, u64)>> = (0..num_queries)
            .map(|_| {
                let service: Vec<_> = (0..3).map(|_| dice.cost(has_ties)).collect();
                // Estimates are right or of another query.
                let estimate =
                    if dice.is(0.5) { service.clone() } else { (0..3).map(|_| dice.cost(has_ties)).collect() };
                [service, estimate].concat()
            })
            .collect();
        let mean = if has_ties { 15_000.0 } else { 1e6 };
        let rate_qps = lanes.len() as f64 * 1e9 / mean * dice.real(0.1, 3.0);
        let count = if dice.is(0.1) { dice.between(0, 4) } else { dice.between(1, 120) };
        let drawn = Arrivals::drawn(&dice.process(), seed, count as usize, num_queries);
        let step = if has_ties { 1000 } else { 1 };
        let arrivals: Vec<(u64, u32)> = drawn.at_rate(rate_qps).map(|(at, row)| (at.0 / step * step, row)).collect();
        let end = arrivals.last().map_or(1, |last| last.0 + 1);
        let faults = if dice.is(0.3) { dice.between(1, 4) } else { 0 };
        let faults = (0..faults).map(|_| {
            let (at, lane) = (dice.between(0, end), dice.between(0, lanes.len() as u64) as usize);
            let kind = dice.one_of(&FaultKind::ALL);
            (at, lane, kind, if kind.passes() { dice.between(1, 3 * mean as u64) } else { 0 })
        });
        let faults = faults.collect();
        let has_batches = dice.is(0.6);
        let batches = (dice.real(0.0, 5.0), dice.real(0.0, 1.0), dice.real(0.0, 1.0), dice.real(1.0, 20.0), 0);
        let most_queries = dice.between(2, 40) as u32;
        let overhead = |dice: &mut Dice| if dice.is(0.5) { 0 } else { dice.between(0, mean as u64 / 5) };
        let (has_profile, spread) = (dice.is(0.15), dice.between(0, 500) as u32);
        Self {
            seed,
            policy,
            options: dice.options(),
            lanes,
            batches: if has_batches {
                vec![(batches.0, batches.1, batches.2, batches.3, most_queries)]
            } else {
                vec![]
            },
            profile: if has_profile { vec![spread] } else { vec![] },
            handoff: overhead(&mut dice),
            decision: overhead(&mut dice),
            faults,
            watchdog: dice.between(mean as u64, 20 * mean as u64),
            costs,
            arrivals,
            deadline: dice.between(1, 20 * mean as u64),
            objective: dice.one_of(&[50.0, 90.0, 99.0, 99.9, 100.0]),
            shards: dice.one_of(&[1, 1, 2, 5]),
            replicas: dice.one_of(&[1, 1, 2, 3]),
            routing: dice.one_of(&Routing::ALL),
        }
    }

    /// The machine, or `None` if it has no lanes.
    pub fn model(&self) -> MachineModel {
        let lane = |&(class, device, stream, depth): &(usize, u32, u32, u32)| Processor {
            class: CLASSES[class],
            device: DeviceId(device),
            stream,
            depth,
        };
        let machine = self.lanes.iter().map(lane).fold(Machine::default(), Machine::with);
        let batches = self.batches.first().map(|&(host_fixed_us, host_each_us, longest, crowding, most_queries)| {
            let crowding = vec![(2, crowding), (most_queries.max(3), 1.0)];
            BatchCost { host_fixed_us, host_each_us, longest, crowding, most_queries, ..BatchCost::default() }
        });
        let fault = |&(at, lane, kind, lasts): &(u64, usize, FaultKind, u64)| PlannedFault {
            at: Nanos(at),
            processor: ProcessorId(lane as u32),
            kind,
            lasts: Nanos(lasts),
        };
        let model = MachineModel {
            batches: PerClass::two(None, batches),
            handoff: PerClass::from_fn(|_| Nanos(self.handoff)),
            decision: Nanos(self.decision),
            faults: FaultPlan::new(self.faults.iter().map(fault).collect(), Nanos(self.watchdog)),
            ..machine.into()
        };
        match self.profile[..] {
            [spread] => on_profile(&model, spread),
            _ => model,
        }
    }

    /// The workload. A failed lane's fallback is a CPU, so that every query has a CPU's costs.
    pub fn queries(&self, machine: &Machine) -> Vec<SimQuery> {
        let query = |(id, costs): (u32, &Vec<(u64, u64)>)| {
            let of = |first: usize, class: Class| {
                let at = CLASSES.iter().position(|&of| of == class);
                let cost = at.map(|at| costs[first + at]);
                cost.map_or(Cost::NEVER, |(alone, added)| Cost { alone: Nanos(alone), added: Nanos(added) })
            };
            let is_there = |class| machine.count(class) > 0;
            let service =
                PerClass::from_fn(
                    |class| if is_there(class) || class == Class::CPU { of(0, class) } else { Cost::NEVER },
                );
            let estimate = PerClass::from_fn(|class| if is_there(class) { of(3, class) } else { Cost::NEVER });
            SimQuery { id: QueryId(id), service, estimate }
        };
        (0..).zip(&self.costs).map(query).collect()
    }

    pub fn cluster(&self, queries: &[SimQuery]) -> Cluster {
        let Self { shards, replicas, routing, .. } = *self;
        Cluster::new(ClusterShape { shards, replicas, routing, costs: ShardCosts::Alike(0.0) }, queries)
    }

    /// A test of this scenario, as Rust.
    pub fn as_test(&self) -> String {
        let fields = format!("{self:#?}").replace('[', "vec![").replace('\n', "\n    ");
        format!(
            "#[test]\nfn seed_{}() {{\n    use tandem::base::machine::FaultKind::*;\n    use tandem::sched::PolicyKind::*;\n    \
             use tandem::sched::PolicyOptions;
             use tandem::sched::Shed::*;
             use tandem::sched::StealGuard::*;\n    use tandem::sim::Routing::*;\n    \
             let scenario = {fields};\n    assert_eq!(check(&scenario), Ok(()));\n}}\n",
            self.seed
        )
    }
}
