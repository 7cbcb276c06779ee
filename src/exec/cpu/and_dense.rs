//! AND of lists that are all dense: their bits, 64 documents at a time.
//!
//! ```text
//! a   0110 1001 ...     64 bits of each list
//! b   1100 1011 ...
//! &   0100 1001 ...     matches: their frequencies are probed, 128 at a time
//! ```
//!
//! Documents are taken in the stretches of the rarest list's blocks. Once k documents are known, a stretch is passed over if
//! the best impacts of all lists' blocks in it can't reach them together.

use std::ops::Range;

use crate::exec::TopK;
use crate::ids::DocId;
use crate::query::Query;

use super::block_search::find_block;
use super::floor::pruning;
use super::matches::Matches;
use super::term::Term;

/// Offers every document in `range` of all lists to `best`; all have a probe. `rest[t]` bounds the sum of the shares from
/// term t on.
pub(super) fn search(
    terms: &[Term<'_>],
    range: Range<DocId>,
    rest: &[f32],
    norms: &[f32],
    matches: &mut Matches,
    best: &mut TopK,
) {
    let mut words: [&[u64]; Query::MAX_TERMS] = [&[]; Query::MAX_TERMS];
    let mut blocks = [0; Query::MAX_TERMS];
    for ((words, block), term) in words.iter_mut().zip(&mut blocks).zip(terms) {
        *words = term.probe.map_or(&[], |probe| probe.words());
        *block = find_block(term.list.last_docs(), 0, range.start.0);
    }
    let Some((lead, others)) = words[..terms.len()].split_first() else { return };

    let end = range.end.0.min(norms.len() as u32);
    let mut start = range.start.0;
    matches.clear();
    while start < end && blocks[0] < terms[0].list.num_blocks() {
        let stop = terms[0].list.last_doc(blocks[0]).saturating_add(1).min(end);
        if !(best.is_full() && bound(terms, &mut blocks, start, stop) <= pruning(best.threshold())) {
            for word in start / 64..stop.div_ceil(64) {
                let at = word as usize;
                let mut bits = others.iter().fold(lead[at], |bits, list| bits & list[at]);
                if word == start / 64 {
                    bits &= u64::MAX << (start % 64);
                }
                if word == stop / 64 {
                    bits &= !(u64::MAX << (stop % 64));
                }
                while bits != 0 {
                    let doc = word * 64 + bits.trailing_zeros();
                    bits &= bits - 1;
                    if !matches.push(doc) {
                        matches.offer_to(best, terms, rest, norms, false);
                        matches.clear();
                    }
                }
            }
        }
        start = stop;
        blocks[0] += 1;
    }
    if !matches.docs().is_empty() {
        matches.offer_to(best, terms, rest, norms, false);
    }
}

/// Bounds the scores of the documents from `start` to before `stop`; `blocks`, where each list stands, moves on to `start`.
fn bound(terms: &[Term<'_>], blocks: &mut [usize], start: u32, stop: u32) -> f32 {
    let mut sum = 0.0;
    for (term, block) in terms.iter().zip(blocks) {
        let last_docs = term.list.last_docs();
        *block = find_block(last_docs, *block, start);
        let mut largest = 0.0_f32;
        for (number, &last_doc) in last_docs.iter().enumerate().skip(*block) {
            largest = largest.max(term.block_bound(number));
            if last_doc + 1 >= stop {
                break;
            }
        }
        sum += largest;
    }
    sum
}
