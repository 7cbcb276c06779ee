//! Documents that are or may be in all lists, and their scores.
//!
//! An intersection works on a block of candidates, the leading list's documents, which shrinks list by list. The place
//! of a candidate in another list (block and position) is stored by its position in the leading block. So shrinking
//! moves two small arrays only:
//!
//! ```text
//! docs     3  8 20 31 44          places[t][origin]: block and position in list t
//! origin   0  1  2  3  4
//!    list b holds 8, 31, 44                list c holds 8, 44
//! docs     8 31 44                docs     8 44
//! origin   1  3  4                origin   1  4       -> their frequencies, term by term, shares, sums
//! ```

use std::ops::Range;

use super::bounds::Intersection;
use crate::index::{BLOCK_LEN, PostingList, Probe};
use crate::search::TopK;
use crate::search::cpu::blocks::search::{first_geq, intersect};
use crate::search::cpu::blocks::term::SearchScope;
use crate::search::cpu::scoring::block::score_block;

/// From this number of wanted frequencies on, a block is decoded as a whole.
const MANY_FREQS: usize = 3;

#[derive(Debug)]
pub(crate) struct Candidates {
    len: usize,
    docs: [u32; BLOCK_LEN],
    /// Positions in the leading block.
    origin: [u8; BLOCK_LEN],
    lead_block: usize,
    /// For each term but the first, by origin: block times 128 plus position. Values of dropped candidates are stale.
    places: Vec<[u32; BLOCK_LEN]>,
    scores: [f32; BLOCK_LEN],
    freqs: [u32; BLOCK_LEN],
    shares: [f32; BLOCK_LEN],
    /// For [`Sieve::keep_common`]: candidates by distance from the first one. All zero between calls.
    table: Box<[u8; TABLE_DOCS]>,
    /// Candidates found by the table, counted from 1, and their positions.
    found: [(u8, u8); 2 * BLOCK_LEN],
}

/// The most documents that the table spans.
const TABLE_DOCS: usize = 1 << 14;

impl Default for Candidates {
    fn default() -> Self {
        Self {
            len: 0,
            docs: [0; BLOCK_LEN],
            origin: [0; BLOCK_LEN],
            lead_block: 0,
            places: Vec::new(),
            scores: [0.0; BLOCK_LEN],
            freqs: [0; BLOCK_LEN],
            shares: [0.0; BLOCK_LEN],
            table: Box::new([0; TABLE_DOCS]),
            found: [(0, 0); 2 * BLOCK_LEN],
        }
    }
}

const POSITIONS: [u8; BLOCK_LEN] = {
    let mut positions = [0; BLOCK_LEN];
    let mut i = 0;
    while i < BLOCK_LEN {
        positions[i] = i as u8;
        i += 1;
    }
    positions
};

impl Candidates {
    pub(crate) fn reset(&mut self, num_terms: usize) {
        if self.places.len() < num_terms {
            self.places.resize(num_terms, [0; BLOCK_LEN]);
        }
    }

    #[inline]
    pub(crate) fn docs(&self) -> &[u32] {
        &self.docs[..self.len]
    }

    /// Takes the documents from `start` to before `end` of a block of the leading list.
    #[inline(always)]
    pub(crate) fn lead(&mut self, list: PostingList<'_>, block: usize, start: u32, end: u32) {
        let len = list.decode_docs(block, &mut self.docs);
        self.origin = POSITIONS;
        let stop = if self.docs[len - 1] < end { len } else { self.docs[..len].partition_point(|&doc| doc < end) };
        let from = if self.docs[0] >= start { 0 } else { self.docs[..stop].partition_point(|&doc| doc < start) };
        if from > 0 {
            self.docs.copy_within(from..stop, 0);
            self.origin.copy_within(from..stop, 0);
        }
        self.len = stop - from;
        self.lead_block = block;
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds a candidate of dense lists. Returns whether there is room for another.
    #[inline]
    pub(crate) fn push(&mut self, doc: u32) -> bool {
        self.docs[self.len] = doc;
        self.len += 1;
        self.len < BLOCK_LEN
    }

    /// Keeps the candidates in a dense list.
    #[inline(always)]
    pub(crate) fn retain_probed(&mut self, probe: Probe<'_>) {
        let mut kept = 0;
        for i in 0..self.len {
            let doc = self.docs[i];
            self.docs[kept] = doc;
            self.origin[kept] = self.origin[i];
            kept += usize::from(probe.contains(doc));
        }
        self.len = kept;
    }

    /// Starts to keep candidates one by one.
    #[inline(always)]
    pub(crate) fn sieve(&mut self, term: usize) -> Sieve<'_> {
        let Self { len, docs, origin, places, table, found, .. } = self;
        Sieve { len, docs, origin, places: &mut places[term], table, found, kept: 0 }
    }

