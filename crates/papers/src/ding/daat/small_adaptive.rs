//! Conjunction by eliminators: Small Adaptive, as changed by Tatikonda et al.
//!
//! The **eliminator** is a document that may be common to all lists, initially the first document of the first list.
//! The lists look it up in turn. If a list lacks it, that list's next document becomes the eliminator. If all lists
//! have it, it is a match, and the first list proposes its next document:
//!
//! ```text
//! a   2       9    14
//! b   1  4    9    11  14        e = 2 ─b▶ 4 ─a▶ 9 ─b▶ 9: match; e = 14 ─b▶ 14: match
//! ```
//!
//! Sources: Tatikonda, Cambazoglu, Junqueira, SIGIR 2011, section 3.1; Demaine, López-Ortiz, Munro, "Experiments on
//! adaptive set intersections for text retrieval systems", ALENEX 2001.

use super::cursor::{Advance, Cursor};

/// Calls `found` for the documents from `first` up to `end` that all cursors have, in order, with the cursors at the
/// match. Cursors may begin anywhere before `first`.
pub(crate) fn intersect<'a>(
    cursors: &mut [Cursor<'a>],
    first: u32,
    end: u32,
    advance: Advance,
    mut found: impl FnMut(u32, &mut [Cursor<'a>]),
) {
    let mut target = first;
    while let Some(list) = cursors.first_mut() {
        let mut eliminator = list.seek(target, advance);
        let (mut having, mut asked) = (1, 0);
        while having < cursors.len() && eliminator < end {
            asked = (asked + 1) % cursors.len();
            let doc = cursors[asked].seek(eliminator, advance);
            having = if doc == eliminator { having + 1 } else { 1 };
            eliminator = doc;
        }
        if eliminator >= end {
            return;
        }
        found(eliminator, cursors);
        target = eliminator + 1;
    }
}
