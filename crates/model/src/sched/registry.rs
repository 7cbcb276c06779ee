//! The lab's own policies, with their properties and names.
//!
//! Each policy's file has a [`PolicyEntry`]. The list of policies is in `sched/mod.rs`, one line each. Names, help and the
//! order of tables and figures come from it.

use std::sync::Arc;

use super::PolicyKind;
use super::factory::PolicyFactory;
use super::job::Shed;
use super::options::PolicyOptions;
use super::policy::{Policy, PolicyError};
use super::shedding::Shedding;
use crate::base::machine::{Class, Machine, PerClass};
use crate::cost::{Cost, MachineModel};

/// The properties of one of the lab's policies.
#[derive(Debug)]
pub(super) struct PolicyEntry {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) build: Build,
    pub(super) required_classes: &'static [Class],
    pub(super) batches: bool,
    /// Whether the policy runs only by name: a paper's policy of which the lab has its own form, or one that equals another
    /// policy unless queries have priorities or run on several lanes.
    pub(super) for_comparison: bool,
    /// Whether its jobs may occupy several lanes.
    pub(super) shares_jobs: bool,
    /// Whether a query with these predicted costs may run on the class.
    pub(super) may_run_on: fn(Class, &PerClass<Cost>) -> bool,
}

type Build = fn(&PolicySetup<'_>) -> Result<Box<dyn Policy>, PolicyError>;

impl PolicyEntry {
    /// A work-conserving policy for any machine, which runs every query on any class, one at a time.
    pub(super) const fn new(name: &'static str, help: &'static str, build: Build) -> Self {
        Self {
            name,
            help,
            build,
            required_classes: &[],
            batches: false,
            for_comparison: false,
            shares_jobs: false,
            may_run_on: |_, _| true,
        }
    }

    /// A policy for CPU lanes whose jobs may occupy several of them.
    pub(super) const fn sharing(name: &'static str, help: &'static str, build: Build) -> Self {
        Self {
            required_classes: &[Class::CPU],
            for_comparison: true,
            shares_jobs: true,
            may_run_on: |class, _| class == Class::CPU,
            ..Self::new(name, help, build)
        }
    }
}

pub(super) struct PolicySetup<'a> {
    pub(super) options: &'a PolicyOptions,
    pub(super) model: &'a MachineModel,
    /// By row of the workload: the blocks in all lists of the query.
    pub(super) blocks: &'a Arc<[u32]>,
}

impl PolicySetup<'_> {
    pub(super) fn machine(&self) -> &Machine {
        &self.model.machine
    }
}

/// Makes [`PolicyKind`] from the list of policies, each with its file and its entry there.
macro_rules! policies {
    ($($kind:ident = $file:ident::$entry:ident,)+) => {
        /// A policy of the lab.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum PolicyKind {
            $(#[doc = concat!("The policy in `sched/", stringify!($file), ".rs`.")] $kind,)+
        }

        impl PolicyKind {
            /// All policies, in the order of tables and figures.
            pub const ALL: [Self; [$(Self::$kind),+].len()] = [$(Self::$kind),+];

            fn entry(self) -> &'static registry::PolicyEntry {
                match self {
                    $(Self::$kind => const { &$file::$entry },)+
                }
            }
        }
    };
}
pub(super) use policies;

impl PolicyKind {
    /// The name in options and in files.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// One line of help.
    pub fn help(self) -> &'static str {
        self.entry().help
    }

    /// The policy of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether the policy runs only by name: a paper's policy of which the lab has its own form, or one that equals another
    /// policy unless queries have priorities or run on several lanes.
    pub fn is_for_comparison(self) -> bool {
        self.entry().for_comparison
    }

    /// Whether the policy makes batches. Without batch costs it equals another policy.
    pub fn batches(self) -> bool {
        self.entry().batches
    }

    /// Whether its jobs may occupy several CPU lanes. Without a measured [speed-up](crate::cost::SpeedUp) they occupy one.
    pub fn shares_jobs(self) -> bool {
        self.entry().shares_jobs
    }

    /// Classes of processor that the policy requires.
    pub fn required_classes(self) -> &'static [Class] {
        self.entry().required_classes
    }

    /// Its factory with these options.
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
    /// The policy.
    pub kind: PolicyKind,
    /// The options of the policy.
    pub options: PolicyOptions,
    /// Blocks in all lists of the query, by row of the workload, for `length-based`. Rows beyond the end count as short.
    pub blocks: Arc<[u32]>,
}

