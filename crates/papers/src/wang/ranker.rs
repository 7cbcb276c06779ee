//! The host's twin of the kernel: AND in the order of GS, with exact early termination.
//!
//! The documents of the shortest list are taken in rounds. Each is looked for in the other lists, longer and longer ones,
//! and scored if all have it. After a round the query ends if the k-th best document scores at least the GS of the next
//! document of the shortest list: all that follow score no more, and lose ties by their larger numbers. So the answer is
//! the same for every length of a round, and from whatever place with whatever documents a query goes on.

use super::lists::Postings;
use super::order::Documents;
use super::ranking::Ranking;
use tandem_core::search::TopK;

/// Documents that a query may ask for: groups of 32 that are cut to k halve at least.
pub(crate) const MAX_K: usize = 16;

/// The k best documents so far, as keys, best first: the paper's K.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Best {
    keys: Vec<u64>,
    k: usize,
}

impl Best {
    /// None yet.
    pub(crate) fn new(k: usize) -> Self {
        Self { keys: Vec::with_capacity(k), k }
    }

    /// These, best first.
    #[cfg(feature = "gpu")]
    pub(crate) fn from_keys(keys: &[u64], k: usize) -> Self {
        let mut best = Self::new(k);
        best.keys.extend(keys.iter().take(k).filter(|&&key| key > 0));
        best
    }

    /// Best first.
    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// The k-th best score, 0 while there are fewer.
    #[inline]
    pub(super) fn threshold(&self) -> f32 {
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

/// What ranks: documents and the parameters that their parts were made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranker<'a> {
    pub(crate) documents: &'a Documents,
    pub(crate) ranking: Ranking,
}

impl Ranker<'_> {
    /// Goes on with a query from posting `from` of its shortest list, with what was found before in `best`. `lists` are in
    /// ascending length, with their `weights`; rounds are of `round` documents.
    ///
    /// `depths` are raised to how far each list was visited, in postings: up to its last document that is in all lists
    /// before it, and was reached.
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
                    // The list is visited up to where the document would be: it is in all before this one.
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
