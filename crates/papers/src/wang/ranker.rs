//! Twin of the kernel on the host: AND in the order of GS with exact early termination.
//!
//! The documents of the shortest list are processed in rounds. Each is looked up in the other lists from short to long,
//! and scored if all have it. After a round the query ends if the k-th best document scores at least the GS of the next
//! document of the shortest list: later documents score no more, and lose ties by their larger numbers. The answer is
//! therefore the same for every length of a round, and for every place at which a query resumes.

use tandem_engine::search::TopK;

use super::lists::Postings;
use super::order::Documents;
use super::ranking::Ranking;

/// Maximum number of results: reducing groups of 32 to k must at least halve them.
pub(crate) const MAX_K: usize = 16;

/// The k best documents so far as keys, best first; the paper's K.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Best {
    keys: Vec<u64>,
    k: usize,
}

impl Best {
    pub(crate) fn new(k: usize) -> Self {
        Self { keys: Vec::with_capacity(k), k }
    }

    pub(crate) fn from_keys(keys: &[u64], k: usize) -> Self {
        let mut best = Self::new(k);
        best.keys.extend(keys.iter().take(k).filter(|&&key| key > 0));
        best
    }

    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Returns the k-th best score, 0 while there are fewer.
    #[inline]
    pub(crate) fn threshold(&self) -> f32 {
        if self.keys.len() < self.k { 0.0 } else { self.keys.last().map_or(0.0, |&key| TopK::hit(key).score) }
    }

    #[inline]
    fn offer(&mut self, key: u64) {
        if self.keys.len() == self.k {
            match self.keys.last() {
                Some(&last) if key > last => self.keys.pop(),
                _ => return,
            };
        }
        let place = self.keys.partition_point(|&other| other > key);
        self.keys.insert(place, key);
    }
}

/// Arrays of documents, and the parameters of the score.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranker<'a> {
    pub(crate) documents: &'a Documents,
    pub(crate) ranking: Ranking,
}

impl Ranker<'_> {
    /// Resumes a query at posting `from` of its shortest list with the previous results in `best`. `lists` are in
    /// ascending length, with their `weights`; a round has `round` documents.
    ///
    /// Raises `depths` to the number of visited postings of each list: up to the last processed document that all
    /// shorter lists have.
    pub(crate) fn rank(
        &self,
        lists: &[Postings<'_>],
        weights: &[f32],
        from: usize,
        round: usize,
        best: &mut Best,
        depths: &mut [u32],
    ) {
        let Some((shortest, others)) = lists.split_first() else { return };
        let mut at = from;
        while at < shortest.docs.len() && best.threshold() < self.documents.global_scores[shortest.docs[at] as usize] {
            let end = (at + round).min(shortest.docs.len());
            for place in at..end {
                let doc = shortest.docs[place];
                let norm = self.documents.norms[doc as usize];
                let impact = self.ranking.impact(shortest.freqs[place], norm);
                let mut score = self.documents.priors[doc as usize] + weights[0] * impact;
                let mut is_in_all = true;
                for (i, list) in others.iter().enumerate() {
                    // All shorter lists have the document, so that this list is visited up to its place.
                    let Some(found) = list.find(doc) else {
                        is_in_all = false;
                        break;
                    };
                    depths[i + 1] = depths[i + 1].max(found as u32 + 1);
                    score += weights[i + 1] * self.ranking.impact(list.freqs[found], norm);
                }
                if is_in_all {
                    best.offer(TopK::key(doc, score));
                }
            }
            at = end;
        }
        depths[0] = depths[0].max(at as u32);
    }
}
