//! Block-Max WAND: as WAND, but the blocks' best scores have their say, too.
//!
//! When the lists' best scores let a pivot pass, the best scores of the blocks that would hold its document are summed up;
//! nothing is decoded for that. If they exclude it, they exclude every document up to where the first of these blocks ends,
//! or the next cursor stands: a cursor goes on past that.
//!
//! ```text
//! term a   |##3.1##|   0.4    |  2.0  |        threshold 3.5
//! term b   |     2.2  |   1.9    |  4.0  |     0.4 + 1.9 <= 3.5 at the pivot
//!                    ^pivot   └──▶ on past the end of a's block
//! ```
//!
//! Source: Ding and Suel, "Faster Top-k Document Retrieval Using Block-Max Indexes", SIGIR 2011.

use super::cursor::END;
use super::search::Scan;
use super::wand::{find_pivot, shortest_behind};
use crate::codec::CodecError;

/// Offers the documents of the range that may be among its best.
pub(crate) fn scan(scan: &mut Scan<'_>) -> Result<(), CodecError> {
    let mut order = scan.order();
    while let Some((mut pivot, doc)) = find_pivot(scan, &order) {
        // All lists that stand on the document belong to it.
        while order.get(pivot + 1).is_some_and(|&next| scan.cursors[next].doc() == doc) {
            pivot += 1;
        }
        let mut bound = 0.0;
        let mut least_end = END;
        for &cursor in &order[..=pivot] {
            let (block_bound, block_end) = scan.cursors[cursor].shallow(doc);
            bound += block_bound;
            least_end = least_end.min(block_end);
        }
        if !scan.would_enter(bound) {
            let next = order.get(pivot + 1).map_or(END, |&next| scan.cursors[next].doc());
            let target = next.min(least_end.saturating_add(1));
            // The one of the shortest list, as in WAND.
            let moving = order[..=pivot].iter().copied().min().unwrap_or(order[0]);
            scan.cursors[moving].next_geq(target)?;
        } else if scan.cursors[order[0]].doc() == doc {
            scan.take(doc)?;
        } else {
            let behind = shortest_behind(scan, &order[..pivot], doc);
            scan.cursors[behind].next_geq(doc)?;
        }
        scan.restore(&mut order);
    }
    Ok(())
}
