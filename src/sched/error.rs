//! Why a policy can't be made.

use crate::machine::{Class, Machine};

/// Why a policy can't be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The machine lacks what the policy needs.
    #[error("policy {policy} needs a {kind}, the machine has none")]
    MissingKind {
        /// The policy.
        policy: &'static str,
        /// What is missing.
        kind: Class,
    },
    /// There is nothing to run on.
    #[error("the machine has no processors: it needs at least one")]
    NoProcessors,
    /// An option's value makes no sense.
    #[error("{option} is {value}, expected {expected}")]
    BadOption {
        /// The option, in words: `cost weight`.
        option: &'static str,
        /// Its value.
        value: f64,
        /// What would do.
        expected: &'static str,
    },
}

impl PolicyError {
    /// Refuses a machine without a processor or without one of `kinds`.
    pub(super) fn require(machine: &Machine, policy: &'static str, kinds: &[Class]) -> Result<(), Self> {
        if machine.is_empty() {
            return Err(Self::NoProcessors);
        }
        match kinds.iter().find(|&&kind| machine.count(kind) == 0) {
            Some(&kind) => Err(Self::MissingKind { policy, kind }),
            None => Ok(()),
        }
    }
}
