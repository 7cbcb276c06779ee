//! Exhaustive OR, which scores every posting. It is the reference of all other executors.
//!
//! Documents are taken in windows of accumulators. Inside a window terms are taken one at a time, so that each
//! accumulator receives its shares in the query's order. Then the sums are offered and cleared:
//!
//! ```text
//! window  [start, start + size)           [next document of any list, ...)
//! term a   +  +    + +     +              the shares of a block are computed when it is decoded;
//! term b     ++ +      +  +               inside a window, they are only added
//! ```
//!
//! - Lists that are dense together take small windows, which fit the L1 cache. All sums are compared with the
//!   threshold, as vectors.
//! - Sparse lists take the largest windows, so that a visit of a list covers many postings. Only touched places are
//!   compared and cleared.
//! - A single term needs no sums: its shares are offered directly.
//! - Lists that are dense by themselves are the last of the query and hold most postings. They are taken as rows of
//!   documents: see `bitmap_tile.rs`.
//!
//! The next window begins at the next document of any list, so gaps cost nothing. One body is compiled twice, with AVX2
//! and without; float operations are neither reordered nor fused.

use tandem_base::base::ids::DocId;

use crate::index::BLOCK_LEN;
use crate::search::TopK;
use crate::search::cpu::blocks::bitmap_tile::{TILE_DOCS, Tile, TileRoom};
use crate::search::cpu::blocks::scored_block::ScoredBlock;
use crate::search::cpu::blocks::term::{SearchScope, Term};
use crate::search::cpu::scoring::accumulator::Accumulator;
use crate::search::cpu::simd::{Avx2, WORD_DOCS, WORD_FREQS};

/// The most documents of a window, numbered by 16 bits.
const MAX_WINDOW_DOCS: usize = 1 << 16;
const DENSE_WINDOW_DOCS: u32 = 1 << 13;
/// The most places that are noted in a window of sparse lists. With more, the whole window is scanned.
const MAX_NOTED: usize = 8192;

#[derive(Debug)]
pub(crate) struct Exhaustive<S: Accumulator> {
    /// At least one per term.
    blocks: Vec<ScoredBlock<S>>,
    freqs: [u32; BLOCK_LEN],
    /// All zero between windows.
    sums: Box<[S; MAX_WINDOW_DOCS]>,
    noted: Box<[u16]>,
    room: Box<TileRoom>,
}

impl<S: Accumulator> Default for Exhaustive<S> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            freqs: [0; BLOCK_LEN],
            sums: Box::new([S::default(); MAX_WINDOW_DOCS]),
            noted: vec![0; MAX_NOTED].into(),
            room: Box::new([0; TILE_DOCS + WORD_FREQS]),
        }
    }
}

