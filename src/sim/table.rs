//! The workload as a run reads it.

use super::SimQuery;
use crate::cost::Cost;
use crate::ids::QueryId;
use crate::machine::{Class, Machine, PerClass};
use crate::prefetch::prefetch;

/// Queries by row: what they cost in truth and by estimate, on the classes that the machine has, close together.
///
/// A run reads rows at random, each of them twice, so that its speed is that of the memory that they lie in: here ten
/// thousand stay in a core's own cache, and a row is one or two cache lines.
#[derive(Clone, Debug)]
pub(super) struct QueryTable {
    ids: Vec<QueryId>,
    /// By row: true costs by class, then estimates by class.
    costs: Vec<Cost>,
    num_classes: usize,
    /// By class: its place among those that the machine has.
    places: PerClass<Option<usize>>,
}

impl QueryTable {
    pub(super) fn of(queries: &[SimQuery], machine: &Machine) -> Self {
        let classes: Vec<Class> = machine.classes().collect();
        let costs = queries.iter().flat_map(|query| {
            let service = classes.iter().map(|&class| query.service[class]);
            service.chain(classes.iter().map(|&class| query.estimate[class]))
        });
        Self {
            ids: queries.iter().map(|query| query.id).collect(),
            costs: costs.collect(),
            num_classes: classes.len(),
            places: PerClass::from_fn(|class| classes.iter().position(|&of| of == class)),
        }
    }

    /// The query's number in the workload.
    #[inline]
    pub(super) fn id(&self, row: u32) -> QueryId {
        self.ids[row as usize]
    }

    /// What it truly costs; never asked of a class that the machine lacks.
    #[inline]
    pub(super) fn service(&self, row: u32, class: Class) -> Cost {
        self.costs[self.place(row) + self.places[class].unwrap_or_default()]
    }

    /// What it is expected to cost.
    #[inline]
    pub(super) fn estimate(&self, row: u32) -> PerClass<Cost> {
        let estimates = &self.costs[self.place(row) + self.num_classes..][..self.num_classes];
        PerClass::from_fn(|class| self.places[class].map_or(Cost::NEVER, |place| estimates[place]))
    }

    /// Asks for what is kept of a row.
    #[inline]
    pub(super) fn prefetch(&self, row: u32) {
        prefetch(&self.costs[self.place(row)..], 2 * self.num_classes * size_of::<Cost>());
    }

    #[inline]
    fn place(&self, row: u32) -> usize {
        row as usize * 2 * self.num_classes
    }
}