    /// Scores the candidates, which are in all lists, and offers them to `best`. Frequencies of dense lists come from
    /// their probes, others from the noted places.
    #[inline(always)]
    pub(crate) fn offer_to(&mut self, best: &mut TopK, input: Intersection<'_>, is_led: bool) {
        let Intersection { scope: SearchScope { terms, norms, .. }, bounds } = input;
        for (t, term) in terms.iter().enumerate() {
            match term.probe {
                Some(probe) if t > 0 || !is_led => {
                    for (freq, &doc) in self.freqs.iter_mut().zip(&self.docs[..self.len]) {
                        *freq = probe.freq(doc);
                    }
                }
                _ => self.read_freqs(t, term.list),
            }
            let docs = &self.docs[..self.len];
            let shares = if t == 0 { &mut self.scores } else { &mut self.shares };
            score_block(docs, &self.freqs[..self.len], term.weight, norms, &mut shares[..self.len]);
            if t > 0 {
                for (score, &share) in self.scores.iter_mut().zip(&self.shares[..self.len]) {
                    *score += share;
                }
            }
            if t + 1 < terms.len() && best.is_full() {
                self.retain_hopeful(bounds.from[t + 1], bounds.slack.pruning(best.threshold()));
                if self.len == 0 {
                    return;
                }
            }
        }
        for (&doc, &score) in self.docs[..self.len].iter().zip(&self.scores) {
            best.offer(doc, score);
        }
    }

    /// Drops candidates whose score so far plus `rest`, the most that the other terms can add, does not exceed
    /// `threshold`.
    #[inline(always)]
    fn retain_hopeful(&mut self, rest: f32, threshold: f32) {
        let mut kept = 0;
        for i in 0..self.len {
            let score = self.scores[i];
            self.docs[kept] = self.docs[i];
            self.origin[kept] = self.origin[i];
            self.scores[kept] = score;
            kept += usize::from(score + rest > threshold);
        }
        self.len = kept;
    }

    #[inline(always)]
    fn read_freqs(&mut self, term: usize, list: PostingList<'_>) {
        let (places, lead_block) = (&self.places[term], self.lead_block);
        let place = |origin: u8| match term {
            0 => (lead_block, usize::from(origin)),
            _ => {
                let place = places[usize::from(origin)] as usize;
                (place / BLOCK_LEN, place % BLOCK_LEN)
            }
        };
        let mut decoded = [0; BLOCK_LEN];
        let mut from = 0;
        while from < self.len {
            let (block, _) = place(self.origin[from]);
            let run = self.origin[from..self.len].iter().take_while(|&&origin| place(origin).0 == block).count();
            let freqs = self.freqs[from..from + run].iter_mut().zip(&self.origin[from..]);
            if run >= MANY_FREQS {
                list.decode_freqs(block, &mut decoded);
                freqs.for_each(|(freq, &origin)| *freq = decoded[place(origin).1]);
            } else {
                freqs.for_each(|(freq, &origin)| *freq = list.freq_at(block, place(origin).1));
            }
            from += run;
        }
    }
}

/// Candidates on their way through one list. Dropping it drops the candidates that were not kept.
pub(crate) struct Sieve<'a> {
    len: &'a mut usize,
    docs: &'a mut [u32; BLOCK_LEN],
    origin: &'a mut [u8; BLOCK_LEN],
    places: &'a mut [u32; BLOCK_LEN],
    table: &'a mut [u8; TABLE_DOCS],
    found: &'a mut [(u8, u8); 2 * BLOCK_LEN],
    kept: usize,
}

