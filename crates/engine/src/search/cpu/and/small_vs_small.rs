//! Intersection by the rarest list.
//!
//! The rarest list leads, a block at a time. Its documents are candidates. Each other list keeps those that it holds,
//! and the rest is scored:
//!
//! ```text
//! a (rare)     7  90  412  413 ...  983      one decoded block: up to 128 candidates
//! c (dense)    bit 7? bit 90? ...            probed: 90, 413, 700
//! b            find block, decode, search    90: frequencies are read for candidates only
//! ```
//!
//! - A bit of a dense list ([`Probe`](crate::index::Probe)) costs less than a block. So dense lists filter first,
//!   unless they hold nearly everything.
//! - Other lists are searched by the last documents of blocks. Many candidates in a block are matched together, few are
//!   searched one by one.
//! - The second list gives the next possible document, so the leader jumps over the blocks before it.
//! - Once k documents are known, a leading block is skipped if its best impact and the others' best cannot reach them.
//!   Candidates in another list's block are dropped, without decoding it, if its best impact is too small.
//!
//! A single list is scored as it is decoded. If all lists are dense, `bitmaps.rs` decodes no block.

use tandem_base::base::ids::DocId;

use super::bounds::Intersection;
use super::candidates::Candidates;
use crate::index::{BLOCK_LEN, BlockBuffer};
use crate::search::TopK;
use crate::search::cpu::blocks::search::{find_block, first_geq};
use crate::search::cpu::blocks::term::{SearchScope, Term};
use crate::search::cpu::scoring::block::score_block;
#[cfg(target_arch = "x86_64")]
use crate::search::cpu::simd::Avx2;

/// From this number of candidates in one block on, they are matched together.
const MANY_CANDIDATES: usize = 24;

/// Memory of the filtering lists, one element per term.
#[derive(Debug, Default)]
pub(crate) struct Sieves {
    /// The filtering order after the first list: dense lists from rare to common, then block lists, then dense lists
    /// with over half of all documents.
    order: Vec<u16>,
    buffers: Vec<BlockBuffer>,
    /// The decoded block of each list, or `usize::MAX`.
    decoded: Vec<usize>,
}

impl Sieves {
    pub(crate) fn reset(&mut self, terms: &[Term<'_>], num_docs: usize) {
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

/// Offers every document of all lists to `best`. One body is compiled twice, as in `or/exhaustive.rs`.
pub(crate) fn search(input: Intersection<'_>, sieves: &mut Sieves, candidates: &mut Candidates, best: &mut TopK) {
    #[cfg(target_arch = "x86_64")]
    if Avx2::detect().is_some() {
        // SAFETY: `detect` found these processor features.
        return unsafe { search_avx2(input, sieves, candidates, best) };
    }
    search_any(input, sieves, candidates, best);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1")]
fn search_avx2(input: Intersection<'_>, sieves: &mut Sieves, candidates: &mut Candidates, best: &mut TopK) {
    search_any(input, sieves, candidates, best);
}

#[inline(always)]
fn search_any(input: Intersection<'_>, sieves: &mut Sieves, candidates: &mut Candidates, best: &mut TopK) {
    let Intersection { scope: SearchScope { terms, mut start, end, .. }, bounds } = input;
    let Sieves { order, buffers, decoded } = sieves;
    let Some((lead, others)) = terms.split_first() else { return };
    if others.is_empty() {
        return search_one(lead, input, &mut buffers[0], best);
    }
    let last_docs = lead.list.last_docs();
    let mut block = find_block(last_docs, 0, start);
    while block < last_docs.len() {
        if block > 0 && last_docs[block - 1] + 1 >= end {
            return;
        }
        let lead_bound = lead.block_bound(block);
        if lead_bound + bounds.from[1] <= bounds.slack.pruning(best.threshold()) {
            block += 1;
            continue;
        }
        candidates.lead(lead.list, block, start, end);
        let Some(&last) = candidates.docs().last() else {
            // The range lies in a gap of the block.
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
            candidates.offer_to(best, input, true);
        }
        if start >= end {
            return;
        }
        block = find_block(last_docs, block + 1, start);
    }
}

#[inline(always)]
fn search_one(term: &Term<'_>, input: Intersection<'_>, buffer: &mut BlockBuffer, best: &mut TopK) {
    let Intersection { scope: SearchScope { start, end, norms, .. }, bounds } = input;
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
        // Few blocks have a share above the threshold, so one vectorised check comes first.
        let threshold = best.threshold();
        if shares[..len].iter().fold(false, |any, &share| any | (share > threshold)) {
            for (&doc, &share) in docs.iter().zip(&shares).filter(|&(&doc, _)| (start..end).contains(&doc)) {
                best.offer(doc, share);
            }
        }
    }
}

/// Keeps the candidates that the list holds, except those in blocks with a bound of at most `needed`. Returns a lower
/// bound of the list's next document past the last candidate: [`DocId::END`] at the list's end, 0 if unknown.
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
        // The next block is prefetched while this one is decoded and searched.
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
            // Searching takes all 128 places in order; free places of the last block count as past the end.
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
