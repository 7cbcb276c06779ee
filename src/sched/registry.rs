//! The policies by name.

use super::best_of::BestOf;
use super::mct::EarliestCompletion;
use super::only::OnlyOn;
use super::stealing::Stealing;
use super::{Policy, PolicyError, PolicyOptions};
use crate::machine::{Class, Machine};

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
}

impl PolicyKind {
    /// All policies, in the order of tables and figures.
    pub const ALL: [Self; 5] = [Self::GpuOnly, Self::CpuOnly, Self::BestOf, Self::Stealing, Self::Mct];

    /// The name, as in options and files.
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
    pub fn required_classes(self) -> &'static [Class] {
        match self {
            Self::GpuOnly => &[Class::GPU],
            Self::CpuOnly => &[Class::CPU],
            Self::BestOf | Self::Stealing => &[Class::CPU, Class::GPU],
            Self::Mct => &[],
        }
    }

    /// Makes the policy for `machine`.
    ///
    /// # Errors
    /// If the machine lacks a kind that the policy needs, or an option makes no sense.
    pub fn build(self, options: &PolicyOptions, machine: &Machine) -> Result<Box<dyn Policy>, PolicyError> {
        Ok(match self {
            Self::GpuOnly => Box::new(OnlyOn::new(Class::GPU, machine)?),
            Self::CpuOnly => Box::new(OnlyOn::new(Class::CPU, machine)?),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_goes_by_one_name_everywhere() {
        for kind in PolicyKind::ALL {
            let policy = kind.build(&PolicyOptions::default(), &Machine::new(1, 1)).unwrap();
            assert_eq!(policy.name(), kind.name());
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_way_out() {
        let fault = |kind: PolicyKind, options: &PolicyOptions, machine: &Machine| {
            kind.build(options, machine).err().map(|e| e.to_string()).unwrap_or_default()
        };
        let options = PolicyOptions::default();
        assert!(fault(PolicyKind::GpuOnly, &options, &Machine::new(2, 0)).contains("needs a gpu"));
        assert!(fault(PolicyKind::Stealing, &options, &Machine::new(0, 2)).contains("needs a cpu"));
        assert!(fault(PolicyKind::Mct, &options, &Machine::new(0, 0)).contains("no processors"));
        let nan = PolicyOptions { cost_weight: f64::NAN, ..options };
        assert!(fault(PolicyKind::Stealing, &nan, &Machine::new(1, 1)).contains("cost weight is NaN"));
        let half = PolicyOptions { threshold_ratio: 0.5, ..options };
        assert!(fault(PolicyKind::Stealing, &half, &Machine::new(1, 1)).contains("at least 1"));
    }
}
