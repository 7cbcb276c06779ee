//! Jobs: queries that have arrived.

use crate::ids::{JobId, QueryId};
use crate::machine::{Class, PerClass};
use crate::time::Nanos;

/// One arrival of a query, with what a policy may know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Which arrival it is.
    pub id: JobId,
    /// Which query it asks.
    pub query: QueryId,
    /// When it was meant to arrive; delay counts from here.
    pub arrival: Nanos,
    /// When it should have finished.
    pub deadline: Nanos,
    /// Estimated service time on each kind of processor. On a kind that the machine lacks, [`Nanos::MAX`].
    pub predicted: PerClass<Nanos>,
}

impl Job {
    /// The kind of processor that is predicted to answer it sooner; the CPU if both take equally long.
    #[must_use]
    pub fn preferred_class(&self) -> Class {
        self.predicted.least()
    }
}

/// Jobs that one processor runs together. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Batch {
    /// A single job, the common case, without an allocation.
    One(Job),
    /// Several jobs in one submission.
    Many(Vec<Job>),
}

impl Batch {
    /// Its jobs.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        match self {
            Self::One(job) => std::slice::from_ref(job),
            Self::Many(jobs) => jobs,
        }
    }
}
