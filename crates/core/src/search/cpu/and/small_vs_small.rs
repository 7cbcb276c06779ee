//! AND: documents that are in every list.
//!
//! The rarest list leads, a block at a time. Its documents are candidates; each other list keeps those that it holds,
//! and only what is left at the end is scored:
//!
//! ```text
//! a (rare)     7  90  412  413 ...  983      one decoded block: up to 128 candidates
//! c (dense)    bit 7? bit 90? ...            probed: 90, 413, 700
//! b            find block, decode, search    90: frequencies are read for candidates only
//! ```
//!
//! - Dense lists have a direct form ([`Probe`](crate::index::Probe)); a bit costs less than a block, so they sieve
//!   first, unless they hold nearly everything.
//! - Another list is sought by its blocks' last documents; a block in which many candidates fall is looked through for
//!   all at once, else each candidate is searched.
//! - The second list tells the next document worth a try: the leader jumps over the blocks before it.
//! - Once k documents are known, a leading block whose best impact, with the others' best, can't reach them is
//!   passed over; so are the candidates in another list's block if its best impact leaves them short, and that
//!   block isn't decoded.
//!
//! A list alone is scored as it is decoded. If all lists are dense, no block is decoded: see `bitmaps.rs`.

use std::ops::Range;

use super::candidates::Candidates;
use super::conjunction::SumBounds;
use crate::base::ids::DocId;
use crate::index::{BLOCK_LEN, BlockBuffer};
use crate::search::TopK;
use crate::search::cpu::blocks::{Term, find_block, first_geq};
use crate::search::cpu::scoring::score_block;
#[cfg(target_arch = "x86_64")]
use crate::search::cpu::simd::Avx2;

/// At least so many candidates in one block are sought together.
const MANY_CANDIDATES: usize = 24;

/// Memory of the lists that sieve: one of each a term.
#[derive(Debug, Default)]
pub(super) struct Sieves {
    /// The order in which the lists after the first sieve: dense ones, from rare to common, but those with over half of
    /// all documents; then the others, then those.
    order: Vec<u16>,
    buffers: Vec<BlockBuffer>,
    /// The block that each list has decoded; `usize::MAX` for none.
    decoded: Vec<usize>,
}

impl Sieves {
    /// Forgets the lists of the query before.
    pub(super) fn reset(&mut self, terms: &[Term<'_>], num_docs: usize) {
        if self.buffers.len() < terms.len() {
            self.buffers.resize_with(terms.len(), BlockBuffer::default);
        }
        self.decoded.clear();
        self.decoded.resize(terms.len(), usize::MAX);
        let class = |term: &Term<'_>| match term.probe {
            Some(_) if term.list.doc_freq() as usize <= num_docs / 2 => 0,
            None => 1,
            Some(_) => 2,
        };
        self.order.clear();
        for wanted in 0..3 {
            let others = (0..).zip(terms).skip(1).filter(|(_, term)| class(term) == wanted);
            self.order.extend(others.map(|(t, _)| t));
        }
    }
}

