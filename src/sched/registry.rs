//! The lab's own policies by name.

use std::sync::Arc;

use super::shedding::Shedding;
use super::{
    Adaptive, BestOf, CachedFirst, Combined, EarliestCompletion, Greedy, LengthBased, OnlyOn, Policy, PolicyError,
    PolicyFactory, PolicyOptions, Promise, RandomSplit, Shed, Stealing, StealingAdaptive, StealingPublished, Window,
    preferred_class,
};
use crate::cost::{Cost, MachineModel};
use crate::machine::{Class, PerClass};
use crate::time::Nanos;

/// Which policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyKind {
    /// Everything on the GPUs, first come, first served
    GpuOnly,
    /// Everything on the CPUs, first come, first served
    CpuOnly,
    /// Each query on its better processor, one at a time in the whole machine
    BestOf,
    /// Three queues, deadlines and work stealing (Ding et al. 2009, section 9)
    Stealing,
    /// Each query to the processor that is predicted to finish it first
    Mct,
    /// GPUs take what waits, as one batch
    Greedy,
    /// GPUs take batches that close by size or time
    Window,
    /// GPUs take batches whose size is found by trial (Clipper, NSDI 2017)
    Adaptive,
    /// GPUs take batches; CPUs what a batch gains least on, and what cannot wait
    Combined,
    /// Three queues and stealing as published, without a guard; played where it is asked for
    StealingPublished,
    /// Queries of short lists on GPUs, in batches, those of long ones on CPUs (Huang et al. 2017)
    LengthBased,
    /// Half of the queries on GPUs, in batches, half on CPUs, by a coin (Huang et al. 2017)
    RandomSplit,
    /// Stealing between classes whose prices follow the load
    StealingAdaptive,
    /// GPUs take queries whose lists they hold, in batches, CPUs the others, and help where one side has too many (Wang et al. 2017)
    CachedFirst,
}

impl PolicyKind {
    /// All policies, in the order of tables and figures.
    pub const ALL: [Self; 14] = [
        Self::GpuOnly,
        Self::CpuOnly,
        Self::BestOf,
        Self::Stealing,
        Self::Mct,
        Self::Greedy,
        Self::Window,
        Self::Adaptive,
        Self::Combined,
        Self::StealingPublished,
        Self::LengthBased,
        Self::RandomSplit,
        Self::StealingAdaptive,
        Self::CachedFirst,
    ];

    /// The name, as in options and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GpuOnly => "gpu-only",
            Self::CpuOnly => "cpu-only",
            Self::BestOf => "best-of",
            Self::Stealing => "stealing",
            Self::Mct => "mct",
            Self::Greedy => "greedy",
            Self::Window => "window",
            Self::Adaptive => "adaptive",
            Self::Combined => "combined",
            Self::StealingPublished => "stealing-published",
            Self::LengthBased => "length-based",
            Self::RandomSplit => "random-split",
            Self::StealingAdaptive => "stealing-adaptive",
            Self::CachedFirst => "cached-first",
        }
    }

    /// The policy of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it is played only where it is asked for: what a paper has, beside the lab's own form of it.
    #[must_use]
    pub fn is_for_comparison(self) -> bool {
        matches!(self, Self::StealingPublished | Self::RandomSplit)
    }

    /// Whether it makes batches: without batch costs it is another policy by another name.
    #[must_use]
    pub fn batches(self) -> bool {
        matches!(
            self,
            Self::Greedy
                | Self::Window
                | Self::Adaptive
                | Self::Combined
                | Self::LengthBased
                | Self::RandomSplit
                | Self::CachedFirst
        )
    }

    /// The classes of processor that it cannot do without.
    #[must_use]
    pub fn required_classes(self) -> &'static [Class] {
        match self {
            Self::GpuOnly | Self::Greedy | Self::Window | Self::Adaptive => &[Class::GPU],
            Self::CpuOnly => &[Class::CPU],
            Self::BestOf | Self::Stealing | Self::StealingPublished | Self::LengthBased | Self::RandomSplit => {
                &[Class::CPU, Class::GPU]
            }
            Self::Mct | Self::Combined | Self::StealingAdaptive | Self::CachedFirst => &[],
        }
    }

    /// Its factory, with these options.
    #[must_use]
    pub fn with(self, options: PolicyOptions) -> BuiltIn {
        BuiltIn { kind: self, options, blocks: Arc::new([]) }
    }
}

impl std::fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The factory of one of the lab's own policies.
#[derive(Clone, Debug, PartialEq)]
pub struct BuiltIn {
    /// Which policy.
    pub kind: PolicyKind,
    /// Its options.
    pub options: PolicyOptions,
    /// By row of the workload, the blocks in all lists of the query: what `length-based` goes by. Rows behind its end count as
    /// short.
    pub blocks: Arc<[u32]>,
}

