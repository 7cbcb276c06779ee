//! Scores one window of documents in bulk, for MaxScore (see `max_score.rs`) with threshold θ.
//!
//! Terms are taken in the query's order, rarest first, in which shares must be added. All loops run over arrays:
//!
//! ```text
//! essential       rare      +   +     + +            every posting is scored and added to accumulators, as in exhaustive OR
//!                 medium      + +   +      +         (a single essential term needs none: its postings are the candidates)
//! candidates                  * *     *    *         compacted: documents whose sum + bounds of the others exceeds θ
//! non-essential   common      ?  ?    -    ?         looked up for the candidates; hopeless ones are dropped
//!                 the         ?  -         ?         before the next term
//! ```
//!
//! An essential block is skipped undecoded if its bound and the other terms' bounds do not exceed θ. A non-essential
//! block is decoded only for a candidate that its bound keeps alive. If candidates are many, a non-essential list is
//! added in bulk, too.
//!
//! The bulk form follows Lucene's `MaxScoreBulkScorer`.

use super::candidates::WindowCandidates;
use super::decoded_block::{DecodedBlock, Window, share_or_zero};
use crate::index::BLOCK_LEN;
use crate::search::TopK;
use crate::search::cpu::blocks::search::find_block;
use crate::search::cpu::blocks::term::SearchScope;
use crate::search::cpu::scoring::threshold::Threshold;
#[cfg(target_arch = "x86_64")]
use crate::search::cpu::simd::Avx2;
use crate::search::cpu::simd::{Docs, STEP};

/// The most documents of a window: 256 KiB of accumulators, half of a common L2 cache.
const MAX_WINDOW_DOCS: usize = 1 << 16;
/// The documents of small windows: 16 KiB of accumulators, half of a common L1 cache.
const MIN_WINDOW_DOCS: usize = 1 << 12;
/// A window should hold at least this number of postings, to amortise a visit of every list.
const POSTINGS_PER_WINDOW: usize = 512;
/// Documents per bit of the touched mask.
const CHUNK_DOCS: usize = 16;
/// One look-up through blocks costs as much as this number of postings in bulk.
const POSTINGS_PER_LOOK_UP: usize = 3;

/// The number of documents per window, a power of two, if `postings` of the collection are to be scored.
pub(crate) fn window_docs(postings: usize, num_docs: usize) -> usize {
    let docs = POSTINGS_PER_WINDOW * num_docs / postings.max(1);
    docs.clamp(MIN_WINDOW_DOCS, MAX_WINDOW_DOCS).next_power_of_two()
}

#[derive(Debug)]
pub(crate) struct WindowScorer {
    /// At least one per term.
    decoded: Vec<DecodedBlock>,
    /// All zero between windows.
    accumulators: Box<[f32; MAX_WINDOW_DOCS]>,
    touched: Touched,
    candidates: WindowCandidates<MAX_WINDOW_DOCS>,
    /// `before[i]` sums the bounds of terms before i; `from[i]` those of term i and later ones.
    before: Vec<f32>,
    from: Vec<f32>,
}

impl Default for WindowScorer {
    fn default() -> Self {
        Self {
            decoded: Vec::new(),
            accumulators: Box::new([0.0; MAX_WINDOW_DOCS]),
            touched: Touched { words: [0; MAX_WINDOW_DOCS / CHUNK_DOCS / 64] },
            candidates: WindowCandidates::default(),
            before: Vec::new(),
            from: Vec::new(),
        }
    }
}

impl WindowScorer {
    pub(crate) fn reset(&mut self, num_terms: usize) {
        if self.decoded.len() < num_terms {
            self.decoded.resize_with(num_terms, DecodedBlock::default);
        }
        self.decoded[..num_terms].iter_mut().for_each(DecodedBlock::reset);
        for bounds in [&mut self.before, &mut self.from] {
            bounds.clear();
            bounds.resize(num_terms + 1, 0.0);
        }
    }

