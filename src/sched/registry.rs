//! The policies by name, and their options.

use super::Policy;
use super::best_of::BestOf;
use super::mct::EarliestCompletion;
use super::only::OnlyOn;
use super::stealing::Stealing;
use crate::ids::{Machine, ProcessorKind};

/// Which policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
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
}

impl PolicyKind {
    /// All policies, in the order of tables and figures.
    pub const ALL: [Self; 5] = [Self::GpuOnly, Self::CpuOnly, Self::BestOf, Self::Stealing, Self::Mct];

    /// The name, as in `--policy` and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GpuOnly => "gpu-only",
            Self::CpuOnly => "cpu-only",
            Self::BestOf => "best-of",
            Self::Stealing => "stealing",
            Self::Mct => "mct",
        }
    }

    /// The kinds of processor that it cannot do without.
    #[must_use]
    pub fn required_kinds(self) -> &'static [ProcessorKind] {
        match self {
            Self::GpuOnly => &[ProcessorKind::Gpu],
            Self::CpuOnly => &[ProcessorKind::Cpu],
            Self::BestOf | Self::Stealing => &ProcessorKind::ALL,
            Self::Mct => &[],
        }
    }

    /// Makes the policy for `machine`.
    ///
    /// # Errors
    /// If the machine lacks a kind that the policy needs, or an option makes no sense.
    pub fn build(self, options: &PolicyOptions, machine: &Machine) -> Result<Box<dyn Policy>, PolicyError> {
        Ok(match self {
            Self::GpuOnly => Box::new(OnlyOn::new(ProcessorKind::Gpu, machine)?),
            Self::CpuOnly => Box::new(OnlyOn::new(ProcessorKind::Cpu, machine)?),
            Self::BestOf => Box::new(BestOf::new(machine)?),
            Self::Stealing => Box::new(Stealing::new(options, machine)?),
            Self::Mct => Box::new(EarliestCompletion::new(machine)?),
        })
    }
}

impl std::fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Makes the policy called `name` for `machine`.
///
/// # Errors
/// If there is no such policy, the machine lacks a kind that it needs, or an option makes no sense.
pub fn policy_by_name(name: &str, options: &PolicyOptions, machine: &Machine) -> Result<Box<dyn Policy>, PolicyError> {
    let kind = PolicyKind::ALL.into_iter().find(|kind| kind.name() == name);
    kind.ok_or_else(|| PolicyError::Unknown { name: name.to_owned() })?.build(options, machine)
}

/// What a thief heeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum StealGuard {
    /// Nothing: an idle processor always steals
    None,
    /// Steals only jobs that it is predicted to finish within their deadline
    Deadline,
    /// Steals only jobs that it is predicted to finish before their own processors would have worked off their queue
    Gain,
}

/// The options of all policies; each policy reads its own.
#[derive(Clone, Copy, Debug, PartialEq, clap::Args)]
pub struct PolicyOptions {
    /// stealing: a query waits for one kind of processor if it is predicted to be this many times as fast there
    #[arg(long, value_name = "RATIO", default_value_t = 1.2)]
    pub threshold_ratio: f64,
    /// stealing: a query past this share of the time to its deadline runs next on its preferred kind
    #[arg(long, value_name = "SHARE", default_value_t = 0.6)]
    pub urgent_share: f64,
    /// stealing: weight of the predicted cost in the order of a queue (0: cost does not count)
    #[arg(long, value_name = "WEIGHT", default_value_t = 1.0)]
    pub cost_weight: f64,
    /// stealing: weight of the deadline in the order of a queue
    #[arg(long, value_name = "WEIGHT", default_value_t = 1.0)]
    pub deadline_weight: f64,
    /// stealing: weight of the time that a query gains by running on this kind and not on the other
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.1)]
    pub affinity_weight: f64,
    /// stealing: what an idle processor heeds before it steals
    #[arg(long, value_name = "GUARD", value_enum, default_value_t = StealGuard::Gain)]
    pub steal_guard: StealGuard,
}

impl Default for PolicyOptions {
    fn default() -> Self {
        Self {
            threshold_ratio: 1.2,
            urgent_share: 0.6,
            cost_weight: 1.0,
            deadline_weight: 1.0,
            affinity_weight: 0.1,
            steal_guard: StealGuard::Gain,
        }
    }
}

