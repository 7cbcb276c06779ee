//! A machine with all known costs beyond those of single queries.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{BatchCost, BatchLoad, BatchTime, Cost};
use crate::base::ids::ProcessorId;
use crate::base::machine::{Class, FaultPlan, Machine, PerClass};
use crate::base::random::{NodeSeed, Purpose, exp};
use crate::base::time::Nanos;
use crate::cost::Parallelism;
use crate::cost::machine_profile::{Decisions, DispatcherProfile, LaneCosts, Least, MachineProfile};

/// The costs of a machine that a scheduler may know before a run, and that the simulator uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineModel {
    /// The processors.
    pub machine: Machine,
    /// Costs of batches on each class; `None` where queries of a batch run one after another.
    pub batches: PerClass<Option<BatchCost>>,
    /// Hand-over time: from the dispatcher's start of a batch until its work begins, plus from its end until the dispatcher
    /// notices.
    pub handoff: PerClass<Nanos>,
    /// The dispatcher's time per event: an arrival or an answered query, alone or in a batch.
    pub decision: Nanos,
    /// Further service costs by class, from a [machine profile](crate::cost::MachineProfile). They replace `handoff`.
    pub lanes: PerClass<Option<Arc<LaneCosts>>>,
    /// The dispatcher's costs from a machine profile. They replace `decision`.
    pub dispatcher: Option<Arc<DispatcherProfile>>,
    /// The speed-up of queries on several CPU lanes; `None` where it was not measured, so that further lanes gain nothing.
    pub parallelism: Option<Arc<Parallelism>>,
    /// Planned faults of a run, unknown to policies.
    pub faults: FaultPlan,
    /// By class, the standard deviation of the logarithm of the batch time that policies [see](Self::as_told) over the true
    /// one. It is the error of the formula in `batches`, and 0 where policies know the true times.
    pub batch_error: PerClass<f64>,
}

/// The allowed sizes of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSizes {
    /// Any number of queries.
    Any,
    /// Single queries only.
    One,
}

/// The least resources of a class that a query needs under any schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeastUse {
    /// Time of one of the class's lanes.
    pub lane: Nanos,
    /// Time of one of its devices; zero where lanes share nothing.
    pub device: Nanos,
}

impl From<Machine> for MachineModel {
    /// A model in which batches gain nothing, and handing over and deciding take no time.
    fn from(machine: Machine) -> Self {
        Self { machine, ..Self::default() }
    }
}

impl MachineModel {
    /// The costs of the dispatcher under a policy of this name.
    #[must_use]
    pub fn decisions(&self, policy: &str) -> Decisions {
        match &self.dispatcher {
            Some(dispatcher) => dispatcher.decisions(policy),
            None => Decisions::each(self.decision),
        }
    }