impl<S: Accumulator> Exhaustive<S> {
    /// Offers every document of `scope` with any term to `best`.
    pub(crate) fn search(&mut self, scope: SearchScope<'_>, best: &mut TopK) {
        if self.blocks.len() < scope.terms.len() {
            self.blocks.resize(scope.terms.len(), ScoredBlock::default());
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::detect() {
            // SAFETY: `detect` found these processor features.
            return unsafe { self.search_avx2(avx2, scope, best) };
        }
        self.search_any(None, scope, best);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt,bmi1")]
    fn search_avx2(&mut self, avx2: Avx2, scope: SearchScope<'_>, best: &mut TopK) {
        self.search_any(Some(avx2), scope, best);
    }

    #[inline(always)]
    fn search_any(&mut self, avx2: Option<Avx2>, scope: SearchScope<'_>, best: &mut TopK) {
        let SearchScope { terms, start: first, end: last, norms } = scope;
        if terms.last().is_some_and(|term| term.probe.is_some()) {
            return self.search_dense(avx2, scope, best);
        }
        let Self { blocks, freqs, sums, noted, .. } = self;
        let blocks = &mut blocks[..terms.len()];
        for (block, term) in blocks.iter_mut().zip(terms) {
            block.start(term, first, freqs, norms);
        }
        if let ([block], [term]) = (&mut *blocks, terms) {
            return stream(block, term, last, freqs, norms, best);
        }
        let num_postings: u64 = terms.iter().map(|term| u64::from(term.list.doc_freq())).sum();
        let density = num_postings as f32 / norms.len() as f32;
        let (window_docs, is_sparse) = window_for::<S>(density);
        loop {
            let start = blocks.iter().map(ScoredBlock::doc).min().unwrap_or(DocId::END.0);
            if start >= last {
                return;
            }
            let end = start.saturating_add(window_docs).min(last);
            let mut num_noted = 0;
            for (block, term) in blocks.iter_mut().zip(terms) {
                while block.doc() < end {
                    let docs = block.take_below(end, term, freqs, norms, |docs, shares| {
                        for (&doc, &share) in docs.iter().zip(shares) {
                            sums[usize::from((doc - start) as u16)] += share;
                        }
                        if is_sparse {
                            let free = noted.get_mut(num_noted..).unwrap_or_default();
                            for (place, &doc) in free.iter_mut().zip(docs) {
                                *place = (doc - start) as u16;
                            }
                        }
                        docs.len()
                    });
                    num_noted += docs;
                }
            }
            match noted.get(..num_noted) {
                Some(noted) if is_sparse => drain_noted(start, noted, sums, best),
                _ => {
                    let num_words = ((end - start) as usize).div_ceil(WORD_DOCS);
                    drain_words(avx2, start, &mut sums.as_chunks_mut().0[..num_words], best);
                }
            }
        }
    }

    /// Like [`Exhaustive::search`], if the last list is dense: windows follow one another without gaps.
    #[inline(always)]
    fn search_dense(&mut self, avx2: Option<Avx2>, scope: SearchScope<'_>, best: &mut TopK) {
        let SearchScope { terms, mut start, end, norms } = scope;
        let Self { blocks, freqs, sums, room, .. } = self;
        // Lists ascend by length, so the dense ones are last.
        let num_dense = terms.iter().rev().take_while(|term| term.probe.is_some()).count();
        let (sparse_terms, dense_terms) = terms.split_at(terms.len() - num_dense);
        let blocks = &mut blocks[..sparse_terms.len()];
        for (block, term) in blocks.iter_mut().zip(sparse_terms) {
            block.start(term, start, freqs, norms);
        }
        let end = end.min(norms.len() as u32);
        while start < end {
            let window_start = start - start % WORD_DOCS as u32;
            let window_end = window_start.saturating_add(DENSE_WINDOW_DOCS).min(end);
            for (block, term) in blocks.iter_mut().zip(sparse_terms) {
                while block.doc() < window_end {
                    block.take_below(window_end, term, freqs, norms, |docs, shares| {
                        for (&doc, &share) in docs.iter().zip(shares) {
                            sums[usize::from((doc - window_start) as u16)] += share;
                        }
                    });
                }
            }
            while start < window_end {
                let tile = Tile::new(start, window_end);
                let (words, _) = sums[(tile.first_doc() - window_start) as usize..].as_chunks_mut::<WORD_DOCS>();
                let words = &mut words[..tile.num_words()];
                for term in dense_terms {
                    if let Some(probe) = &term.probe {
                        tile.add(avx2, probe, term.weight, norms, room, words);
                    }
                }
                drain_words(avx2, tile.first_doc(), words, best);
                start = tile.end();
            }
        }
    }
}

/// The number of documents of a window, and whether its places are noted, for lists with `density` postings per
/// document.
fn window_for<S>(density: f32) -> (u32, bool) {
    // A window takes half of a common L1 cache, or four times that.
    let docs = (16_384 / size_of::<S>()) as u32;
    if density >= 0.25 {
        (docs, false)
    } else if density >= 1.0 / 16.0 {
        (4 * docs, false)
    } else {
        (MAX_WINDOW_DOCS as u32, true)
    }
}

#[inline(always)]
fn stream<S: Accumulator>(
    block: &mut ScoredBlock<S>,
    term: &Term<'_>,
    end: u32,
    freqs: &mut [u32; BLOCK_LEN],
    norms: &[f32],
    best: &mut TopK,
) {
    while block.doc() < end {
        block.take_below(end, term, freqs, norms, |docs, shares| {
            let threshold = S::of_score(best.threshold());
            if exceeds(shares, threshold) {
                for (&doc, &share) in docs.iter().zip(shares) {
                    best.offer(doc, share.score());
                }
            }
        });
    }
}

/// Whether some sum is above the threshold. Comparing all of them lets the compiler use vectors.
#[inline(always)]
fn exceeds<S: Accumulator>(sums: &[S], threshold: S) -> bool {
    sums.iter().fold(false, |any, &sum| any | (sum > threshold))
}

/// Offers the documents from `start` on to `best`, in ascending order, and clears their sums.
#[inline(always)]
fn drain_words<S: Accumulator>(avx2: Option<Avx2>, start: u32, words: &mut [[S; WORD_DOCS]], best: &mut TopK) {
    let mut threshold = S::of_score(best.threshold());
    for (word, first) in words.iter_mut().zip((start..).step_by(WORD_DOCS)) {
        if S::any_above(avx2, word, threshold) {
            for (&sum, doc) in word.iter().zip(first..) {
                if sum > threshold {
                    best.offer(doc, sum.score());
                    threshold = S::of_score(best.threshold());
                }
            }
        }
        *word = [S::default(); WORD_DOCS];
    }
}

/// Offers the documents at the noted places to `best` and clears their sums.
#[inline(always)]
fn drain_noted<S: Accumulator>(start: u32, noted: &[u16], sums: &mut [S; MAX_WINDOW_DOCS], best: &mut TopK) {
    let least = |best: &TopK| {
        let threshold = S::of_score(best.threshold());
        if threshold > S::LEAST { threshold } else { S::LEAST }
    };
    let mut wanted = least(best);
    for &place in noted {
        let sum = std::mem::take(&mut sums[usize::from(place)]);
        // A place that was noted twice is clear by now. Documents do not ascend here, so an equal score may belong to a
        // smaller document.
        if sum >= wanted {
            best.offer(start + u32::from(place), sum.score());
            wanted = least(best);
        }
    }
}