impl BuiltIn {
    /// This factory for a workload with these blocks per query, by row.
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
        let setup = PolicySetup { options: &self.options, model, blocks: &self.blocks };
        let policy = (self.kind.entry().build)(&setup)?;
        Ok(match self.options.shed {
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

    fn may_run_on(&self, class: Class, predicted: &PerClass<Cost>) -> bool {
        (self.kind.entry().may_run_on)(class, predicted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Jobs;
    use super::super::stealing::tests::{GPU, job};
    use super::*;
    use crate::base::time::Nanos;
    use crate::cost::BatchCost;

    #[test]
    fn every_policy_goes_by_one_name_everywhere() {
        let model = MachineModel::from(Machine::new(1, 1));
        for kind in PolicyKind::ALL {
            let factory = kind.with(PolicyOptions::default());
            assert_eq!(factory.build(&model).unwrap().name(), factory.name());
            assert_eq!(PolicyKind::from_name(kind.name()), Some(kind));
            let shedding = kind.with(PolicyOptions { shed: Shed::Late, ..PolicyOptions::default() });
            assert_eq!(shedding.build(&model).unwrap().name(), kind.name());
        }
        let helps: std::collections::HashSet<&str> = PolicyKind::ALL.iter().map(|kind| kind.help()).collect();
        assert!(helps.len() == PolicyKind::ALL.len() && helps.iter().all(|help| help.contains(' ')));
    }

    #[test]
    fn a_policy_that_uses_one_class_says_so() {
        let cost = PerClass::from_fn(|_| Cost::alone(Nanos(1)));
        let may = |kind: PolicyKind, class| kind.with(PolicyOptions::default()).may_run_on(class, &cost);
        for kind in [PolicyKind::GpuOnly, PolicyKind::Window, PolicyKind::Greedy, PolicyKind::Adaptive] {
            assert!(may(kind, Class::GPU) && !may(kind, Class::CPU), "{kind}");
        }
        assert!(may(PolicyKind::CpuOnly, Class::CPU) && !may(PolicyKind::CpuOnly, Class::GPU));
        let has_batches = |kind: PolicyKind| kind.with(PolicyOptions::default()).makes_batches();
        assert!(has_batches(PolicyKind::Combined) && !has_batches(PolicyKind::Stealing));
    }

    #[test]
    fn a_policy_builds_where_its_required_classes_are() {
        for (cpus, gpus) in [(2, 0), (0, 2), (1, 1)] {
            let machine = Machine::new(cpus, gpus);
            for kind in PolicyKind::ALL {
                let has_all = kind.required_classes().iter().all(|&class| machine.count(class) > 0);
                let built = kind.with(PolicyOptions::default()).build(&machine.clone().into());
                assert_eq!(built.is_ok(), has_all, "{kind} on {cpus} CPUs and {gpus} GPUs");
            }
        }
    }

    #[test]
    fn a_policy_makes_batches_exactly_if_it_says_so() {
        let batches = BatchCost { crowding: vec![(16, 1.0)], most_queries: 16, ..BatchCost::default() };
        let model = MachineModel { batches: PerClass::two(None, Some(batches)), ..Machine::new(1, 1).into() };
        for kind in PolicyKind::ALL {
            let mut policy = kind.with(PolicyOptions::default()).build(&model).unwrap();
            let mut jobs = Jobs::default();
            for job in (0..32).map(|id| job(id, 0, 20, 2)) {
                jobs.arrive(job.arrival, |_| job);
                policy.arrive(&job, &jobs, job.arrival);
            }
            // `adaptive` begins with one query.
            let sizes = [10.0, 20.0].map(|ms| {
                let mut batch = Vec::new();
                policy.next(GPU, &jobs, Nanos::from_ms(ms), &mut batch);
                for &id in &batch {
                    jobs.start(id);
                }
                policy.finished(GPU, &batch, &jobs, Nanos(1), Nanos::from_ms(ms));
                batch.len()
            });
            assert_eq!(sizes.iter().any(|&size| size > 1), kind.batches(), "{kind}: {sizes:?}");
        }
    }

    #[test]
    fn policies_of_jobs_on_several_lanes_run_only_by_name() {
        assert!(PolicyKind::ALL.into_iter().all(|kind| !kind.shares_jobs() || kind.is_for_comparison()));
    }

    #[test]
    fn length_based_goes_by_the_lengths_that_it_was_given() {
        let options = PolicyOptions { length_threshold: 10, ..PolicyOptions::default() };
        let factory = PolicyKind::LengthBased.with(options).with_lengths([20].into());
        assert_eq!(factory.blocks[..], [20]);
        assert_ne!(factory, PolicyKind::LengthBased.with(options));
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
