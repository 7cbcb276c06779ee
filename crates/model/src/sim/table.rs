//! The workload in the layout that a run reads.

use crate::base::ids::QueryId;
use crate::base::machine::{Class, Machine, PerClass};
use crate::base::prefetch::prefetch;
use crate::base::time::Nanos;
use crate::cost::{Cost, MachineModel};

/// A query of the workload, with its true costs and the policy's estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimQuery {
    /// Its number in the workload.
    pub id: QueryId,
    /// Its true cost on each class. It is never read for a class that the machine lacks.
    pub service: PerClass<Cost>,
    /// Its estimated cost; [`Cost::NEVER`] on a class that the machine lacks.
    pub estimate: PerClass<Cost>,
}

/// Queries by row: their true costs on the classes of the machine, and their estimates. An estimate is a cost or, for
/// [lines](super::lines), only the time alone.
///
/// A run reads rows at random, each twice, so memory limits its speed. A row takes two or three cache lines, prefetched
/// before they are read.
#[derive(Clone, Debug)]
pub(super) struct QueryTable<E> {
    service: ServiceTable,
    /// Estimates by row, in the layout of jobs. A value put together from parts and copied at once would be read before
    /// its writes have ended, which stalls the processor.
    estimates: Vec<PerClass<E>>,
}

impl QueryTable<Cost> {
    /// Keeps all estimated costs; [`Cost::NEVER`] on classes that the machine lacks.
    pub(super) fn of(queries: &[SimQuery], model: &MachineModel) -> Self {
        Self::with(queries, model, Cost::NEVER, |cost| cost)
    }
}

impl QueryTable<Nanos> {
    /// Keeps estimated times alone; [`Nanos::MAX`] on classes that the machine lacks.
    pub(super) fn of_alone(queries: &[SimQuery], model: &MachineModel) -> Self {
        Self::with(queries, model, Nanos::MAX, |cost| cost.alone)
    }
}

impl<E: Copy> QueryTable<E> {
    fn with(queries: &[SimQuery], model: &MachineModel, lacking: E, part: impl Fn(Cost) -> E) -> Self {
        let has = |class| model.machine.count(class) > 0;
        let estimate = |query: &SimQuery| {
            PerClass::from_fn(|class| if has(class) { part(query.estimate[class]) } else { lacking })
        };
        // Failed lanes run on a CPU, which the machine may otherwise lack.
        let service = ServiceTable::of(queries, &model.with_fallbacks().machine);
        Self { service, estimates: queries.iter().map(estimate).collect() }
    }

    #[inline]
    pub(super) fn id(&self, row: u32) -> QueryId {
        self.service.id(row)
    }

    /// The true cost of a row; the class must be one of the machine's or that of fallbacks.
    #[inline]
    pub(super) fn service(&self, row: u32, class: Class) -> Cost {
        self.service.cost(row, class)
    }

    #[inline]
    pub(super) fn estimate(&self, row: u32) -> &PerClass<E> {
        &self.estimates[row as usize]
    }

    #[inline]
    pub(super) fn prefetch(&self, row: u32) {
        prefetch(&self.estimates[row as usize..], size_of::<PerClass<E>>());
        self.service.prefetch(row);
    }
}

/// Numbers and true costs by row, for the classes of the machine.
///
/// They are stored in columns: on most machines a run reads only the time alone.
#[derive(Clone, Debug)]
struct ServiceTable {
    ids: Vec<QueryId>,
    /// The two numbers of a [`Cost`], by class, then by row.
    alone: Vec<Nanos>,
    added: Vec<Nanos>,
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
        // Rows are in range; the load is removed where the number is not used.
        self.ids.get(row as usize).copied().unwrap_or_default()
    }

    #[inline]
    fn cost(&self, row: u32, class: Class) -> Cost {
        let at = self.columns[class] + row as usize;
        // The load is removed where `added` is not used.
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
