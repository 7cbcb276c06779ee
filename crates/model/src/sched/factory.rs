//! Factories: they make a policy for a machine, and promise properties of all policies that they make.

use super::{Policy, PolicyError, Shed};
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::cost::{Cost, MachineModel};

/// A guarantee of every policy of a factory. With it rates can be certified without simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkConservation {
    /// The longest time for which the machine is idle while jobs wait. It is zero for work-conserving policies.
    pub idle_wait: Nanos,
}

/// Makes policies. Simulations, capacity searches, bounds and live runs accept any factory, also a user's own.
pub trait PolicyFactory: Send + Sync {
    /// The name of its policies in files.
    fn name(&self) -> &str;

    /// A policy with empty queues for the machine of `model`. Fails if the machine lacks what the policy needs, or an
    /// option is out of range.
    fn build(&self, model: &MachineModel) -> Result<Box<dyn Policy>, PolicyError>;

    /// The guarantee of its policies; with `None` every rate is simulated.
    fn promise(&self) -> Option<WorkConservation> {
        None
    }

    /// Whether its policies ever put several queries into one batch. Without batches the capacity bound is lower, and no rate
    /// above it is tried.
    fn makes_batches(&self) -> bool {
        true
    }

    /// The jobs that its policies [allow to be dropped](Policy::sheds).
    fn sheds(&self) -> Shed {
        Shed::Nothing
    }

    /// Whether a query with these predicted costs may run on `class`. It matters only with a [`WorkConservation`].
    fn may_run_on(&self, class: Class, predicted: &PerClass<Cost>) -> bool {
        let _ = (class, predicted);
        true
    }
}
