//! The workload as a run reads it.

use super::SimQuery;
use crate::cost::Cost;
use crate::ids::QueryId;
use crate::machine::{Class, Machine, PerClass};
use crate::prefetch::prefetch;
use crate::time::Nanos;

/// Queries by row: what they truly cost on the classes that the machine has, and what they are expected to cost.
///
/// A run reads rows at random, each of them twice, so that its speed is that of the memory that they lie in: a row is two or
/// three cache lines, asked for before it is read.
#[derive(Clone, Debug)]
pub(super) struct QueryTable {
    service: ServiceTable,
    /// By row, in one piece as jobs have them: what is put together and copied right away is read while it is still being
    /// written, which takes a processor longer than all the rest.
    estimates: Vec<PerClass<Cost>>,
}

impl QueryTable {
    pub(super) fn of(queries: &[SimQuery], machine: &Machine) -> Self {
        let estimate = |query: &SimQuery| on_classes_of(machine, Cost::NEVER, |class| query.estimate[class]);
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

    /// What it is expected to cost.
    #[inline]
    pub(super) fn estimate(&self, row: u32) -> &PerClass<Cost> {
        &self.estimates[row as usize]
    }

    /// Asks for what is kept of a row, which must be one of the table's.
    #[inline]
    pub(super) fn prefetch(&self, row: u32) {
        prefetch(&self.estimates[row as usize..], size_of::<PerClass<Cost>>());
        self.service.prefetch(row);
    }
}

/// The same for [lines](super::lines), which need less: of estimates what a query takes alone.
#[derive(Clone, Debug)]
pub(super) struct LinesTable {
    service: ServiceTable,
    alone: Vec<PerClass<Nanos>>,
}

impl LinesTable {
    pub(super) fn of(queries: &[SimQuery], machine: &Machine) -> Self {
        let alone = |query: &SimQuery| on_classes_of(machine, Nanos::MAX, |class| query.estimate[class].alone);
        Self { service: ServiceTable::of(queries, machine), alone: queries.iter().map(alone).collect() }
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

    /// What it is expected to take alone, by class.
    #[inline]
    pub(super) fn alone(&self, row: u32) -> &PerClass<Nanos> {
        &self.alone[row as usize]
    }

    /// Asks for what is kept of a row, which must be one of the table's.
    #[inline]
    pub(super) fn prefetch(&self, row: u32) {
        prefetch(&self.alone[row as usize..], size_of::<PerClass<Nanos>>());
        self.service.prefetch(row);
    }
}

/// Numbers and true costs by row, of the classes that the machine has.
///
/// In columns: on most machines a query's time alone is all that is read.
#[derive(Clone, Debug)]
struct ServiceTable {
    ids: Vec<QueryId>,
    /// By class, by row: the time alone, and what else a [`Cost`] has.
    alone: Vec<Nanos>,
    others: Vec<(Nanos, Nanos)>,
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
            others: costs().map(|cost| (cost.added, cost.bus)).collect(),
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
        let (added, bus) = self.others.get(at).copied().unwrap_or_default();
        Cost { alone: self.alone[at], added, bus }
    }

    #[inline]
    fn prefetch(&self, row: u32) {
        for &class in &self.classes {
            prefetch(&self.alone[self.columns[class] + row as usize..], 1);
        }
    }
}

/// A value for each class that the machine has, and `lacking` for the others.
fn on_classes_of<T: Copy>(machine: &Machine, lacking: T, value: impl Fn(Class) -> T) -> PerClass<T> {
    PerClass::from_fn(|class| if machine.count(class) > 0 { value(class) } else { lacking })
}
