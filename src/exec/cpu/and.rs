//! AND: documents that are in every list.
//!
//! The rarest list leads. Each of its documents is looked up in the others, rarest first, by
//! [`next_geq`](Cursor::next_geq); the first list without it names the next document worth a try, to which the leader
//! jumps in turn:
//!
//! ```text
//! a (rare)    7 -> 90 --------------> 412
//! b           7    90 -> 95 (not 90)  412
//! c (common)  7                       412     match: scored in the query's order, which is a, b, c
//! ```
//!
//! Only blocks in which a cursor lands are decoded, and frequencies only in blocks with a match.

use crate::exec::TopK;
use crate::ids::DocId;
use crate::index::Bm25;

use super::cursor::Cursor;

/// Offers every document below `end` of all lists to `best`. Cursors and weights are in the query's order of terms: rarest
/// first.
pub(super) fn search(cursors: &mut [Cursor<'_>], end: DocId, weights: &[f32], norms: &[f32], best: &mut TopK) {
    let Some((leader, others)) = cursors.split_first_mut() else { return };
    let mut candidate = leader.doc();
    while candidate < end {
        // The first other list that skips the candidate: no document before its own can match.
        let beyond = others.iter_mut().map(|cursor| cursor.next_geq(candidate)).find(|&doc| doc != candidate);
        if let Some(beyond) = beyond {
            candidate = leader.next_geq(beyond);
            continue;
        }
        let norm = norms[candidate.index()];
        let mut score = Bm25::score(weights[0], leader.freq(), norm);
        for (cursor, &weight) in others.iter_mut().zip(&weights[1..]) {
            score += Bm25::score(weight, cursor.freq(), norm);
        }
        best.offer(candidate.0, score);
        candidate = leader.next();
    }
}
