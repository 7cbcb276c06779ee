//! What each row of a workload is expected to read.

use crate::cache::ListRead;

/// The reads of each row's query, by list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demands {
    /// By row, and one more: where its lists begin.
    begins: Vec<u32>,
    lists: Vec<ListRead>,
}

impl Demands {
    /// Of rows in order.
    pub(super) fn new<R: IntoIterator<Item = ListRead>>(rows: impl IntoIterator<Item = R>) -> Self {
        let mut demands = Self { begins: vec![0], lists: Vec::new() };
        for row in rows {
            demands.lists.extend(row);
            demands.begins.push(demands.lists.len() as u32);
        }
        demands
    }

    /// What the query in a row reads.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn of(&self, row: u32) -> impl Iterator<Item = ListRead> + use<'_> {
        let row = row as usize;
        self.lists[self.begins[row] as usize..self.begins[row + 1] as usize].iter().copied()
    }
}