/// Offers every document in `range` of all lists to `best`. Terms are in the query's order: rarest first.
///
/// One body is compiled twice, for every x86-64 and for those with AVX2, as in `or/exhaustive.rs`.
pub(crate) fn search(
    terms: &[Term<'_>],
    range: Range<DocId>,
    bounds: &SumBounds,
    norms: &[f32],
    sieves: &mut Sieves,
    candidates: &mut Candidates,
    best: &mut TopK,
) {
    #[cfg(target_arch = "x86_64")]
    if Avx2::detect().is_some() {
        // SAFETY: the processor has these features, as has just been asked.
        return unsafe { search_avx2(terms, range, bounds, norms, sieves, candidates, best) };
    }
    search_any(terms, range, bounds, norms, sieves, candidates, best);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1")]
fn search_avx2(
    terms: &[Term<'_>],
    range: Range<DocId>,
    bounds: &SumBounds,
    norms: &[f32],
    sieves: &mut Sieves,
    candidates: &mut Candidates,
    best: &mut TopK,
) {
    search_any(terms, range, bounds, norms, sieves, candidates, best);
}

#[inline(always)]
fn search_any(
    terms: &[Term<'_>],
    range: Range<DocId>,
    bounds: &SumBounds,
    norms: &[f32],
    sieves: &mut Sieves,
    candidates: &mut Candidates,
    best: &mut TopK,
) {
    let Sieves { order, buffers, decoded } = sieves;
    let Some((lead, others)) = terms.split_first() else { return };
    if others.is_empty() {
        return search_one(lead, range, bounds, norms, &mut buffers[0], best);
    }
    let last_docs = lead.list.last_docs();
    let mut start = range.start.0;
    let mut block = find_block(last_docs, 0, start);
    while block < last_docs.len() {
        if block > 0 && last_docs[block - 1] + 1 >= range.end.0 {
            return;
        }
        let lead_bound = lead.block_bound(block);
        if lead_bound + bounds.from[1] <= bounds.slack.pruning(best.threshold()) {
            block += 1;
            continue;
        }
        candidates.lead(lead.list, block, start, range.end.0);
        let Some(&last) = candidates.docs().last() else {
            // None of the block is in the range: it stands in a gap around one of its ends.
            block += 1;
            continue;
        };
        start = last + 1;
        for &t in order.iter() {
            let t = usize::from(t);
            let beyond = match terms[t].probe {
                Some(probe) => {
                    candidates.retain_probed(probe);
                    0
                }
                None => {
                    let others = lead_bound + bounds.between[t] + bounds.from[t + 1];
                    let needed = bounds.slack.pruning(best.threshold()) - others;
                    retain(t, &terms[t], needed, &mut buffers[t], &mut decoded[t], candidates)
                }
            };
            start = start.max(beyond);
            if candidates.docs().is_empty() {
                break;
            }
        }
        if !candidates.docs().is_empty() {
            candidates.offer_to(best, terms, bounds, norms, true);
        }
        if start >= range.end.0 {
            return;
        }
        block = find_block(last_docs, block + 1, start);
    }
}

/// Offers the documents of one list.
#[inline(always)]
fn search_one(
    term: &Term<'_>,
    range: Range<DocId>,
    bounds: &SumBounds,
    norms: &[f32],
    buffer: &mut BlockBuffer,
    best: &mut TopK,
) {
    let (start, end) = (range.start.0, range.end.0);
    let last_docs = term.list.last_docs();
    let mut shares = [0.0; BLOCK_LEN];
    for block in find_block(last_docs, 0, start)..last_docs.len() {
        if block > 0 && last_docs[block - 1] + 1 >= end {
            return;
        }
        if term.block_bound(block) <= bounds.slack.pruning(best.threshold()) {
            continue;
        }
        let len = term.list.decode_docs(block, &mut buffer.docs);
        term.list.decode_freqs(block, &mut buffer.freqs);
        let docs = &buffer.docs[..len];
        score_block(docs, &buffer.freqs[..len], term.weight, norms, &mut shares[..len]);
        // Few blocks have a share above the threshold: it takes a look at all of them to tell.
        let threshold = best.threshold();
        if shares[..len].iter().fold(false, |any, &share| any | (share > threshold)) {
            for (&doc, &share) in docs.iter().zip(&shares).filter(|&(&doc, _)| (start..end).contains(&doc)) {
                best.offer(doc, share);
            }
        }
    }
}

/// Keeps the candidates that the list holds, but for those in blocks with a bound of at most `needed`. Returns a
/// document before which the list holds none that is past the last candidate: [`DocId::END`]'s number at the list's
/// end, 0 if it isn't known.
#[inline(always)]
fn retain(
    t: usize,
    term: &Term<'_>,
    needed: f32,
    buffer: &mut BlockBuffer,
    decoded: &mut usize,
    candidates: &mut Candidates,
) -> u32 {
    let last_docs = term.list.last_docs();
    let mut sieve = candidates.sieve(t);
    let len = sieve.docs().len();
    let mut block = if *decoded == usize::MAX { 0 } else { *decoded };
    let mut beyond = 0;
    let mut i = 0;
    block = sieve.docs().first().map_or(block, |&doc| find_block(last_docs, block, doc));
    while i < len {
        if block == last_docs.len() {
            return DocId::END.0;
        }
        let last = last_docs[block];
        let few = sieve.docs()[i..].iter().take(MANY_CANDIDATES).take_while(|&&doc| doc <= last).count();
        let are_many = few == MANY_CANDIDATES;
        let run = if are_many { sieve.docs()[i..].partition_point(|&doc| doc <= last) } else { few };
        // The block of the candidate after these comes near while this one is decoded and searched.
        let next = sieve.docs().get(i + run).map_or(block, |&doc| find_block(last_docs, block + 1, doc));
        if next != block {
            term.list.prefetch(next);
        }
        if term.block_bound(block) <= needed {
            (i, block) = (i + run, next);
            beyond = 0;
            continue;
        }
        if block != *decoded {
            let filled = term.list.decode_docs(block, &mut buffer.docs);
            // Searching takes all 128 places in order; a tail's free places count as past the end.
            if filled < BLOCK_LEN {
                buffer.docs[filled..].fill(DocId::END.0);
            }
            *decoded = block;
        }
        if are_many {
            sieve.keep_common(i..i + run, &buffer.docs, block);
            beyond = buffer.docs[first_geq(&buffer.docs, sieve.docs()[i + run - 1])];
        } else {
            for candidate in i..i + run {
                let doc = sieve.docs()[candidate];
                let position = first_geq(&buffer.docs, doc);
                beyond = buffer.docs[position];
                sieve.keep(candidate, beyond == doc, block, position);
            }
        }
        (i, block) = (i + run, next);
    }
    beyond
}
