//! WAND: documents that the lists' best scores exclude are passed over.
//!
//! Cursors are kept in the order of their documents. The **pivot** is the first among them at which the best scores of all
//! lists up to it exceed the threshold: no document before the pivot's can enter. If the first cursor stands on that
//! document, too, it is scored; if not, a cursor before the pivot goes there: of the shortest list, which skips most.
//!
//! ```text
//! documents     12     40     97    210        threshold 5.0
//! best scores  1.5  +  2.0 +  3.1              6.6 > 5.0: the pivot is 97
//! ```
//!
//! Source: Broder, Carmel, Herscovici, Soffer, Zien, "Efficient query evaluation using a two-level retrieval process", CIKM
//! 2003.

use super::cursor::END;
use super::search::Scan;
use crate::codec::CodecError;

/// Offers the documents of the range that may be among its best.
pub(crate) fn scan(scan: &mut Scan<'_>) -> Result<(), CodecError> {
    let mut order = scan.order();
    while let Some((pivot, doc)) = find_pivot(scan, &order) {
        if scan.cursors[order[0]].doc() == doc {
            scan.take(doc)?;
        } else {
            let behind = shortest_behind(scan, &order[..pivot], doc);
            scan.cursors[behind].next_geq(doc)?;
        }
        scan.restore(&mut order);
    }
    Ok(())
}

/// The pivot's place in the order, and its document; none if no document that is left can enter.
#[inline]
pub(crate) fn find_pivot(scan: &Scan<'_>, order: &[usize]) -> Option<(usize, u32)> {
    let mut bound = 0.0;
    for (place, &cursor) in order.iter().enumerate() {
        let cursor = &scan.cursors[cursor];
        if cursor.doc() == END {
            return None;
        }
        bound += cursor.max_score();
        if scan.would_enter(bound) {
            return Some((place, cursor.doc()));
        }
    }
    None
}

/// Of the cursors `before` a pivot whose documents are before `doc`, the one of the shortest list: the first in the query's
/// order. There is one.
#[inline]
pub(crate) fn shortest_behind(scan: &Scan<'_>, before: &[usize], doc: u32) -> usize {
    before.iter().copied().filter(|&cursor| scan.cursors[cursor].doc() < doc).min().unwrap_or(before[0])
}
