//! Factories: they make a policy for a machine, and state properties of all policies that they make.

use super::{Policy, PolicyError, Shed};
use crate::base::machine::{Class, PerClass};
use crate::cost::{Cost, MachineModel};

/// Makes policies. Simulations, capacity searches, bounds and live runs accept any factory, also a user's own.
pub trait PolicyFactory: Send + Sync {
    /// The name of its policies in files.
    fn name(&self) -> &str;

    /// A policy with empty queues for the machine of `model`. Fails if the machine lacks what the policy needs, or an
    /// option is out of range.
    fn build(&self, model: &MachineModel) -> Result<Box<dyn Policy>, PolicyError>;

    /// Whether its policies ever put several queries into one batch. Without batches the capacity bound is lower, and no rate
    /// above it is tried.
    fn makes_batches(&self) -> bool {
        true
    }

    /// The jobs that its policies [allow to be dropped](Policy::sheds).
    fn sheds(&self) -> Shed {
        Shed::Nothing
    }

    /// Whether a query with these predicted costs may run on `class`.
    fn may_run_on(&self, class: Class, predicted: &PerClass<Cost>) -> bool {
        let _ = (class, predicted);
        true
    }
}
