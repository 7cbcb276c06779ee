//! The four strategies of going through a range: AND, OR, WAND and Block-Max WAND.
//!
//! WAND keeps cursors in the order of their documents. The **pivot** is the first one at which the best scores of all lists
//! up to it exceed the threshold; no document before the pivot's can enter. If the first cursor is on that document too, it
//! is scored. Otherwise a cursor before the pivot moves there, that of the shortest list, which skips most:
//!
//! ```text
//! documents     12     40     97    210        threshold 5.0
//! best scores  1.5  +  2.0 +  3.1              6.6 > 5.0: the pivot is 97
//! ```
//!
//! Block-Max WAND then adds the best scores of the blocks that would hold the pivot's document, without decoding them. If
//! these exclude the document, they exclude all documents up to the first end of these blocks, or to the next cursor:
//!
//! ```text
//! term a   |##3.1##|   0.4    |  2.0  |        threshold 3.5
//! term b   |     2.2  |   1.9    |  4.0  |     0.4 + 1.9 <= 3.5 at the pivot
//!                    ^pivot   └──▶ moves past the end of a's block
//! ```
//!
//! Sources: Broder, Carmel, Herscovici, Soffer, Zien, "Efficient query evaluation using a two-level retrieval process", CIKM
//! 2003; Ding and Suel, "Faster Top-k Document Retrieval Using Block-Max Indexes", SIGIR 2011.

use tandem_model::base::named::named_enum;

use super::cursor::{Cursor, END};
use super::scan::Scan;
use crate::codec::CodecError;

named_enum! {
    pub(crate) enum Strategy {
        And = "AND",
        /// Documents with any term; every posting is scored.
        Or = "OR",
        /// `Or` without documents that the best scores of lists exclude.
        Wand = "WAND",
        /// `Wand` without documents that the best scores of blocks exclude.
        Bmw = "BMW",
    }
}

impl Strategy {
    /// Offers all documents of the range that may be among its best.
    pub(crate) fn run(self, scan: &mut Scan<'_>) -> Result<(), CodecError> {
        match self {
            Self::And => and(scan),
            Self::Or => or(scan),
            Self::Wand => wand(scan),
            Self::Bmw => bmw(scan),
        }
    }
}

/// The shortest list proposes a document; the others confirm it or propose a later one.
fn and(scan: &mut Scan<'_>) -> Result<(), CodecError> {
    'proposals: loop {
        let doc = scan.cursors[0].doc();
        if doc == END {
            return Ok(());
        }
        for place in 1..scan.cursors.len() {
            scan.cursors[place].next_geq(doc)?;
            let found = scan.cursors[place].doc();
            if found == END {
                return Ok(());
            }
            if found > doc {
                scan.cursors[0].next_geq(found)?;
                continue 'proposals;
            }
        }
        scan.take(doc)?;
    }
}

fn or(scan: &mut Scan<'_>) -> Result<(), CodecError> {
    loop {
        let doc = scan.cursors.iter().map(Cursor::doc).min().unwrap_or(END);
        if doc == END {
            return Ok(());
        }
        scan.take(doc)?;
    }
}

fn wand(scan: &mut Scan<'_>) -> Result<(), CodecError> {
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

/// Returns the pivot's place in the order, and its document; `None` if no later document can enter.
#[inline]
fn find_pivot(scan: &Scan<'_>, order: &[usize]) -> Option<(usize, u32)> {
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

/// Returns the cursor of the shortest list, the first in the query's order, among those `before` a pivot whose documents are
/// before `doc`. There is one.
#[inline]
fn shortest_behind(scan: &Scan<'_>, before: &[usize], doc: u32) -> usize {
    before.iter().copied().filter(|&cursor| scan.cursors[cursor].doc() < doc).min().unwrap_or(before[0])
}

fn bmw(scan: &mut Scan<'_>) -> Result<(), CodecError> {
    let mut order = scan.order();
    while let Some((mut pivot, doc)) = find_pivot(scan, &order) {
        // All cursors on the document belong to the pivot.
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
            // The cursor of the shortest list moves, as in WAND.
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
