//! The workload as a run reads it.

use super::SimQuery;
use crate::cost::Cost;
use crate::ids::QueryId;
use crate::machine::{Class, Machine, PerClass};
use crate::prefetch::prefetch;
use crate::time::Nanos;

/// Queries by row: what they cost in truth and by estimate, on the classes that the machine has, close together.
///
/// A run reads rows at random, each of them twice, so that its speed is that of the memory that they lie in: here ten
/// thousand stay in a core's own cache, and a row is one or two cache lines.
#[derive(Clone, Debug)]
pub(super) struct QueryTable {
    ids: Vec<QueryId>,
    /// By row: true costs by class, then estimates by class. At the end one that is [`Cost::NEVER`].
    costs: Vec<Cost>,
    num_classes: usize,
    /// By class: where its true cost and its estimate stand.
    service: PerClass<Place>,
    estimates: PerClass<Place>,
}

/// A column of the table: its distance from the beginning, and from row to row. A class that the machine lacks has the last
/// cost for a column, so that nobody need ask which it is.
#[derive(Clone, Copy, Debug)]
struct Place {
    first: usize,
    stride: usize,
}

impl QueryTable {
    pub(super) fn of(queries: &[SimQuery], machine: &Machine) -> Self {
        let classes: Vec<Class> = machine.classes().collect();
        let num_classes = classes.len();
        let costs = queries.iter().flat_map(|query| {
            let service = classes.iter().map(|&class| query.service[class]);
            service.chain(classes.iter().map(|&class| query.estimate[class]))
        });
        let mut costs: Vec<Cost> = costs.collect();
        let never = Place { first: costs.len(), stride: 0 };
        costs.push(Cost::NEVER);
        let column = |class: Class, first: usize| {
            let place = classes.iter().position(|&of| of == class);
            place.map_or(never, |place| Place { first: first + place, stride: 2 * num_classes })
        };
        Self {
            ids: queries.iter().map(|query| query.id).collect(),
            costs,
            num_classes,
            service: PerClass::from_fn(|class| column(class, 0)),
            estimates: PerClass::from_fn(|class| column(class, num_classes)),
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
        self.costs[self.service[class].of(row)]
    }

    /// What it is expected to cost.
    #[inline]
    pub(super) fn estimate(&self, row: u32) -> PerClass<Cost> {
        PerClass::from_fn(|class| self.costs[self.estimates[class].of(row)])
    }

    /// Asks for what is kept of a row, which must be one of the table's.
    #[inline]
    pub(super) fn prefetch(&self, row: u32) {
        assert!((row as usize) < self.ids.len(), "row {row} of {} queries", self.ids.len());
        prefetch(&self.costs[self.place(row)..], 2 * self.num_classes * size_of::<Cost>());
    }

    #[inline]
    fn place(&self, row: u32) -> usize {
        row as usize * 2 * self.num_classes
    }
}

impl Place {
    #[inline]
    fn of(self, row: u32) -> usize {
        self.first + row as usize * self.stride
    }
}

/// The same for [lines](super::lines): true costs by class, and of estimates what a query takes alone.
#[derive(Clone, Debug)]
pub(super) struct LinesTable {
    ids: Vec<QueryId>,
    alone: Vec<PerClass<Nanos>>,
    /// By row, the classes that the machine has.
    service: Vec<Cost>,
    num_classes: usize,
    places: PerClass<usize>,
}

impl LinesTable {
    pub(super) fn of(queries: &[SimQuery], machine: &Machine) -> Self {
        let classes: Vec<Class> = machine.classes().collect();
        let mut service = Vec::with_capacity(queries.len() * classes.len());
        for query in queries {
            service.extend(classes.iter().map(|&class| query.service[class]));
        }
        let alone = |query: &SimQuery| {
            let mut alone = PerClass::from_fn(|_| Nanos::MAX);
            classes.iter().for_each(|&class| alone[class] = query.estimate[class].alone);
            alone
        };
        Self {
            ids: queries.iter().map(|query| query.id).collect(),
            alone: queries.iter().map(alone).collect(),
            service,
            num_classes: classes.len(),
            places: PerClass::from_fn(|class| classes.iter().position(|&of| of == class).unwrap_or_default()),
        }
    }

    /// The query's number in the workload.
    #[inline]
    pub(super) fn id(&self, row: u32) -> QueryId {
        // Rows are in range; a sink that has no use for it need not look.
        self.ids.get(row as usize).copied().unwrap_or_default()
    }

    /// What it truly costs; never asked of a class that the machine lacks.
    #[inline]
    pub(super) fn service(&self, row: u32, class: Class) -> Cost {
        self.service[row as usize * self.num_classes + self.places[class]]
    }

    /// What it is expected to take alone, by class.
    #[inline]
    pub(super) fn alone(&self, row: u32) -> &PerClass<Nanos> {
        &self.alone[row as usize]
    }

    /// Asks for what is kept of a row, which must be one of the table's.
    #[inline]
    pub(super) fn prefetch(&self, row: u32) {
        prefetch(&self.alone[row as usize..], 1);
        prefetch(&self.service[row as usize * self.num_classes..], self.num_classes * size_of::<Cost>());
    }
}
