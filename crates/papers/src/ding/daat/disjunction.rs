//! OR, a document at a time: all lists are merged, and every posting is scored.

use super::cursor::{Advance, Cursor};
use super::lists::CodedLists;
use tandem_core::base::ids::DocId;
use tandem_core::index::Bm25;
use tandem_core::query::QueryTerm;
use tandem_core::search::TopK;

/// Offers every document that any list has. Terms are in the query's order.
pub(crate) fn unite(lists: &CodedLists, terms: &[QueryTerm], best: &mut TopK) {
    let mut cursors: Vec<(Cursor<'_>, f32)> =
        terms.iter().map(|term| (lists.cursor(term.term), lists.weight(term))).collect();
    let mut docs: Vec<u32> = cursors.iter_mut().map(|(cursor, _)| cursor.seek(0, Advance::BlockByBlock)).collect();
    loop {
        // Queries have a few terms: looking at all of them is quicker than a heap.
        let doc = docs.iter().copied().min().unwrap_or(DocId::END.0);
        if doc == DocId::END.0 {
            return;
        }
        let norm = lists.norm(doc);
        let mut score = 0.0;
        for ((cursor, weight), at) in cursors.iter_mut().zip(&mut docs) {
            if *at == doc {
                let place = cursor.place();
                score += Bm25::score(*weight, cursor.freq(place), norm);
                *at = cursor.seek(doc + 1, Advance::BlockByBlock);
            }
        }
        best.offer(doc, score);
    }
}
