//! The workload as a run reads it.

use super::SimQuery;
use crate::base::ids::QueryId;
use crate::base::machine::{Class, Machine, PerClass};
use crate::base::prefetch::prefetch;
use crate::base::time::Nanos;
use crate::cost::Cost;

/// Queries by row: what they truly cost on the classes that the machine has, and what they are expected to: their costs, or for
/// [lines](super::lines), which need no more, the time that they take alone.
///
/// A run reads rows at random, each of them twice, so that its speed is that of the memory that they lie in: a row is two or
/// three cache lines, asked for before it is read.
#[derive(Clone, Debug)]
pub(super) struct QueryTable<E> {
    service: ServiceTable,
    /// By row, in one piece as jobs have them: what is put together and copied right away is read while it is still being
    /// written, which takes a processor longer than all the rest.
    estimates: Vec<PerClass<E>>,
}

impl QueryTable<Cost> {
    /// With all that a query is expected to cost; [`Cost::NEVER`] on classes that the machine lacks.
    pub(super) fn of(queries: &[SimQuery], machine: &Machine) -> Self {
        Self::with(queries, machine, Cost::NEVER, |cost| cost)
    }
}

impl QueryTable<Nanos> {
    /// With what a query is expected to take alone; [`Nanos::MAX`] on classes that the machine lacks.
    pub(super) fn of_alone(queries: &[SimQuery], machine: &Machine) -> Self {
        Self::with(queries, machine, Nanos::MAX, |cost| cost.alone)
    }
}

impl<E: Copy> QueryTable<E> {
    fn with(queries: &[SimQuery], machine: &Machine, lacking: E, part: impl Fn(Cost) -> E) -> Self {
        let has = |class| machine.count(class) > 0;
        let estimate = |query: &SimQuery| {
            PerClass::from_fn(|class| if has(class) { part(query.estimate[class]) } else { lacking })
        };
        Self { service: ServiceTable::of(queries, machine), estimates: queries.iter().map(estimate).collect() }
    }

    /// The query's number in the workload.
    #[inline]
    pub(super) fn id(&self, row: u32) -> QueryId {
        self.service.id(row)
    }

    /// What it truly costs; never asked of a class that the machine lacks.
    #[inline]
    pub(super) fn service(&self, row: u32, class: Class) -> Cost {
        self.service.cost(row, class)
    }

    /// What is expected of it, by class.
    #[inline]
    pub(super) fn estimate(&self, row: u32) -> &PerClass<E> {
        &self.estimates[row as usize]
    }

    /// Asks for what is kept of a row, which must be one of the table's.
    #[inline]
    pub(super) fn prefetch(&self, row: u32) {
        prefetch(&self.estimates[row as usize..], size_of::<PerClass<E>>());
        self.service.prefetch(row);
    }
}

/// Numbers and true costs by row, of the classes that the machine has.
///
/// In columns: on most machines a query's time alone is all that is read.
#[derive(Clone, Debug)]
struct ServiceTable {
    ids: Vec<QueryId>,
    /// By class, by row: the two numbers of a [`Cost`].
    alone: Vec<Nanos>,
    added: Vec<Nanos>,
    /// By class: where its column begins.
    columns: PerClass<usize>,
    classes: Vec<Class>,
}

impl ServiceTable {
    fn of(queries: &[SimQuery], machine: &Machine) -> Self {
        let classes: Vec<Class> = machine.classes().collect();
        let costs = || classes.iter().flat_map(|&class| queries.iter().map(move |query| query.service[class]));
        let column = |class| classes.iter().position(|&of| of == class).unwrap_or_default() * queries.len();
        Self {
            ids: queries.iter().map(|query| query.id).collect(),
            alone: costs().map(|cost| cost.alone).collect(),
            added: costs().map(|cost| cost.added).collect(),
            columns: PerClass::from_fn(column),
            classes,
        }
    }

    #[inline]
    fn id(&self, row: u32) -> QueryId {
        // Rows are in range; whoever has no use for the number need not look.
        self.ids.get(row as usize).copied().unwrap_or_default()
    }

    #[inline]
    fn cost(&self, row: u32, class: Class) -> Cost {
        let at = self.columns[class] + row as usize;
        // Likewise.
        let added = self.added.get(at).copied().unwrap_or_default();
        Cost { alone: self.alone[at], added }
    }

    #[inline]
    fn prefetch(&self, row: u32) {
        for &class in &self.classes {
            prefetch(&self.alone[self.columns[class] + row as usize..], 1);
        }
    }
}
