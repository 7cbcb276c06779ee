//! Documents that may still enter, with their scores so far.
//!
//! Eight candidates are taken at once: their scores are compared with a bound, and one shuffle moves the survivors to
//! the front. There is no branch per candidate, because survival is as unpredictable as a coin.

use std::ops::Range;

use crate::search::cpu::simd::{Docs, STEP, sift};

#[derive(Debug)]
pub(crate) struct WindowCandidates<const MOST: usize> {
    docs: Box<[u32]>,
    scores: Box<[f32]>,
    shares: Box<[f32]>,
    len: usize,
}

impl<const MOST: usize> Default for WindowCandidates<MOST> {
    fn default() -> Self {
        // Stores always write eight candidates.
        let floats = || vec![0.0; MOST + STEP].into();
        Self { docs: vec![0; MOST + STEP].into(), scores: floats(), shares: floats(), len: 0 }
    }
}

impl<const MOST: usize> WindowCandidates<MOST> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, f32)> {
        self.docs[..self.len].iter().copied().zip(self.scores[..self.len].iter().copied())
    }

    #[inline(always)]
    pub(crate) fn docs(&self) -> &[u32] {
        &self.docs[..self.len]
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Appends those of eight documents with scores above `needed`. Documents ascend.
    #[inline(always)]
    pub(crate) fn push_above(&mut self, docs: Docs<'_>, scores: &[f32; STEP], needed: f32) {
        if let (Some(kept_docs), Some(kept_scores)) =
            (self.docs[self.len..].first_chunk_mut(), self.scores[self.len..].first_chunk_mut())
        {
            self.len += sift(docs, scores, None, needed, (kept_docs, kept_scores));
        }
    }

    /// Appends a document if its score is above `needed`. Documents ascend.
    #[inline(always)]
    pub(crate) fn push_one_above(&mut self, doc: u32, score: f32, needed: f32) {
        self.docs[self.len] = doc;
        self.scores[self.len] = score;
        self.len += usize::from(score > needed);
    }

    /// Documents of candidates, with mutable places for the shares to add.
    #[inline(always)]
    pub(crate) fn shares_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = (u32, &mut f32)> {
        self.docs[range.clone()].iter().copied().zip(&mut self.shares[range])
    }

    /// Adds the shares of the candidates in `range`, moves those with a score above `needed` to position `kept`, and
    /// returns the position behind them. `kept` must not exceed the range's start.
    #[inline(always)]
    pub(crate) fn sieve(&mut self, range: Range<usize>, mut kept: usize, needed: f32) -> usize {
        let mut at = range.start;
        while at + STEP <= range.end
            && let Some(docs) = self.docs[at..].first_chunk()
            && let Some(scores) = self.scores[at..].first_chunk::<STEP>()
            && let Some(shares) = self.shares[at..].first_chunk::<STEP>()
        {
            let (mut kept_docs, mut kept_scores) = ([0; STEP], [0.0; STEP]);
            let kept_here = (&mut kept_docs, &mut kept_scores);
            let count = sift(Docs::These(docs), scores, Some(shares), needed, kept_here);
            self.docs[kept..kept + STEP].copy_from_slice(&kept_docs);
            self.scores[kept..kept + STEP].copy_from_slice(&kept_scores);
            kept += count;
            at += STEP;
        }
        for at in at..range.end {
            let (doc, score) = (self.docs[at], self.scores[at] + self.shares[at]);
            self.docs[kept] = doc;
            self.scores[kept] = score;
            kept += usize::from(score > needed);
        }
        kept
    }

    /// Like [`sieve`](Self::sieve), without shares.
    #[inline(always)]
    pub(crate) fn sieve_as_they_are(&mut self, range: Range<usize>, mut kept: usize, needed: f32) -> usize {
        for at in range {
            let (doc, score) = (self.docs[at], self.scores[at]);
            self.docs[kept] = doc;
            self.scores[kept] = score;
            kept += usize::from(score > needed);
        }
        kept
    }
}
