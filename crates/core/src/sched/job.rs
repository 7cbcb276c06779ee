//! Jobs: queries that have arrived.

use crate::base::ids::{JobId, QueryId};
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::cost::Cost;

/// One arrival of a query, with what a policy may know of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Which arrival it is.
    pub id: JobId,
    /// Which query it asks: its id in the workload,
    pub query: QueryId,
    /// and its row there.
    pub row: u32,
    /// When it was meant to arrive; delay counts from here.
    pub arrival: Nanos,
    /// When it should have finished.
    pub deadline: Nanos,
    /// What it is expected to cost on each class of processor; [`Cost::NEVER`] on those that the machine lacks.
    pub predicted: PerClass<Cost>,
}

impl Job {
    /// Its expected service time on `class`, alone.
    #[must_use]
    pub fn alone(&self, class: Class) -> Nanos {
        self.predicted[class].alone
    }

    /// The class that is expected to answer it soonest; the first of those that take equally long.
    #[must_use]
    pub fn preferred_class(&self) -> Class {
        preferred_class(&self.predicted)
    }

    /// How much time it may take from its arrival.
    #[must_use]
    pub fn allowance(&self) -> Nanos {
        self.deadline.since(self.arrival)
    }
}

/// The class on which a query of these costs is answered soonest when alone; the first of equals.
#[must_use]
#[inline]
pub fn preferred_class(costs: &PerClass<Cost>) -> Class {
    soonest_class(&costs.map(|cost| cost.alone))
}

/// The same, of what queries take alone.
#[inline]
pub(super) fn soonest_class(alone: &PerClass<Nanos>) -> Class {
    let mut preferred = Class::ALL[0];
    for class in Class::ALL {
        if alone[class] < alone[preferred] {
            preferred = class;
        }
    }
    preferred
}