impl PolicyOptions {
    /// Weights above this would leave nothing of a nanosecond's worth in a 64-bit key.
    const MAX_WEIGHT: f64 = 1e6;

    /// Whether every value makes sense.
    ///
    /// # Errors
    /// Names the first option that does not, with what would.
    pub fn check(&self) -> Result<(), PolicyError> {
        let fault = |option: &'static str, value: f64, expected: &'static str| {
            Err(PolicyError::BadOption { option, value, expected })
        };
        if !(self.threshold_ratio >= 1.0 && self.threshold_ratio.is_finite()) {
            return fault("--threshold-ratio", self.threshold_ratio, "a number of at least 1");
        }
        if !(0.0..=1.0).contains(&self.urgent_share) {
            return fault("--urgent-share", self.urgent_share, "a number from 0 to 1");
        }
        let weights = [
            ("--cost-weight", self.cost_weight),
            ("--deadline-weight", self.deadline_weight),
            ("--affinity-weight", self.affinity_weight),
        ];
        for (option, weight) in weights {
            if !(0.0..=Self::MAX_WEIGHT).contains(&weight) {
                return fault(option, weight, "a number from 0 to 1000000");
            }
        }
        Ok(())
    }
}

/// Why a policy can't be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No policy has this name.
    #[error("there is no policy {name:?}; there are gpu-only, cpu-only, best-of, stealing, mct")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The machine lacks what the policy needs.
    #[error("policy {policy} needs a {kind}, the machine has none (add one with --{kind}s 1, or leave the policy out)")]
    MissingKind {
        /// The policy.
        policy: &'static str,
        /// What is missing.
        kind: ProcessorKind,
    },
    /// There is nothing to run on.
    #[error("the machine has no processors (--cpus 0 --gpus 0): give it at least one")]
    NoProcessors,
    /// An option's value makes no sense.
    #[error("{option} is {value}, expected {expected}")]
    BadOption {
        /// The option.
        option: &'static str,
        /// Its value.
        value: f64,
        /// What would do.
        expected: &'static str,
    },
}

impl PolicyError {
    /// Refuses a machine without a processor or without one of `kinds`.
    pub(super) fn require(machine: &Machine, policy: &'static str, kinds: &[ProcessorKind]) -> Result<(), Self> {
        if machine.is_empty() {
            return Err(Self::NoProcessors);
        }
        match kinds.iter().find(|&&kind| machine.count(kind) == 0) {
            Some(&kind) => Err(Self::MissingKind { policy, kind }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_policy_goes_by_one_name_everywhere() {
        for kind in PolicyKind::ALL {
            let policy = policy_by_name(kind.name(), &PolicyOptions::default(), &Machine::new(1, 1)).unwrap();
            assert_eq!(policy.name(), kind.name());
            assert_eq!(kind.to_possible_value().unwrap().get_name(), kind.name());
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_way_out() {
        let fault = |kind: PolicyKind, options: &PolicyOptions, machine: &Machine| {
            kind.build(options, machine).err().map(|e| e.to_string()).unwrap_or_default()
        };
        let options = PolicyOptions::default();
        assert!(fault(PolicyKind::GpuOnly, &options, &Machine::new(2, 0)).contains("--gpus 1"));
        assert!(fault(PolicyKind::Stealing, &options, &Machine::new(0, 2)).contains("--cpus 1"));
        assert!(fault(PolicyKind::Mct, &options, &Machine::new(0, 0)).contains("no processors"));
        let nan = PolicyOptions { cost_weight: f64::NAN, ..options };
        assert!(fault(PolicyKind::Stealing, &nan, &Machine::new(1, 1)).contains("--cost-weight is NaN"));
        let half = PolicyOptions { threshold_ratio: 0.5, ..options };
        assert!(fault(PolicyKind::Stealing, &half, &Machine::new(1, 1)).contains("at least 1"));
    }

    #[test]
    fn the_options_default_to_what_the_command_line_says() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: PolicyOptions,
        }
        let line = <Line as clap::Parser>::parse_from(["tandem"]);
        assert_eq!(line.options, PolicyOptions::default());
    }
}
