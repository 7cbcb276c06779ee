//! Block-Max MaxScore: MaxScore whose terms are divided afresh for every window of documents.
//!
//! The bound of a term inside a window is the best of its blocks' there, often far below that of the whole list.
//! So more terms are non-essential, and a window in which all bounds together don't reach the threshold is skipped
//! without decoding a block:
//!
//! ```text
//! window       0        1        2        3            threshold 5.0
//! rare      |  3.1   |  3.1   |  6.0   |  2.2   |
//! common    |  1.7   |  2.1   |  1.2   |  1.1   |
//!              skipped  both     rare     skipped     3.1 + 2.1 > 5.0: neither alone suffices
//! ```
//!
//! Terms that lead a pass of their own do so before, with the bounds of lists: they are so few that windows have no
//! say. Bounds are refreshed once a window, not once a document: doing the latter costs more than it saves.
//!
//! Source: Chakrabarti, Chaudhuri and Ganti, "Interval-based Pruning for Top-k Processing over Compressed Lists",
//! ICDE 2011; Dimopoulos, Nepomnyachiy and Suel, "Optimizing Top-k Document Retrieval Strategies for Block-Max
//! Indexes", WSDM 2013.

use super::max_score::WindowSearch;
use super::table::WindowTable;

/// Offers every document that can enter.
pub(crate) fn search(search: &mut WindowSearch<'_>, table: &mut WindowTable) {
    let Some(last) = search.run_leads() else { return };
    table.fill(search.terms, last.first_term, search.docs.clone(), last.window_docs);
    for window in 0..table.len() {
        if table.sum(window) > search.threshold.pruning() {
            search.score(&table.window(window));
        }
    }
}
