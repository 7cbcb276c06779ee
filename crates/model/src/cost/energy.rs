//! The energy of a run's GPUs.

use std::collections::HashMap;

use super::machine_profile::Power;
use super::{Cost, MachineModel};
use crate::base::ids::{ProcessorId, QueryId};
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;

/// Adds up the energy of a run's GPUs: idle power all the time, and what queries need beyond it.
///
/// The energy of a query depends on the size of its batch and not on the time between batches. Busy power for the time of a
/// batch would count a device that waits for its lane's thread as busy. It is in proportion to the time that the query adds to a
/// large batch, since a policy may leave the short queries to CPU workers.
#[derive(Clone, Debug)]
pub struct EnergyMeter {
    power: PerClass<Option<Power>>,
    classes: Vec<Class>,
    devices: PerClass<usize>,
    /// By query and class, the time that it adds to a large batch, relative to the mean.
    weights: HashMap<QueryId, PerClass<f64>>,
    /// The batch whose rows come in: its class, its queries so far and the sum of their weights.
    batch: (Class, u32, f64),
    joules: f64,
}

impl EnergyMeter {
    /// A meter for the GPUs of a machine and these queries with their costs; `None` without GPUs, or if the energy of queries
    /// on one of them is unknown.
    #[must_use]
    pub fn new(
        model: &MachineModel,
        queries: impl ExactSizeIterator<Item = (QueryId, PerClass<Cost>)> + Clone,
    ) -> Option<Self> {
        let power = PerClass::from_fn(|class| {
            model.lanes[class].as_ref()?.power().filter(|power| !power.query_mj.is_empty()).cloned()
        });
        let mut gpus = model.machine.classes().filter(|class| class.is_gpu()).peekable();
        gpus.peek()?;
        if !gpus.all(|class| power[class].is_some()) {
            return None;
        }
        let added =
            |class: Class, cost: &PerClass<Cost>| if class.is_gpu() { cost[class].added.as_secs() } else { 0.0 };
        let count = queries.len() as f64;
        let means =
            PerClass::from_fn(|class| queries.clone().map(|(_, cost)| added(class, &cost)).sum::<f64>() / count);
        let weight =
            |class, cost: &PerClass<Cost>| if means[class] > 0.0 { added(class, cost) / means[class] } else { 1.0 };
        Some(Self {
            power,
            weights: queries.map(|(id, cost)| (id, PerClass::from_fn(|class| weight(class, &cost)))).collect(),
            classes: model.machine.processors().map(|(_, lane)| lane.class).collect(),
            devices: PerClass::from_fn(|class| model.machine.num_devices(class)),
            batch: (Class::CPU, 0, 0.0),
            joules: 0.0,
        })
    }

    /// Starts a batch on a lane with its first query.
    pub fn begin(&mut self, lane: ProcessorId, query: QueryId) {
        self.end();
        self.batch = (self.classes.get(lane.index()).copied().unwrap_or(Class::CPU), 0, 0.0);
        self.add(query);
    }

    /// Adds a query to the batch.
    pub fn add(&mut self, query: QueryId) {
        let (class, queries, weight) = &mut self.batch;
        if class.is_gpu() {
            *queries += 1;
            *weight += self.weights.get(&query).map_or(1.0, |weights| weights[*class]);
        }
    }

    fn end(&mut self) {
        let (class, queries, weight) = self.batch;
        if let Some(power) = &self.power[class]
            && queries > 0
        {
            self.joules += weight * power.query_joules(queries);
        }
        self.batch = (class, 0, 0.0);
    }

    /// The energy of all GPUs in a run of this duration, in joules.
    #[must_use]
    pub fn joules(mut self, span: Nanos) -> f64 {
        self.end();
        let idle = |(class, power): (Class, &Option<Power>)| {
            power.as_ref().map_or(0.0, |power| power.idle_watts * self.devices[class] as f64)
        };
        self.joules + self.power.iter().map(idle).sum::<f64>() * span.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::machine::Machine;
    use crate::cost::machine_profile::{LaneCosts, LaneProfile};

    #[test]
    fn energy_is_idle_power_times_time_and_that_of_queries_by_batch() {
        let query_mj = vec![(1, 2.0), (16, 1.0)];
        let power = Power { idle_watts: 100.0, busy_watts: vec![(1, 200.0), (16, 400.0)], query_mj };
        assert_eq!([0, 1, 16, 99].map(|queries| 1e3 * power.query_joules(queries)), [2.0, 2.0, 1.0, 1.0]);
        assert!((power.query_joules(4) - 1.5e-3).abs() < 1e-12);
        let model = |machine: Machine, power: &Power| {
            let lanes = LaneCosts::new(&LaneProfile { power: Some(power.clone()), ..LaneProfile::default() });
            let lanes = PerClass::from_fn(|class| class.is_gpu().then(|| Arc::new(lanes.clone())));
            MachineModel { lanes, ..machine.into() }
        };
        // Two queries, of which one adds three times as much as the other.
        let cost = |us| Cost { alone: Nanos::from_us(50.0), added: Nanos::from_us(us) };
        let costs =
            [5.0, 15.0].map(|us| PerClass::from_fn(|class| if class.is_gpu() { cost(us) } else { Cost::NEVER }));
        let queries = || (0..2).map(|id| (QueryId(id), costs[id as usize]));
        let meter = |model: &MachineModel| EnergyMeter::new(model, queries());
        assert!(meter(&Machine::new(1, 1).into()).is_none());
        assert!(meter(&model(Machine::new(2, 0), &power)).is_none());
        let of_earlier_versions = Power { query_mj: Vec::new(), ..power.clone() };
        assert!(meter(&model(Machine::new(1, 1), &of_earlier_versions)).is_none());
        // One CPU worker, and two streams of one GPU.
        let mut meter = meter(&model(Machine::new(1, 0).with_gpus(1, 2, 1), &power)).unwrap();
        for (lane, queries) in [(0, 1), (1, 16), (2, 4), (0, 3), (1, 1)] {
            meter.begin(ProcessorId(lane), QueryId(0));
            (1..queries).for_each(|of| meter.add(QueryId(of % 2)));
        }
        // By hand: 10 s at 100 W, and beyond that 16 queries of 1 mJ, 4 of 1.5 mJ and one of 2 mJ, which is the shorter one.
        assert!((meter.joules(Nanos::from_ms(10_000.0)) - (1000.0 + 0.016 + 0.006 + 0.001)).abs() < 1e-9);
    }
}