    /// Whether service times are exact: no machine profile adds variation, and nothing fails.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.faults.faults.is_empty() && self.lanes.iter().all(|(_, lanes)| lanes.is_none())
    }

    /// The machine as policies see it. The batch cost has an error factor per size of the formula, lognormal with mean 1. It
    /// belongs to the formula, so that it is equal in all runs. If a machine profile describes how batches differ from the
    /// formula, policies see the formula.
    #[must_use]
    pub fn as_told(&self) -> Cow<'_, Self> {
        let is_off = |class: Class| {
            self.batch_error[class] > 0.0 && self.batches[class].is_some() && self.lanes[class].is_none()
        };
        if !Class::ALL.into_iter().any(is_off) {
            return Cow::Borrowed(self);
        }
        let mut told = self.clone();
        for class in Class::ALL.into_iter().filter(|&class| is_off(class)) {
            let mut random = NodeSeed { seed: 0, node: 0 }.stream(Purpose::BatchErrors, class.index() as u32);
            let deviation = self.batch_error[class];
            for (_, factor) in told.batches[class].iter_mut().flat_map(|batches| &mut batches.crowding) {
                *factor *= exp(deviation * random.normal() - deviation * deviation / 2.0);
            }
        }
        Cow::Owned(told)
    }

    /// This machine with an extra CPU for each lane that a planned fault may hit. Fallbacks add no more capacity than that.
    #[must_use]
    pub fn with_fallbacks(&self) -> Cow<'_, Self> {
        let failing: BTreeSet<ProcessorId> = self.faults.faults.iter().map(|fault| fault.processor).collect();
        if failing.is_empty() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self { machine: self.machine.clone().with_cpus(failing.len()), ..self.clone() })
    }

    /// The speed-up on `lanes` lanes of `class` of a query that takes `alone` on one.
    #[must_use]
    pub fn speed_up(&self, class: Class, alone: Nanos, lanes: u32) -> f64 {
        let parallelism = self.parallelism.as_ref().filter(|_| class == Class::CPU);
        parallelism.map_or(1.0, |parallelism| parallelism.speed_up.of(alone, lanes))
    }

    /// The least time of a query on an idle machine, on all lanes of a class together; `None` without processors.
    ///
    /// The longest query holds up its batch, and a query's uses of several resources may overlap: its use of a single resource
    /// is a lower bound.
    #[must_use]
    pub fn fastest(&self, service: &PerClass<Cost>) -> Option<Nanos> {
        let least = |class: Class| {
            let LeastUse { lane, device } = self.least_use(class, service[class], BatchSizes::Any);
            let time = lane.max(device);
            time.scaled(1.0 / self.speed_up(class, service[class].alone, self.machine.count(class) as u32))
        };
        self.machine.classes().map(least).min()
    }

    /// The time of a batch on an idle processor of `class`.
    #[must_use]
    pub fn batch_time(&self, class: Class, load: &BatchLoad) -> BatchTime {
        match &self.batches[class] {
            Some(batches) => batches.time(load),
            None => BatchTime::of_device(load.alone),
        }
    }

    /// Waiting time of an idle device of `class` before and after a batch of `queries` queries.
    #[must_use]
    pub fn exposed_time(&self, class: Class, queries: u32) -> Nanos {
        self.batches[class].as_ref().map_or(Nanos::ZERO, |batches| batches.exposed(queries))
    }

    /// The largest batch on processors of `class`.
    #[must_use]
    pub fn most_queries(&self, class: Class) -> u32 {
        self.batches[class].as_ref().map_or(1, |batches| batches.most_queries)
    }

    /// The least resources of `class` for a query of this cost, in batches of these sizes.
    #[must_use]
    pub fn least_use(&self, class: Class, cost: Cost, sizes: BatchSizes) -> LeastUse {
        let least = self.lanes[class].as_ref().map_or(Least::default(), |lanes| lanes.least());
        let single = cost.scaled(least.single);
        let Some(batches) = &self.batches[class] else {
            return LeastUse { lane: single.alone, ..LeastUse::default() };
        };
        let single_device = cost.scaled(least.single_device).alone;
        match sizes {
            BatchSizes::Any => {
                let BatchTime { host, device, .. } = batches.least(cost);
                let device = device.scaled(least.device);
                let lane = host.scaled(least.host.min(least.single)).min(single_device);
                LeastUse { lane, device: device.min(single_device) }
            }
            BatchSizes::One => {
                let time = batches.time(&BatchLoad::default().with(single));
                // A lane that holds several batches prepares one while its device runs another. Single queries on it follow
                // each other at the observed spacing.
                let is_deep = self.machine.processors().any(|(_, on)| on.class == class && on.depth > 1);
                let lane = if is_deep { time.host.min(single_device) } else { time.total() };
                LeastUse { lane, device: time.device.min(single_device) }
            }
        }
    }
}

impl MachineProfile {
    /// The model of `predicted` on this machine. `is_played` names the classes whose lanes take recorded times as they are.
    #[must_use]
    pub fn model(&self, predicted: &MachineModel, is_played: impl Fn(Class) -> bool) -> MachineModel {
        let lanes = PerClass::from_fn(|class| {
            let of_class = self.classes.get(&class).filter(|_| !is_played(class))?;
            Some(Arc::new(LaneCosts::new(of_class)))
        });
        // Policies reckon with the hand-over.
        let handoff = PerClass::from_fn(|class| {
            let of_class: Option<&Arc<LaneCosts>> = lanes[class].as_ref();
            of_class.map_or(Nanos::ZERO, |lanes| lanes.hand_over() + lanes.hand_back())
        });
        MachineModel { lanes, dispatcher: Some(Arc::new(self.dispatcher.clone())), handoff, ..predicted.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_see_estimated_batches_not_true_ones() {
        let sizes = 4000;
        let crowding = (1..=sizes).map(|size| (size, 2.0)).collect();
        let batches = BatchCost { crowding, most_queries: sizes, ..BatchCost::default() };
        let exact = MachineModel { batches: PerClass::two(None, Some(batches)), ..Machine::new(1, 1).into() };
        assert!(matches!(exact.as_told(), Cow::Borrowed(_)));
        let model = MachineModel { batch_error: PerClass::two(0.0, 0.15), ..exact.clone() };
        let told = model.as_told();
        let factors = &told.batches[Class::GPU].as_ref().unwrap().crowding;
        let ratios: Vec<f64> = factors.iter().map(|(_, factor)| factor / 2.0).collect();
        let mean = ratios.iter().sum::<f64>() / f64::from(sizes);
        let error = ratios.iter().map(|ratio| (ratio - 1.0).abs()).sum::<f64>() / f64::from(sizes);
        // The mean of |ratio - 1| is 0.8 deviations; four standard errors of each mean.
        assert!((mean - 1.0).abs() < 0.01 && (error - 0.12).abs() < 0.006, "{mean}, {error}");
        assert_eq!(model.batches, exact.batches);
    }
}
