//! AND of lists that are all dense: their bits, 64 documents at a time.
//!
//! ```text
//! a   0110 1001 ...     64 bits of each list
//! b   1100 1011 ...
//! &   0100 1001 ...     matches: their frequencies are probed, 128 at a time
//! ```

use std::ops::Range;

use crate::exec::TopK;
use crate::ids::DocId;
use crate::index::Probe;
use crate::query::Query;

use super::matches::Matches;
use super::term::Term;

/// Offers every document in `range` of all lists to `best`; lists without a probe are left out.
pub(super) fn search(
    terms: &[Term<'_>],
    range: Range<DocId>,
    rest: &[f32],
    norms: &[f32],
    matches: &mut Matches,
    best: &mut TopK,
) {
    let mut lists: [&[u64]; Query::MAX_TERMS] = [&[]; Query::MAX_TERMS];
    let words = terms.iter().filter_map(|term| term.probe.as_ref().map(Probe::words));
    let len = lists.iter_mut().zip(words).map(|(list, words)| *list = words).count();
    let Some((first, others)) = lists[..len].split_first() else { return };

    let end = range.end.index().min(norms.len());
    matches.clear();
    for word in range.start.index() / 64..end.div_ceil(64) {
        let mut bits = others.iter().fold(first[word], |bits, list| bits & list[word]);
        if word == range.start.index() / 64 {
            bits &= u64::MAX << (range.start.0 % 64);
        }
        if word == end / 64 {
            bits &= !(u64::MAX << (end % 64));
        }
        while bits != 0 {
            let doc = (word * 64) as u32 + bits.trailing_zeros();
            bits &= bits - 1;
            if !matches.push(doc) {
                matches.offer_to(best, terms, rest, norms, false);
                matches.clear();
            }
        }
    }
    if !matches.docs().is_empty() {
        matches.offer_to(best, terms, rest, norms, false);
    }
}
