//! OR without pruning: every posting is scored. The reference for all other executors.
//!
//! Documents are taken in windows whose accumulators fit the L1 cache. Inside a window the query's terms are taken
//! one at a time, in order, so that each accumulator receives its shares in the query's order:
//!
//! ```text
//! window  [start, start + 4096)           [next document of any list, ...)
//! term a   +  +    + +     +              every posting: accumulator[doc - start] += share
//! term b     ++ +      +  +
//! touched  |*|*| |*|*| |*|*| |            one bit for each 64 accumulators: only these are compared and cleared
//! ```
//!
//! The next window begins at the next document of any list, so that gaps cost nothing.

use crate::exec::TopK;
use crate::ids::DocId;
use crate::index::BLOCK_LEN;

use super::cursor::Cursor;
use super::scoring::score_block;

/// Documents in a window: 16 KiB of accumulators, half of a common L1 cache.
const WINDOW_DOCS: usize = CHUNK_DOCS * u64::BITS as usize;

/// Documents that one bit of the touched mask stands for.
const CHUNK_DOCS: usize = 64;

/// Scores of the documents of one window; all zero between windows.
#[derive(Debug)]
pub(super) struct Window {
    accumulators: Box<[f32; WINDOW_DOCS]>,
    /// Bit i: some accumulator of chunk i is not zero.
    touched: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self { accumulators: Box::new([0.0; WINDOW_DOCS]), touched: 0 }
    }
}

/// Offers every document below `end` of any list to `best`, cursors and weights being in the query's order of terms.
pub(super) fn search(
    cursors: &mut [Cursor<'_>],
    end: DocId,
    weights: &[f32],
    norms: &[f32],
    window: &mut Window,
    best: &mut TopK,
) {
    while let Some(start) = cursors.iter().map(Cursor::doc).min()
        && start < end
    {
        let window_end = end.min(DocId(start.0.saturating_add(WINDOW_DOCS as u32)));
        for (cursor, &weight) in cursors.iter_mut().zip(weights) {
            cursor.drain_below(window_end, |docs, freqs| window.add(start, docs, freqs, weight, norms));
        }
        window.drain_into(start, best);
    }
}

impl Window {
    /// Adds the shares of a run of one term's postings, at most a block long and inside the window.
    fn add(&mut self, start: DocId, docs: &[u32], freqs: &[u32], weight: f32, norms: &[f32]) {
        let mut shares = [0.0; BLOCK_LEN];
        let shares = &mut shares[..docs.len()];
        score_block(docs, freqs, weight, norms, shares);
        for (&share, &doc) in shares.iter().zip(docs) {
            // The remainder never changes the value; it shows the compiler that the index is in range.
            let offset = (doc - start.0) as usize % WINDOW_DOCS;
            self.accumulators[offset] += share;
            self.touched |= 1 << (offset / CHUNK_DOCS);
        }
    }

    /// Offers the window's documents to `best`, in ascending order, and clears it.
    fn drain_into(&mut self, start: DocId, best: &mut TopK) {
        let mut threshold = best.threshold();
        while self.touched != 0 {
            let first = self.touched.trailing_zeros() as usize * CHUNK_DOCS;
            self.touched &= self.touched - 1;
            let chunk = &mut self.accumulators[first..first + CHUNK_DOCS];
            // Most chunks hold nothing good enough: one comparison of all, as vectors, tells.
            if chunk.iter().fold(false, |any, &score| any | (score > threshold)) {
                for (offset, &score) in (first as u32..).zip(chunk.iter()) {
                    if score > threshold {
                        best.offer(start.0 + offset, score);
                        threshold = best.threshold();
                    }
                }
            }
            chunk.fill(0.0);
        }
    }
}
