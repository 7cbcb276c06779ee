//! Why a policy can't be made.

use crate::machine::{Class, Machine};

/// Why a policy can't be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The machine lacks what the policy needs.
    #[error("policy {policy} needs a {class}, the machine has none: add one, or leave the policy out")]
    MissingClass {
        /// The policy.
        policy: &'static str,
        /// What is missing.
        class: Class,
    },
    /// There is nothing to run on.
    #[error("the machine has no processors: give it at least one")]
    NoProcessors,
    /// An option's value makes no sense.
    #[error("{option} is {value}, expected {expected}")]
    BadOption {
        /// The option, by the name of its field.
        option: &'static str,
        /// Its value.
        value: f64,
        /// What would do.
        expected: &'static str,
    },
}

impl PolicyError {
    /// Refuses a machine without a processor or without one of `classes`.
    pub(super) fn require(machine: &Machine, policy: &'static str, classes: &[Class]) -> Result<(), Self> {
        if machine.is_empty() {
            return Err(Self::NoProcessors);
        }
        match classes.iter().find(|&&class| machine.count(class) == 0) {
            Some(&class) => Err(Self::MissingClass { policy, class }),
            None => Ok(()),
        }
    }
}