    /// Offers every document of the window that can enter, in ascending order. One body is compiled twice, with AVX2
    /// and without; both give the same bits.
    pub(crate) fn score(&mut self, window: &Window<'_>, threshold: &mut Threshold, best: &mut TopK) {
        #[cfg(target_arch = "x86_64")]
        if Avx2::detect().is_some() {
            // SAFETY: `detect` found these processor features.
            return unsafe { self.score_avx2(window, threshold, best) };
        }
        self.score_any(window, threshold, best);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt,bmi1")]
    fn score_avx2(&mut self, window: &Window<'_>, threshold: &mut Threshold, best: &mut TopK) {
        self.score_any(window, threshold, best);
    }

    #[inline(always)]
    fn score_any(&mut self, window: &Window<'_>, threshold: &mut Threshold, best: &mut TopK) {
        let terms = window.scope.terms;
        let num_terms = terms.len();
        let bounds = &window.bounds[..num_terms];
        self.from[num_terms] = 0.0;
        for (i, bound) in bounds.iter().enumerate().rev() {
            self.from[i] = self.from[i + 1] + bound;
        }
        if self.from[0] <= threshold.pruning() {
            return;
        }
        let mut essential = window.end_of_essential;
        while self.from[essential - 1] <= threshold.pruning() {
            essential -= 1;
        }
        for (i, bound) in bounds[..essential].iter().enumerate() {
            self.before[i + 1] = self.before[i] + bound;
        }

        let mut present = (0..essential).filter(|&i| bounds[i] > 0.0);
        let Some(first) = present.next() else { return };
        if present.next().is_none() {
            self.stream(first, essential, window, threshold);
        } else {
            for i in (first..essential).filter(|&i| bounds[i] > 0.0) {
                // The bound that a block of this list must exceed for its documents to stay candidates.
                let needed = threshold.pruning() - (self.before[i] + self.from[i + 1]);
                self.accumulate(i, window, needed);
            }
            self.collect(window, threshold.pruning() - self.from[essential]);
        }
        for i in (essential..num_terms).filter(|&i| bounds[i] > 0.0) {
            if self.candidates.len() == 0 {
                return;
            }
            self.look_up(i, window, threshold.pruning() - self.from[i + 1]);
        }
        let done = &terms[..window.first_term];
        for (doc, score) in self.candidates.iter() {
            let mut lists = done.iter().zip(self.decoded.iter_mut());
            if score > threshold.pruning() && !lists.any(|(term, decoded)| decoded.contains(term, doc)) {
                threshold.offer(doc, score, best);
            }
        }
    }

    /// Takes the postings of the only essential list inside the window as candidates.
    #[inline(always)]
    fn stream(&mut self, i: usize, essential: usize, window: &Window<'_>, threshold: &Threshold) {
        let needed = threshold.pruning() - self.from[essential];
        let scope = window.scope;
        self.candidates.clear();
        let decoded = &mut self.decoded[i];
        let mut block = window.first_blocks[i] as usize;
        while let Some(run) = decoded.next_run(&scope.terms[i], scope, needed, &mut block) {
            let (docs, shares) = (&decoded.buffer.docs[run.clone()], &decoded.shares[run]);
            let ((docs, more_docs), (shares, more_shares)) = (docs.as_chunks(), shares.as_chunks());
            for (docs, shares) in docs.iter().zip(shares) {
                self.candidates.push_above(Docs::These(docs), shares, needed);
            }
            for (&doc, &share) in more_docs.iter().zip(more_shares) {
                self.candidates.push_one_above(doc, share, needed);
            }
        }
    }

    /// Adds the shares of a list's postings inside the window to the accumulators, except blocks with a bound of at
    /// most `needed`.
    #[inline(always)]
    fn accumulate(&mut self, i: usize, window: &Window<'_>, needed: f32) {
        let scope = window.scope;
        let Self { decoded, accumulators, touched, .. } = self;
        let decoded = &mut decoded[i];
        // The remainder changes no value; it proves to the compiler that the index is in range.
        let offset = |doc: u32| (doc - scope.start) as usize % MAX_WINDOW_DOCS;
        let mut block = window.first_blocks[i] as usize;
        while let Some(run) = decoded.next_run(&scope.terms[i], scope, needed, &mut block) {
            let (docs, shares) = (&decoded.buffer.docs[run.clone()], &decoded.shares[run]);
            for (&share, &doc) in shares.iter().zip(docs) {
                accumulators[offset(doc)] += share;
            }
            let (first, last) = (offset(docs[0]) / CHUNK_DOCS, offset(docs[docs.len() - 1]) / CHUNK_DOCS);
            if 2 * (last - first) < docs.len() {
                // Dense: nearly all chunks between the first and the last are touched.
                touched.add_range(first, last);
            } else {
                docs.iter().for_each(|&doc| touched.add(offset(doc) / CHUNK_DOCS));
            }
        }
    }

    /// Makes candidates of the window's documents with a sum above `needed` (at least 0), and clears the accumulators.
    #[inline(always)]
    fn collect(&mut self, window: &Window<'_>, needed: f32) {
        let Self { accumulators, touched, candidates, .. } = self;
        candidates.clear();
        for number in 0..Touched::num_words(window) {
            for first in touched.take(number) {
                let Some(chunk) = accumulators[first..].first_chunk_mut::<CHUNK_DOCS>() else { return };
                for (half, scores) in (0..).zip(chunk.as_chunks().0) {
                    let start = window.scope.start + first as u32 + half * STEP as u32;
                    candidates.push_above(Docs::From(start), scores, needed);
                }
                *chunk = [0.0; CHUNK_DOCS];
            }
        }
    }

    /// Adds the share of non-essential term `i` to all candidates and keeps those with a sum above `needed`.
    #[inline(always)]
    fn look_up(&mut self, i: usize, window: &Window<'_>, needed: f32) {
        let SearchScope { terms, start, end, norms } = window.scope;
        let term = &terms[i];
        let candidates = &mut self.candidates;
        let all = 0..candidates.len();
        if let Some(probe) = term.probe {
            for (doc, share) in candidates.shares_mut(all.clone()) {
                *share = share_or_zero(term.weight, probe.freq(doc), norms[doc as usize]);
            }
            let kept = candidates.sieve(all, 0, needed);
            return candidates.truncate(kept);
        }
        let first_block = window.first_blocks[i];
        let last_docs = term.list.last_docs();
        let num_blocks = find_block(last_docs, first_block as usize, end - 1) + 1 - first_block as usize;
        if all.len() * POSTINGS_PER_LOOK_UP <= num_blocks * BLOCK_LEN {
            return self.decoded[i].look_up(term, first_block, norms, candidates, needed);
        }
        self.accumulate(i, window, f32::NEG_INFINITY);
        let Self { accumulators, touched, candidates, .. } = self;
        for (doc, share) in candidates.shares_mut(all.clone()) {
            *share = accumulators[(doc - start) as usize % MAX_WINDOW_DOCS];
        }
        let kept = candidates.sieve(all, 0, needed);
        candidates.truncate(kept);
        for number in 0..Touched::num_words(window) {
            touched.take(number).for_each(|first| accumulators[first..first + CHUNK_DOCS].fill(0.0));
        }
    }
}

/// The chunks of accumulators that are not zero.
#[derive(Debug)]
struct Touched {
    /// Bit i % 64 of word i / 64 stands for chunk i.
    words: [u64; MAX_WINDOW_DOCS / CHUNK_DOCS / 64],
}

impl Touched {
    #[inline(always)]
    fn add(&mut self, chunk: usize) {
        self.words[chunk / 64] |= 1 << (chunk % 64);
    }

    #[inline(always)]
    fn add_range(&mut self, first: usize, last: usize) {
        for word in first / 64..=last / 64 {
            let low = if word == first / 64 { first % 64 } else { 0 };
            let high = if word == last / 64 { last % 64 } else { 63 };
            self.words[word] |= (u64::MAX >> (63 - (high - low))) << low;
        }
    }

    #[inline(always)]
    fn num_words(window: &Window<'_>) -> usize {
        ((window.scope.end - window.scope.start) as usize).div_ceil(64 * CHUNK_DOCS)
    }

    /// Removes the chunks of word `number` and returns the first document of each, relative to the window's start.
    #[inline(always)]
    fn take(&mut self, number: usize) -> impl Iterator<Item = usize> + use<> {
        let mut bits = std::mem::take(&mut self.words[number]);
        std::iter::from_fn(move || {
            let chunk = (bits != 0).then(|| number * 64 + bits.trailing_zeros() as usize)?;
            bits &= bits - 1;
            Some(chunk * CHUNK_DOCS)
        })
    }
}