impl Sieve<'_> {
    /// The candidates. Those before the next undecided one may be overwritten.
    #[inline]
    pub(crate) fn docs(&self) -> &[u32] {
        &self.docs[..*self.len]
    }

    /// Keeps candidate `i` if `is_here` and notes its place. `i` must ascend.
    #[inline(always)]
    pub(crate) fn keep(&mut self, i: usize, is_here: bool, block: usize, position: usize) {
        let origin = self.origin[i];
        self.docs[self.kept] = self.docs[i];
        self.origin[self.kept] = origin;
        // The place of a dropped candidate is never read.
        self.places[usize::from(origin)] = (block * BLOCK_LEN + position) as u32;
        self.kept += usize::from(is_here);
    }

    /// Keeps the candidates of `run` that are among `docs`, the documents of block `block`, which reaches past the
    /// last. A table maps nearby documents to candidates, so each document of the block needs one look-up.
    #[inline(always)]
    pub(crate) fn keep_common(&mut self, run: Range<usize>, docs: &[u32; BLOCK_LEN], block: usize) {
        let (first, last) = (self.docs[run.start], self.docs[run.end - 1]);
        if (last - first) as usize >= TABLE_DOCS {
            let mut hits = intersect(&self.docs[run.clone()], docs);
            while hits != 0 {
                let candidate = run.start + hits.trailing_zeros() as usize;
                hits &= hits - 1;
                self.keep(candidate, true, block, first_geq(docs, self.docs[candidate]));
            }
            return;
        }
        for (candidate, &doc) in (1..).zip(&self.docs[run.clone()]) {
            self.table[(doc - first) as usize % TABLE_DOCS] = candidate;
        }
        // Unconditional stores avoid an unpredictable branch.
        let mut num_found = 0_u8;
        let (from, to) = (first_geq(docs, first), first_geq(docs, last));
        let to = to + usize::from(docs[to] == last);
        for (position, &doc) in (from as u8..).zip(&docs[from..to]) {
            let candidate = self.table[(doc - first) as usize % TABLE_DOCS];
            self.found[usize::from(num_found)] = (candidate, position);
            num_found += u8::from(candidate > 0);
        }
        for &doc in &self.docs[run.clone()] {
            self.table[(doc - first) as usize % TABLE_DOCS] = 0;
        }
        for i in 0..usize::from(num_found) {
            let (candidate, position) = self.found[i];
            self.keep(run.start + usize::from(candidate) - 1, true, block, usize::from(position));
        }
    }
}

impl Drop for Sieve<'_> {
    fn drop(&mut self) {
        *self.len = self.kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_base::base::ids::DocId;

    #[test]
    fn candidates_are_found_together_wherever_they_lie() {
        // The cases are within the table's range and outside of it, with full and partial blocks.
        for (step, other_step, tail) in
            [(1, 1, 128), (3, 2, 128), (40, 30, 128), (40, 30, 77), (999, 1110, 128), (7, 7, 100)]
        {
            let lead: Vec<u32> = (0..100).map(|i| 500 + i * step).collect();
            let mut docs = [DocId::END.0; BLOCK_LEN];
            for (doc, i) in docs.iter_mut().zip(0..tail) {
                *doc = 500 + i * other_step;
            }
            let reach = docs[tail as usize - 1];
            let run = lead.iter().filter(|&&doc| doc <= reach).count();
            let mut candidates = Candidates::default();
            candidates.reset(2);
            lead.iter().for_each(|&doc| _ = candidates.push(doc));
            candidates.origin = POSITIONS;
            let mut sieve = candidates.sieve(1);
            sieve.keep_common(0..run, &docs, 3);
            drop(sieve);
            let expected: Vec<u32> = lead.iter().copied().filter(|doc| docs.contains(doc)).collect();
            assert_eq!(candidates.docs(), expected, "steps {step} and {other_step}");
            for (&doc, &origin) in candidates.docs().iter().zip(&candidates.origin) {
                assert_eq!(lead[usize::from(origin)], doc);
                let place = candidates.places[1][usize::from(origin)] as usize;
                assert_eq!((place / BLOCK_LEN, docs[place % BLOCK_LEN]), (3, doc));
            }
            assert!(candidates.table.iter().all(|&candidate| candidate == 0));
        }
    }
}
