//! Jobs: queries that have arrived.

use crate::base::ids::{JobId, QueryId};
use crate::base::machine::{Class, PerClass};
use crate::base::named::named_enum;
use crate::base::time::Nanos;
use crate::cost::Cost;

named_enum! {
    /// The jobs that are dropped.
    #[derive(Default)]
    pub enum Shed {
        #[default]
        Nothing = "nothing": "Every query runs, even if it is late",
        Late = "late": "Queries that are predicted to finish after their deadline are dropped",
    }
}

/// One arrival of a query, with what a policy may know of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The number of the arrival.
    pub id: JobId,
    /// The query's id in the workload.
    pub query: QueryId,
    /// The query's row in the workload.
    pub row: u32,
    /// Its importance: 0 is the most important.
    pub priority: u8,
    /// Intended arrival; delay counts from here.
    pub arrival: Nanos,
    /// When it should finish.
    pub deadline: Nanos,
    /// Expected cost on each class of processor; [`Cost::NEVER`] on classes that the machine lacks.
    pub predicted: PerClass<Cost>,
}

impl Job {
    /// Expected service time on `class`, alone.
    #[inline]
    pub fn alone(&self, class: Class) -> Nanos {
        self.predicted[class].alone
    }

    /// The class that is expected to answer it soonest; ties go to the first.
    #[inline]
    pub fn preferred_class(&self) -> Class {
        preferred_class(&self.predicted)
    }

    /// Time from arrival to deadline.
    #[inline]
    pub fn allowance(&self) -> Nanos {
        self.deadline.since(self.arrival)
    }
}

/// The class that answers a query of these costs soonest when alone; ties go to the first.
#[inline]
pub fn preferred_class(costs: &PerClass<Cost>) -> Class {
    soonest_class(&costs.map(|cost| cost.alone))
}

/// The class with the least time alone; ties go to the first.
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
