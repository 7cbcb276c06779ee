//! A machine with all that is known of its costs beyond those of single queries.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{BatchCost, BatchLoad, BatchTime, Cost};
use crate::base::ids::ProcessorId;
use crate::base::machine::{Class, FaultPlan, Machine, PerClass};
use crate::base::random::{NodeSeed, Purpose, exp};
use crate::base::time::Nanos;
use crate::cost::machine_file::{DispatcherCosts, DispatcherStalls, LaneCosts};

/// What a scheduler may know of the machine before a run, and what the simulator plays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineModel {
    /// The processors.
    pub machine: Machine,
    /// What batches take on each class; `None` where queries of a batch run one after another.
    pub batches: PerClass<Option<BatchCost>>,
    /// Time from the dispatcher's start of a batch until it is at work, and from its end until the dispatcher sees it,
    /// both together.
    pub handoff: PerClass<Nanos>,
    /// The dispatcher's own time for each event that it handles: an arrival, or a query that was answered, alone or with
    /// others of its batch.
    pub decision: Nanos,
    /// By class, what serving costs beyond, as a [machine file](crate::cost::MachineFile) says; it stands in
    /// `handoff`'s place.
    pub lanes: PerClass<Option<LaneCosts>>,
    /// The same of the dispatcher, in `decision`'s place.
    pub dispatcher: Option<DispatcherCosts>,
    /// What goes wrong in a run; policies don't know.
    pub faults: FaultPlan,
    /// By class, the standard deviation of the logarithm of what policies [are told](Self::as_told) of a batch over what it
    /// takes: the error of the formula in `batches`. 0 where they know what is played.
    pub batch_error: PerClass<f64>,
}

/// What the dispatcher itself takes: all that is due is taken in as one round, then it is decided once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// For any round, ...
    pub round: Nanos,
    /// each arrival or wake-up in it, ...
    pub arrival: Nanos,
    /// each batch that ended, a query by itself too, with handing over another one, ...
    pub batch: Nanos,
    /// and each query of that batch.
    pub answer: Nanos,
}

impl Decisions {
    /// The same for each arrival and each answered query, and nothing else.
    #[must_use]
    pub fn each(event: Nanos) -> Self {
        Self { arrival: event, answer: event, ..Self::default() }
    }

    /// A round in which so many queries arrived, or wake-ups came, and batches of so many queries together ended.
    #[must_use]
    pub fn of(&self, arrivals: u32, batches: u32, answers: u32) -> Nanos {
        let parts = [(self.arrival, arrivals), (self.batch, batches), (self.answer, answers)];
        parts.into_iter().fold(self.round, |sum, (each, count)| sum + Nanos(each.0.saturating_mul(count.into())))
    }

    /// The end of a batch of so many queries.
    #[must_use]
    #[inline(always)]
    pub fn finish(&self, queries: usize) -> Nanos {
        self.batch + Nanos(self.answer.0.saturating_mul(queries as u64))
    }
}

/// What takes the dispatcher's time in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DispatcherTime {
    /// Its rounds,
    pub decisions: Decisions,
    /// and what holds its core up.
    pub stalls: DispatcherStalls,
}

impl From<Decisions> for DispatcherTime {
    /// Nothing holds it up.
    fn from(decisions: Decisions) -> Self {
        Self { decisions, stalls: DispatcherStalls::default() }
    }
}

/// How many queries batches may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSizes {
    /// Whatever number makes them cheapest.
    Any,
    /// One: there are none.
    One,
}

/// The least that a query can take of what a class has: no schedule needs less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeastUse {
    /// Time of one of the class's lanes.
    pub lane: Nanos,
    /// Time of one of its devices; zero where lanes share nothing.
    pub device: Nanos,
}

impl From<Machine> for MachineModel {
    /// Batches gain nothing, and neither handing over nor deciding takes time.
    fn from(machine: Machine) -> Self {
        Self { machine, ..Self::default() }
    }
}

impl MachineModel {
    /// What takes the dispatcher's time under a policy of this name.
    #[must_use]
    pub fn dispatcher_time(&self, policy: &str) -> DispatcherTime {
        match &self.dispatcher {
            Some(dispatcher) => {
                DispatcherTime { decisions: dispatcher.of(policy), stalls: dispatcher.stalls().clone() }
            }
            None => Decisions::each(self.decision).into(),
        }
    }

