//! Power of devices by batch size, and the energy of a simulated run.

use serde::{Deserialize, Serialize};

use super::lanes::interpolated;
use crate::base::ids::ProcessorId;
use crate::base::machine::{Class, PerClass};
use crate::base::random::ln;
use crate::base::time::Nanos;
use crate::cost::MachineModel;

/// Power of each device of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Power without work, in watts.
    pub idle_watts: f64,
    /// Power without pauses: queries of a batch, ascending, and watts. It is interpolated over the logarithm of the queries.
    pub busy_watts: Vec<(u32, f64)>,
}

impl Power {
    /// The power of a device that runs batches of this number of queries, in watts.
    #[must_use]
    pub fn busy(&self, queries: u32) -> f64 {
        let points = self.busy_watts.iter().map(|&(queries, watts)| (ln(queries.into()), watts));
        interpolated(points, ln(queries.into())).unwrap_or(self.idle_watts)
    }
}

/// Adds up the energy of a run's GPUs: idle power all the time, and what batches need beyond it.
#[derive(Clone, Debug)]
pub struct EnergyMeter {
    power: PerClass<Option<Power>>,
    /// By processor, its class and device.
    places: Vec<(Class, usize)>,
    /// By class and device, the end of its busy time so far.
    busy_until: PerClass<Vec<Nanos>>,
    /// The batch whose rows come in: its class, the time that it adds to its device's busy time, and its queries so far.
    batch: (Class, Nanos, u32),
    joules: f64,
}

impl EnergyMeter {
    /// A meter for the GPUs of a machine; `None` without GPUs, or if the power of one of them is unknown.
    #[must_use]
    pub fn new(model: &MachineModel) -> Option<Self> {
        let power = PerClass::from_fn(|class| model.lanes[class].as_ref()?.power().cloned());
        let mut gpus = model.machine.classes().filter(|class| class.is_gpu()).peekable();
        gpus.peek()?;
        gpus.all(|class| power[class].is_some()).then(|| Self {
            power,
            places: model.machine.processors().map(|(_, lane)| (lane.class, lane.device.index())).collect(),
            busy_until: PerClass::from_fn(|class| vec![Nanos::ZERO; model.machine.num_devices(class)]),
            batch: (Class::CPU, Nanos::ZERO, 0),
            joules: 0.0,
        })
    }

    /// Starts a batch, whose first query is counted. Lanes that share a device overlap.
    pub fn begin(&mut self, lane: ProcessorId, started: Nanos, finished: Nanos) {
        self.end();
        let Some(&(class, device)) = self.places.get(lane.index()) else { return };
        let busy_until = &mut self.busy_until[class][device];
        self.batch = (class, finished.since(started.max(*busy_until)), 1);
        *busy_until = finished.max(*busy_until);
    }

    /// Adds a query to the batch.
    pub fn add(&mut self) {
        self.batch.2 += 1;
    }

    fn end(&mut self) {
        let (class, busy, queries) = self.batch;
        if let Some(power) = &self.power[class] {
            self.joules += (power.busy(queries.max(1)) - power.idle_watts) * busy.as_secs();
        }
        self.batch.1 = Nanos::ZERO;
    }

    /// The energy of all GPUs in a run of this duration, in joules.
    #[must_use]
    pub fn joules(mut self, span: Nanos) -> f64 {
        self.end();
        let idle = |(class, power): (Class, &Option<Power>)| {
            power.as_ref().map_or(0.0, |power| power.idle_watts * self.busy_until[class].len() as f64)
        };
        self.joules + self.power.iter().map(idle).sum::<f64>() * span.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{LaneCosts, LaneProfile};
    use super::*;
    use crate::base::machine::Machine;

    #[test]
    fn energy_is_idle_power_times_time_and_busy_energy_by_batch() {
        let power = Power { idle_watts: 100.0, busy_watts: vec![(1, 200.0), (16, 400.0)] };
        assert_eq!([0, 1, 16, 99].map(|queries| power.busy(queries)), [200.0, 200.0, 400.0, 400.0]);
        assert!((power.busy(4) - 300.0).abs() < 1e-9);
        let lanes = LaneCosts::new(&LaneProfile { power: Some(power), ..LaneProfile::default() });
        let model = |machine: Machine| {
            let lanes = PerClass::from_fn(|class| class.is_gpu().then(|| Arc::new(lanes.clone())));
            MachineModel { lanes, ..machine.into() }
        };
        assert!(EnergyMeter::new(&Machine::new(1, 1).into()).is_none());
        assert!(EnergyMeter::new(&model(Machine::new(2, 0))).is_none());
        // One CPU worker, and two streams of one GPU.
        let mut meter = EnergyMeter::new(&model(Machine::new(1, 0).with_gpus(1, 2, 1))).unwrap();
        let mut batch = |lane, started_ms: f64, finished_ms: f64, queries| {
            meter.begin(ProcessorId(lane), Nanos::from_ms(started_ms), Nanos::from_ms(finished_ms));
            (1..queries).for_each(|_| meter.add());
        };
        batch(0, 0.0, 5000.0, 1);
        batch(1, 1000.0, 3000.0, 16);
        // Of its 3 s, the device was busy for 1 s before.
        batch(2, 2000.0, 5000.0, 4);
        batch(1, 6000.0, 7000.0, 1);
        // By hand: 10 s at 100 W, and beyond that 2 s at 300 W, 2 s at 200 W and 1 s at 100 W.
        assert!((meter.joules(Nanos::from_ms(10_000.0)) - (1000.0 + 600.0 + 400.0 + 100.0)).abs() < 1e-6);
    }
}
