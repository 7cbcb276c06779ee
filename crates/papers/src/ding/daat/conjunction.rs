//! AND, a document at a time: forward seeks from the shortest list.

use super::cursor::{Advance, Cursor};
use super::lists::CodedLists;
use tandem_core::base::ids::DocId;
use tandem_core::index::Bm25;
use tandem_core::query::QueryTerm;
use tandem_core::search::TopK;

/// Offers every document that all lists have. Terms ascend by their lists' lengths.
pub(crate) fn intersect(lists: &CodedLists, terms: &[QueryTerm], best: &mut TopK) {
    let mut cursors: Vec<Cursor<'_>> = terms.iter().map(|term| lists.cursor(term.term)).collect();
    let weights: Vec<f32> = terms.iter().map(|term| lists.weight(term)).collect();
    let Some((shortest, others)) = cursors.split_first_mut() else { return };
    let mut target = 0;
    loop {
        let doc = shortest.seek(target, Advance::BySkips);
        if doc == DocId::END.0 {
            return;
        }
        let beyond = others.iter_mut().map(|cursor| cursor.seek(doc, Advance::BySkips)).find(|&found| found > doc);
        if let Some(beyond) = beyond {
            target = beyond;
            continue;
        }
        let norm = lists.norm(doc);
        let share = |cursor: &mut Cursor<'_>, weight: f32| {
            let place = cursor.place();
            Bm25::score(weight, cursor.freq(place), norm)
        };
        let mut score = share(shortest, weights[0]);
        for (cursor, &weight) in others.iter_mut().zip(&weights[1..]) {
            score += share(cursor, weight);
        }
        best.offer(doc, score);
        target = doc + 1;
    }
}
