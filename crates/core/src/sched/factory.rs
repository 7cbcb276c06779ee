//! Factories: what makes a policy for a machine, and what it promises of all that it makes.

use super::{Policy, PolicyError, Shed};
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::cost::{Cost, MachineModel};

/// What every policy of a factory keeps to: then rates can be certified without playing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// While jobs wait, the machine is idle for at most this long before a batch starts. Zero for policies that always
    /// keep something busy.
    pub idle_wait: Nanos,
}

/// Makes policies. Simulations, capacity searches, bounds and live runs take one of these, yours like the lab's own.
pub trait PolicyFactory: Send + Sync {
    /// The name of its policies, as in files.
    fn name(&self) -> &str;

    /// A policy with empty queues, which knows `model`.
    ///
    /// # Errors
    /// If the machine lacks what the policy needs, or an option makes no sense.
    fn build(&self, model: &MachineModel) -> Result<Box<dyn Policy>, PolicyError>;

    /// What its policies promise; `None`, if nothing: then every rate is played.
    fn promise(&self) -> Option<Promise> {
        None
    }

    /// Whether its policies ever put several queries into one batch. Where they don't, what batches gain makes no rate stable for
    /// them, and none above is tried.
    fn makes_batches(&self) -> bool {
        true
    }

    /// What its policies [let be dropped](Policy::sheds).
    fn sheds(&self) -> Shed {
        Shed::Nothing
    }

    /// Whether a query with these predicted costs may run on `class`; of interest where there is a [`Promise`].
    fn may_run_on(&self, class: Class, predicted: &PerClass<Cost>) -> bool {
        let _ = (class, predicted);
        true
    }
}
