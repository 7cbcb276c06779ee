//! Block-Max MaxScore: MaxScore whose terms are divided afresh for every window of documents.
//!
//! The bound of a term inside a window is the best of its blocks' there, often far below that of the whole list. So more terms
//! are non-essential, and a window in which all bounds together don't reach the floor is skipped without decoding a block:
//!
//! ```text
//! window       0        1        2        3            floor 5.0
//! rare      |  3.1   |  3.1   |  6.0   |  2.2   |
//! common    |  1.7   |  2.1   |  1.2   |  1.1   |
//!              skipped  both     rare     skipped     3.1 + 2.1 > 5.0: neither alone suffices
//! ```
//!
//! Bounds are refreshed once a window, not once a document: doing the latter costs more than it saves.
//!
//! Source: Chakrabarti, Chaudhuri and Ganti, "Interval-based Pruning for Top-k Processing over Compressed Lists", ICDE 2011;
//! Dimopoulos, Nepomnyachiy and Suel, "Optimizing Top-k Document Retrieval Strategies for Block-Max Indexes", WSDM 2013.

use super::bulk::BulkScorer;
use super::floor::Floor;
use super::term::Term;
use super::window_table::WindowTable;
use crate::exec::TopK;

/// Offers every document of the table's windows that can enter to `best`, in ascending order.
pub(super) fn search(
    terms: &[Term<'_>],
    table: &WindowTable,
    norms: &[f32],
    bulk: &mut BulkScorer,
    floor: &mut Floor,
    best: &mut TopK,
) {
    for window in 0..table.len() {
        if table.sum(window) > floor.pruning() {
            bulk.score(terms, norms, &table.window(window), floor, best);
        }
    }
}
