//! Intersection of dense lists by their bits, 64 documents at a time.
//!
//! ```text
//! a   0110 1001 ...     64 bits of each list
//! b   1100 1011 ...
//! &   0100 1001 ...     few matches are scored one by one with probed frequencies; with many matches the whole
//!                       word is scored as in OR (see `bitmap_tile.rs`), and only the sums of matches are read
//! ```
//!
//! Once k documents are known, a tile is skipped if the best impacts of all lists' blocks in it cannot reach them
//! together.

use super::bounds::Intersection;
use super::candidates::Candidates;
use crate::search::TopK;
use crate::search::cpu::blocks::bitmap_tile::{TILE_DOCS, TILE_WORDS, Tile, TilePostings};
use crate::search::cpu::blocks::search::find_block;
use crate::search::cpu::blocks::term::{SearchScope, Term};
use crate::search::cpu::scoring::accumulator::Accumulator;
use crate::search::cpu::simd::{Avx2, WORD_DOCS, WORD_FREQS};

/// From this number of matches on, scoring the whole tile is quicker than scoring matches one by one.
const MANY_MATCHES: u32 = TILE_DOCS as u32 / 16;

/// Offers every document of all lists to `best`. All lists are dense. `blocks` holds a 0 per term.
pub(crate) fn search(input: Intersection<'_>, blocks: &mut [usize], candidates: &mut Candidates, best: &mut TopK) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = Avx2::detect() {
        // SAFETY: `detect` found these processor features.
        return unsafe { search_avx2(avx2, input, blocks, candidates, best) };
    }
    search_any(None, input, blocks, candidates, best);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1")]
fn search_avx2(
    avx2: Avx2,
    input: Intersection<'_>,
    blocks: &mut [usize],
    candidates: &mut Candidates,
    best: &mut TopK,
) {
    search_any(Some(avx2), input, blocks, candidates, best);
}

#[inline(always)]
fn search_any(
    avx2: Option<Avx2>,
    input: Intersection<'_>,
    blocks: &mut [usize],
    candidates: &mut Candidates,
    best: &mut TopK,
) {
    let Intersection { scope: SearchScope { terms, mut start, end, norms }, bounds } = input;
    let end = end.min(norms.len() as u32);
    candidates.clear();
    while start < end {
        let tile = Tile::new(start, end);
        start = tile.end();
        if best.is_full() && bound(terms, blocks, &tile) <= bounds.slack.pruning(best.threshold()) {
            continue;
        }
        let mut common = [u64::MAX; TILE_WORDS];
        for probe in terms.iter().filter_map(|term| term.probe.as_ref()) {
            for (common, bits) in common.iter_mut().zip(tile.bits_of(probe.words())) {
                *common &= bits;
            }
        }
        if common.iter().map(|word| word.count_ones()).sum::<u32>() >= MANY_MATCHES {
            if !candidates.docs().is_empty() {
                candidates.offer_to(best, input, false);
                candidates.clear();
            }
            score_tile(avx2, terms, &tile, &common, norms, best);
            continue;
        }
        for (mut bits, first) in common.into_iter().zip((tile.first_doc()..).step_by(WORD_DOCS)) {
            while bits != 0 {
                let doc = first + bits.trailing_zeros();
                bits &= bits - 1;
                if !candidates.push(doc) {
                    candidates.offer_to(best, input, false);
                    candidates.clear();
                }
            }
        }
    }
    if !candidates.docs().is_empty() {
        candidates.offer_to(best, input, false);
    }
}

/// Offers the documents of `common`, the bits of a tile.
#[inline(always)]
fn score_tile(
    avx2: Option<Avx2>,
    terms: &[Term<'_>],
    tile: &Tile,
    common: &[u64; TILE_WORDS],
    norms: &[f32],
    best: &mut TopK,
) {
    let mut sums = [[0.0_f32; WORD_DOCS]; TILE_WORDS];
    let mut room = [0; TILE_DOCS + WORD_FREQS];
    let mut norms_room = [0.0; WORD_DOCS];
    for term in terms {
        let Some(probe) = &term.probe else { continue };
        let mut postings = TilePostings::new(tile, probe, &mut room);
        postings.add_large(tile, term.weight, norms, &mut sums);
        for (word, sums) in sums[..tile.num_words()].iter_mut().enumerate() {
            if common[word] == 0 {
                postings.pass_word(word);
            } else {
                let norms = tile.norms(word, norms, &mut norms_room);
                postings.add_word(avx2, word, term.weight, norms, sums);
            }
        }
    }
    for ((sums, &bits), first) in sums.iter().zip(common).zip((tile.first_doc()..).step_by(WORD_DOCS)) {
        if bits != 0 && f32::any_above(avx2, sums, best.threshold()) {
            for (&sum, doc) in sums.iter().zip(first..) {
                if bits >> (doc - first) & 1 == 1 {
                    best.offer(doc, sum);
                }
            }
        }
    }
}

/// Upper bound of the scores of a tile's documents. `blocks`, the position in each list, moves on to the tile.
fn bound(terms: &[Term<'_>], blocks: &mut [usize], tile: &Tile) -> f32 {
    let mut sum = 0.0;
    for (term, block) in terms.iter().zip(blocks) {
        let last_docs = term.list.last_docs();
        *block = find_block(last_docs, *block, tile.first_doc());
        let mut largest = 0.0_f32;
        for (number, &last_doc) in last_docs.iter().enumerate().skip(*block) {
            largest = largest.max(term.block_bound(number));
            if last_doc + 1 >= tile.end() {
                break;
            }
        }
        sum += largest;
    }
    sum
}