    /// Whether what work takes is known but for chance: no machine file says how it varies, and nothing fails.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.dispatcher.is_none()
            && self.faults.faults.is_empty()
            && self.lanes.iter().all(|(_, lanes)| lanes.is_none())
    }

    /// The machine as policies are told of it in the run of this seed: what batches take is off by a factor of its own at each
    /// size of the formula, lognormal of mean 1. Where a machine file says how batches differ from the formula, that is
    /// played, and policies know the formula.
    #[must_use]
    pub fn as_told(&self, seed: u64) -> Cow<'_, Self> {
        let is_off = |class: Class| {
            self.batch_error[class] > 0.0 && self.batches[class].is_some() && self.lanes[class].is_none()
        };
        if !Class::ALL.into_iter().any(is_off) {
            return Cow::Borrowed(self);
        }
        let mut told = self.clone();
        for class in Class::ALL.into_iter().filter(|&class| is_off(class)) {
            let mut random = NodeSeed { seed, node: 0 }.stream(Purpose::BatchErrors, class.index() as u32);
            let deviation = self.batch_error[class];
            for (_, factor) in told.batches[class].iter_mut().flat_map(|batches| &mut batches.crowding) {
                *factor *= exp(deviation * random.normal() - deviation * deviation / 2.0);
            }
        }
        Cow::Owned(told)
    }

    /// The same with a CPU beside each lane that a fault may befall: what goes on in their place adds no more than that.
    #[must_use]
    pub fn with_fallbacks(&self) -> Cow<'_, Self> {
        let failing: BTreeSet<ProcessorId> = self.faults.faults.iter().map(|fault| fault.processor).collect();
        if failing.is_empty() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self { machine: self.machine.clone().with_cpus(failing.len()), ..self.clone() })
    }

    /// What a batch takes on an idle processor of `class`.
    #[must_use]
    pub fn batch_time(&self, class: Class, load: &BatchLoad) -> BatchTime {
        match &self.batches[class] {
            Some(batches) => batches.time(load),
            None => BatchTime::of_device(load.alone),
        }
    }

    /// What an idle device of `class` waits for until a batch of so many queries is there and read.
    #[must_use]
    pub fn exposed_time(&self, class: Class, queries: u32) -> Nanos {
        self.batches[class].as_ref().map_or(Nanos::ZERO, |batches| batches.exposed(queries))
    }

    /// The largest batch that processors of `class` take.
    #[must_use]
    pub fn most_queries(&self, class: Class) -> u32 {
        self.batches[class].as_ref().map_or(1, |batches| batches.most_queries)
    }

    /// The least that a query of this cost takes of `class`, in batches of these sizes.
    #[must_use]
    pub fn least_use(&self, class: Class, cost: Cost, sizes: BatchSizes) -> LeastUse {
        let Some(batches) = &self.batches[class] else {
            return LeastUse { lane: cost.alone, ..LeastUse::default() };
        };
        match sizes {
            BatchSizes::Any => {
                let BatchTime { host, device, .. } = batches.least(cost);
                LeastUse { lane: host, device }
            }
            BatchSizes::One => {
                let time = batches.time(&BatchLoad::default().with(cost));
                // A lane that holds several batches prepares one while its device is at another; a machine file says how far
                // these overlap.
                let spacing = self.lanes[class].as_ref().map_or(1.0, LaneCosts::spacing);
                let is_deep = self.machine.processors().any(|(_, on)| on.class == class && on.depth > 1);
                LeastUse {
                    lane: if is_deep { time.host } else { time.total() },
                    device: time.device.min(cost.alone.scaled(spacing)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_told_of_batches_with_an_error_that_each_seed_draws_and_the_truth_stays() {
        let sizes = 4000;
        let crowding = (1..=sizes).map(|size| (size, 2.0)).collect();
        let batches = BatchCost { crowding, most_queries: sizes, ..BatchCost::default() };
        let exact = MachineModel { batches: PerClass::two(None, Some(batches)), ..Machine::new(1, 1).into() };
        assert!(matches!(exact.as_told(1), Cow::Borrowed(_)));
        let model = MachineModel { batch_error: PerClass::two(0.0, 0.15), ..exact.clone() };
        let ratios = |seed| -> Vec<f64> {
            let told = model.as_told(seed);
            let factors = &told.batches[Class::GPU].as_ref().unwrap().crowding;
            factors.iter().map(|(_, factor)| factor / 2.0).collect()
        };
        let (first, second) = (ratios(1), ratios(2));
        assert!(first != second && first == ratios(1));
        let mean = first.iter().sum::<f64>() / f64::from(sizes);
        let error = first.iter().map(|ratio| (ratio - 1.0).abs()).sum::<f64>() / f64::from(sizes);
        // The mean of |ratio - 1| is 0.8 deviations; four standard errors of each mean.
        assert!((mean - 1.0).abs() < 0.01 && (error - 0.12).abs() < 0.006, "{mean}, {error}");
        assert_eq!(model.batches, exact.batches);
    }
}