impl BuiltIn {
    /// The same, of a workload whose queries have so many blocks, by row.
    #[must_use]
    pub fn with_lengths(self, blocks: Arc<[u32]>) -> Self {
        Self { blocks, ..self }
    }
}

impl PolicyFactory for BuiltIn {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn build(&self, model: &MachineModel) -> Result<Box<dyn Policy>, PolicyError> {
        let (options, machine) = (&self.options, &model.machine);
        let policy: Box<dyn Policy> = match self.kind {
            PolicyKind::GpuOnly => Box::new(OnlyOn::new(Class::GPU, machine)?),
            PolicyKind::CpuOnly => Box::new(OnlyOn::new(Class::CPU, machine)?),
            PolicyKind::BestOf => Box::new(BestOf::new(machine)?),
            PolicyKind::Stealing => Box::new(Stealing::new(options, machine)?),
            PolicyKind::Mct => Box::new(EarliestCompletion::new(machine)?),
            PolicyKind::Greedy => Box::new(Greedy::new(options, model)?),
            PolicyKind::Window => Box::new(Window::new(options, model)?),
            PolicyKind::Adaptive => Box::new(Adaptive::new(options, model)?),
            PolicyKind::Combined => Box::new(Combined::new(options, model)?),
            PolicyKind::StealingPublished => Box::new(StealingPublished::new(options, machine)?),
            PolicyKind::LengthBased => Box::new(LengthBased::new(options, model, Arc::clone(&self.blocks))?),
            PolicyKind::RandomSplit => Box::new(RandomSplit::new(options, model)?),
            PolicyKind::StealingAdaptive => Box::new(StealingAdaptive::new(options, machine)?),
            PolicyKind::CachedFirst => Box::new(CachedFirst::new(options, model)?),
        };
        Ok(match options.shed {
            Shed::Nothing => policy,
            shed @ Shed::Late => Box::new(Shedding { inner: policy, shed }),
        })
    }

    fn makes_batches(&self) -> bool {
        self.kind.batches()
    }

    fn sheds(&self) -> Shed {
        self.options.shed
    }

    fn promise(&self) -> Option<Promise> {
        // What is dropped goes by estimates, and the promise is one of true costs.
        if self.options.shed != Shed::Nothing {
            return None;
        }
        let idle_wait = if self.kind == PolicyKind::Window { self.options.window() } else { Nanos::ZERO };
        Some(Promise { idle_wait })
    }

    fn may_run_on(&self, class: Class, predicted: &PerClass<Cost>) -> bool {
        match self.kind {
            PolicyKind::GpuOnly => class == Class::GPU,
            PolicyKind::CpuOnly => class == Class::CPU,
            PolicyKind::BestOf => class == preferred_class(predicted),
            PolicyKind::Greedy | PolicyKind::Window | PolicyKind::Adaptive => class.is_gpu(),
            PolicyKind::Stealing
            | PolicyKind::StealingPublished
            | PolicyKind::StealingAdaptive
            | PolicyKind::Mct
            | PolicyKind::Combined
            | PolicyKind::LengthBased
            | PolicyKind::RandomSplit
            | PolicyKind::CachedFirst => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn every_policy_goes_by_one_name_everywhere() {
        let model = MachineModel::from(Machine::new(1, 1));
        for kind in PolicyKind::ALL {
            let factory = kind.with(PolicyOptions::default());
            assert_eq!(factory.build(&model).unwrap().name(), factory.name());
            assert_eq!(PolicyKind::from_name(kind.name()), Some(kind));
        }
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let fault = |kind: PolicyKind, options: PolicyOptions, machine: Machine| {
            kind.with(options).build(&machine.into()).err().map(|e| e.to_string()).unwrap_or_default()
        };
        let usual = PolicyOptions::default();
        assert!(fault(PolicyKind::GpuOnly, usual, Machine::new(2, 0)).contains("needs a gpu"));
        assert!(fault(PolicyKind::Greedy, usual, Machine::new(2, 0)).contains("needs a gpu"));
        assert!(fault(PolicyKind::Stealing, usual, Machine::new(0, 2)).contains("needs a cpu"));
        assert!(fault(PolicyKind::Combined, usual, Machine::new(0, 0)).contains("no processors"));
        let nan = PolicyOptions { cost_weight: f64::NAN, ..usual };
        assert!(fault(PolicyKind::Stealing, nan, Machine::new(1, 1)).contains("cost weight is NaN"));
        let half = PolicyOptions { threshold_ratio: 0.5, ..usual };
        assert!(fault(PolicyKind::Stealing, half, Machine::new(1, 1)).contains("at least 1"));
        let empty = PolicyOptions { batch_limit: 0, ..usual };
        assert!(fault(PolicyKind::Combined, empty, Machine::new(1, 1)).contains("batch limit is 0"));
    }
}
