//! Scoring one window of documents in bulk: what MaxScore and its block-max forms share.
//!
//! With the floor `f` (a score that a document must exceed) and upper bounds of the terms' shares inside the window, the
//! query's terms fall into two parts. The last ones, whose bounds together don't exceed `f`, are **non-essential**: a document
//! with no other term cannot enter. Terms are taken in the query's order, rarest first, which is also the order in which
//! shares must be added, and all loops run over arrays:
//!
//! ```text
//! essential       rare      +   +     + +            every posting is scored and added to accumulators, as in exhaustive OR
//!                 medium      + +   +      +         (a single essential term needs none: its postings are the candidates)
//! candidates                  * *     *    *         compacted: documents whose sum + bounds of the others exceeds f
//! non-essential   common      ?  ?    -    ?         looked up for the candidates; those that fall short are dropped
//!                 the         ?  -         ?         before the next term
//! ```
//!
//! Essential blocks are skipped undecoded where their own bound and the other terms' don't exceed `f`; a non-essential block is
//! decoded only for a candidate that its bound keeps alive. Where candidates are many, a non-essential list is added in bulk, too.
//!
//! Source: Turtle and Flood, "Query Evaluation: Strategies and Optimizations", 1995 (MaxScore); the bulk form follows
//! Lucene's `MaxScoreBulkScorer`.

use std::ops::Range;

use crate::exec::TopK;
use crate::ids::DocId;
use crate::index::{BLOCK_LEN, BlockBuffer, Bm25, PostingList, Probe};
use crate::query::Query;

use super::block_search::{find_block, first_geq};
use super::floor::Floor;
use super::scoring::score_block;
use super::term::Term;

/// The most documents of a window: 256 KiB of accumulators, half of a common L2 cache.
const MAX_WINDOW_DOCS: usize = 1 << 16;

/// The documents of small windows: 16 KiB of accumulators, half of a common L1 cache.
const MIN_WINDOW_DOCS: usize = 1 << 12;

/// A window should be large enough for so many postings, or a visit of every list costs more than they do.
const POSTINGS_PER_WINDOW: usize = 512;

/// Documents that one bit of the touched mask stands for.
const CHUNK_DOCS: usize = 16;

/// So many postings in bulk cost as much as one look-up through blocks.
const POSTINGS_PER_LOOK_UP: usize = 3;

/// So few candidates in a block are looked up one by one; more, without a branch that could be mispredicted.
const FEW_CANDIDATES: usize = 3;

/// One window and what is known of the terms inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<'a> {
    /// Its first document.
    pub(super) start: u32,
    /// One past its last document, at most as many further as [`window_docs`] says.
    pub(super) end: u32,
    /// Upper bound of each term's share of a score; 0 where the list has no posting inside.
    pub(super) bounds: &'a [f32],
    /// Each list's first block with a last document of at least `start`.
    pub(super) first_blocks: &'a [u32],
}

/// How many documents windows should have, a power of two, if so many postings of a collection are to be scored.
pub(super) fn window_docs(postings: usize, num_docs: usize) -> usize {
    let docs = POSTINGS_PER_WINDOW * num_docs / postings.max(1);
    docs.clamp(MIN_WINDOW_DOCS, MAX_WINDOW_DOCS).next_power_of_two()
}

/// The block of a list that was decoded last.
#[derive(Debug)]
struct DecodedBlock {
    buffer: BlockBuffer,
    /// [`NO_BLOCK`] if none is.
    block: usize,
    len: usize,
    has_freqs: bool,
    /// Its postings' shares of scores, if they are known: a block is scored as a whole.
    shares: [f32; BLOCK_LEN],
    has_shares: bool,
}

const NO_BLOCK: usize = usize::MAX;

/// Scratch memory for scoring windows, kept from query to query.
#[derive(Debug)]
pub(super) struct BulkScorer {
    decoded: Box<[DecodedBlock; Query::MAX_TERMS]>,
    /// All zero between windows.
    accumulators: Box<[f32; MAX_WINDOW_DOCS]>,
    touched: Touched,
    candidates: Candidates,
    /// `before[i]`: the bounds of terms before i; `from[i]`: of term i and those after it.
    before: [f32; Query::MAX_TERMS + 1],
    from: [f32; Query::MAX_TERMS + 1],
}

/// Documents that may still enter, ascending, with their shares so far.
#[derive(Debug)]
struct Candidates {
    docs: Box<[u32; MAX_WINDOW_DOCS]>,
    scores: Box<[f32; MAX_WINDOW_DOCS]>,
    len: usize,
}

impl Default for BulkScorer {
    fn default() -> Self {
        let decoded = || DecodedBlock {
            buffer: BlockBuffer::default(),
            block: NO_BLOCK,
            len: 0,
            has_freqs: false,
            shares: [0.0; BLOCK_LEN],
            has_shares: false,
        };
        Self {
            decoded: Box::new(std::array::from_fn(|_| decoded())),
            accumulators: Box::new([0.0; MAX_WINDOW_DOCS]),
            touched: Touched { words: [0; MAX_WINDOW_DOCS / CHUNK_DOCS / 64] },
            candidates: Candidates {
                docs: Box::new([0; MAX_WINDOW_DOCS]),
                scores: Box::new([0.0; MAX_WINDOW_DOCS]),
                len: 0,
            },
            before: [0.0; Query::MAX_TERMS + 1],
            from: [0.0; Query::MAX_TERMS + 1],
        }
    }
}

impl BulkScorer {
    /// Forgets the lists of the query before; `num_terms` of the next.
    pub(super) fn reset(&mut self, num_terms: usize) {
        for decoded in &mut self.decoded[..num_terms] {
            decoded.block = NO_BLOCK;
        }
    }

    /// Offers every document of the window that can enter, in ascending order.
    ///
    /// One body is compiled twice, for every x86-64 and for those with AVX2; both give the same bits, as the compiler may not
    /// reorder or fuse float operations.
    pub(super) fn score(
        &mut self,
        terms: &[Term<'_>],
        norms: &[f32],
        window: &Window<'_>,
        floor: &mut Floor,
        best: &mut TopK,
    ) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("bmi1")
        {
            // SAFETY: the processor has these features, as has just been asked.
            return unsafe { self.score_avx2(terms, norms, window, floor, best) };
        }
        self.score_any(terms, norms, window, floor, best);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt,bmi1")]
    fn score_avx2(
        &mut self,
        terms: &[Term<'_>],
        norms: &[f32],
        window: &Window<'_>,
        floor: &mut Floor,
        best: &mut TopK,
    ) {
        self.score_any(terms, norms, window, floor, best);
    }

    #[inline(always)]
    fn score_any(
        &mut self,
        terms: &[Term<'_>],
        norms: &[f32],
        window: &Window<'_>,
        floor: &mut Floor,
        best: &mut TopK,
    ) {
        let num_terms = terms.len();
        let bounds = &window.bounds[..num_terms];
        self.from[num_terms] = 0.0;
        for (i, bound) in bounds.iter().enumerate().rev() {
            self.from[i] = self.from[i + 1] + bound;
        }
        if self.from[0] <= floor.pruning() {
            return;
        }
        let mut essential = num_terms;
        while self.from[essential - 1] <= floor.pruning() {
            essential -= 1;
        }
        for (i, bound) in bounds[..essential].iter().enumerate() {
            self.before[i + 1] = self.before[i] + bound;
        }

        let mut present = (0..essential).filter(|&i| bounds[i] > 0.0);
        let Some(first) = present.next() else { return };
        if present.next().is_none() {
            self.stream(first, essential, &terms[first], norms, window, floor);
        } else {
            for i in (first..essential).filter(|&i| bounds[i] > 0.0) {
                // What a block of this list must bring for its documents to stay in the race.
                let needed = floor.pruning() - (self.before[i] + self.from[i + 1]);
                self.accumulate(i, &terms[i], norms, window, needed);
            }
            self.collect(window, floor.pruning() - self.from[essential]);
        }
        for i in (essential..num_terms).filter(|&i| bounds[i] > 0.0) {
            if self.candidates.len == 0 {
                return;
            }
            self.look_up(i, &terms[i], norms, window, floor.pruning() - self.from[i + 1]);
        }
        let Candidates { docs, scores, len } = &self.candidates;
        for (&doc, &score) in docs[..*len].iter().zip(&scores[..*len]) {
            floor.offer(doc, score, best);
        }
    }

    /// The only essential list inside the window: its postings themselves are the candidates.
    #[inline(always)]
    fn stream(
        &mut self,
        i: usize,
        essential: usize,
        term: &Term<'_>,
        norms: &[f32],
        window: &Window<'_>,
        floor: &Floor,
    ) {
        let needed = floor.pruning() - self.from[essential];
        let Candidates { docs: kept_docs, scores: kept_scores, len } = &mut self.candidates;
        *len = 0;
        let decoded = &mut self.decoded[i];
        let mut block = window.first_blocks[i] as usize;
        while let Some(run) = decoded.next_run(term, norms, window, needed, &mut block) {
            for (&doc, &share) in decoded.buffer.docs[run.clone()].iter().zip(&decoded.shares[run]) {
                // Written in any case, counted if kept: no branch that could be mispredicted.
                kept_docs[*len % MAX_WINDOW_DOCS] = doc;
                kept_scores[*len % MAX_WINDOW_DOCS] = share;
                *len += usize::from(share > needed);
            }
        }
    }

    /// Adds the shares of a list's postings inside the window to the accumulators, but for blocks with a bound of at most
    /// `needed`.
    #[inline(always)]
    fn accumulate(&mut self, i: usize, term: &Term<'_>, norms: &[f32], window: &Window<'_>, needed: f32) {
        let Self { decoded, accumulators, touched, .. } = self;
        let decoded = &mut decoded[i];
        // The remainder never changes the value; it shows the compiler that the index is in range.
        let offset = |doc: u32| (doc - window.start) as usize % MAX_WINDOW_DOCS;
        let mut block = window.first_blocks[i] as usize;
        while let Some(run) = decoded.next_run(term, norms, window, needed, &mut block) {
            let (docs, shares) = (&decoded.buffer.docs[run.clone()], &decoded.shares[run]);
            for (&share, &doc) in shares.iter().zip(docs) {
                accumulators[offset(doc)] += share;
            }
            let (first, last) = (offset(docs[0]) / CHUNK_DOCS, offset(docs[docs.len() - 1]) / CHUNK_DOCS);
            if 2 * (last - first) < docs.len() {
                // Dense: hardly a chunk between the first and the last is left out.
                touched.add_range(first, last);
            } else {
                docs.iter().for_each(|&doc| touched.add(offset(doc) / CHUNK_DOCS));
            }
        }
    }

    /// Makes candidates of the window's documents with a sum above `needed`, at least 0, and clears the accumulators.
    #[inline(always)]
    fn collect(&mut self, window: &Window<'_>, needed: f32) {
        let Self { accumulators, touched, candidates, .. } = self;
        let Candidates { docs, scores, len } = candidates;
        let mut count = 0;
        touched.drain(window, |first| {
            let Some(chunk) = accumulators[first..].first_chunk_mut::<CHUNK_DOCS>() else { return };
            let mut hits = above(chunk, needed);
            while hits != 0 {
                let offset = hits.trailing_zeros() as usize;
                hits &= hits - 1;
                docs[count % MAX_WINDOW_DOCS] = window.start + (first + offset) as u32;
                scores[count % MAX_WINDOW_DOCS] = chunk[offset % CHUNK_DOCS];
                count += 1;
            }
            *chunk = [0.0; CHUNK_DOCS];
        });
        *len = count;
    }

    /// Adds the share of non-essential term `i` to all candidates and keeps those with a sum above `needed`.
    #[inline(always)]
    fn look_up(&mut self, i: usize, term: &Term<'_>, norms: &[f32], window: &Window<'_>, needed: f32) {
        if let Some(probe) = term.probe {
            return self.candidates.look_up_directly(probe, term.weight, norms, needed);
        }
        let first_block = window.first_blocks[i];
        let last_docs = term.list.last_docs();
        let num_blocks = find_block(last_docs, first_block as usize, window.end - 1) + 1 - first_block as usize;
        if self.candidates.len * POSTINGS_PER_LOOK_UP > num_blocks * BLOCK_LEN {
            self.accumulate(i, term, norms, window, f32::NEG_INFINITY);
            self.candidates.look_up_accumulated(&self.accumulators, window.start, needed);
            let Self { accumulators, touched, .. } = self;
            touched.drain(window, |first| accumulators[first..first + CHUNK_DOCS].fill(0.0));
        } else {
            self.decoded[i].look_up(term, first_block, norms, &mut self.candidates, needed);
        }
    }
}

/// Which chunks of accumulators are not zero.
#[derive(Debug)]
struct Touched {
    /// Bit i % 64 of word i / 64 stands for chunk i.
    words: [u64; MAX_WINDOW_DOCS / CHUNK_DOCS / 64],
}

impl Touched {
    /// Adds chunk `chunk`.
    #[inline(always)]
    fn add(&mut self, chunk: usize) {
        self.words[chunk / 64] |= 1 << (chunk % 64);
    }

    /// Adds the chunks from `first` to `last`.
    #[inline(always)]
    fn add_range(&mut self, first: usize, last: usize) {
        for word in first / 64..=last / 64 {
            let low = if word == first / 64 { first % 64 } else { 0 };
            let high = if word == last / 64 { last % 64 } else { 63 };
            self.words[word] |= (u64::MAX >> (63 - (high - low))) << low;
        }
    }

    /// Visits the first document of each chunk, counted from the window's start, in ascending order, and forgets them.
    #[inline(always)]
    fn drain(&mut self, window: &Window<'_>, mut visit: impl FnMut(usize)) {
        let words = ((window.end - window.start) as usize).div_ceil(64 * CHUNK_DOCS);
        for (number, word) in self.words[..words].iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                visit((number * 64 + bits.trailing_zeros() as usize) * CHUNK_DOCS);
                bits &= bits - 1;
            }
        }
    }
}

impl Candidates {
    /// By the list's direct form.
    #[inline(always)]
    fn look_up_directly(&mut self, probe: Probe<'_>, weight: f32, norms: &[f32], needed: f32) {
        let mut kept = 0;
        for candidate in 0..self.len {
            let doc = self.docs[candidate];
            let freq = probe.freq(doc);
            let score = self.scores[candidate] + share_or_zero(weight, freq, norms[doc as usize]);
            self.docs[kept] = doc;
            self.scores[kept] = score;
            kept += usize::from(score > needed);
        }
        self.len = kept;
    }

    /// From accumulators that hold the list's shares.
    #[inline(always)]
    fn look_up_accumulated(&mut self, accumulators: &[f32; MAX_WINDOW_DOCS], start: u32, needed: f32) {
        let mut kept = 0;
        for candidate in 0..self.len {
            let doc = self.docs[candidate];
            let score = self.scores[candidate] + accumulators[(doc - start) as usize % MAX_WINDOW_DOCS];
            self.docs[kept] = doc;
            self.scores[kept] = score;
            kept += usize::from(score > needed);
        }
        self.len = kept;
    }
}

impl DecodedBlock {
    /// Decodes and scores the next block from `block` on with postings inside the window and a bound above `needed`, and tells
    /// which of its postings those are; `None` if there is none. `block` moves past it.
    #[inline(always)]
    fn next_run(
        &mut self,
        term: &Term<'_>,
        norms: &[f32],
        window: &Window<'_>,
        needed: f32,
        block: &mut usize,
    ) -> Option<Range<usize>> {
        let last_docs = term.list.last_docs();
        while let Some(&last_doc) = last_docs.get(*block) {
            let current = *block;
            // The next block begins past this one's end: it may have nothing to do with the window.
            *block = if last_doc < window.end - 1 { current + 1 } else { usize::MAX };
            if term.block_bound(current) <= needed {
                continue;
            }
            self.decode(&term.list, current);
            let docs = &self.buffer.docs;
            let begin = if docs[0] < window.start { first_geq(docs, window.start) } else { 0 };
            let stop = if last_doc < window.end { self.len } else { first_geq(docs, window.end).min(self.len) };
            if begin < stop {
                self.score(term, norms);
                return Some(begin..stop);
            }
        }
        None
    }

    /// Adds the share of a non-essential term to all candidates, block by block from `first_block` on, and keeps those with a
    /// sum above `needed`.
    #[inline(always)]
    fn look_up(&mut self, term: &Term<'_>, first_block: u32, norms: &[f32], candidates: &mut Candidates, needed: f32) {
        let Candidates { docs, scores, len } = candidates;
        let last_docs = term.list.last_docs();
        let (mut next, mut kept) = (0, 0);
        let mut block = first_block as usize;
        while next < *len {
            block = find_block(last_docs, block, docs[next]);
            let last_doc = last_docs.get(block).copied().unwrap_or(u32::MAX);
            // What a candidate in this block must have for the block's best to lift it above `needed`.
            let bound = if block < last_docs.len() { term.block_bound(block) } else { 0.0 };
            let needed_here = needed - bound;
            let first_alive = kept;
            while next < *len && docs[next] <= last_doc {
                docs[kept] = docs[next];
                scores[kept] = scores[next];
                kept += usize::from(scores[next] > needed_here);
                next += 1;
            }
            if kept == first_alive || block == last_docs.len() {
                continue;
            }
            self.decode(&term.list, block);
            let end_alive = kept;
            kept = first_alive;
            if end_alive - first_alive <= FEW_CANDIDATES {
                // Most are not in the list: of a block's frequencies few are asked for.
                for candidate in first_alive..end_alive {
                    let (doc, mut score) = (docs[candidate], scores[candidate]);
                    let position = first_geq(&self.buffer.docs, doc);
                    if self.buffer.docs[position] == doc {
                        let freq = term.list.freq_at(block, position);
                        score += Bm25::score(term.weight, freq, norms[doc as usize]);
                    }
                    docs[kept] = doc;
                    scores[kept] = score;
                    kept += usize::from(score > needed);
                }
                continue;
            }
            self.decode_freqs(&term.list);
            for candidate in first_alive..end_alive {
                let doc = docs[candidate];
                let position = first_geq(&self.buffer.docs, doc);
                let is_here = self.buffer.docs[position] == doc;
                let freq = if is_here { self.buffer.freqs[position] } else { 0 };
                let score = scores[candidate] + share_or_zero(term.weight, freq, norms[doc as usize]);
                docs[kept] = doc;
                scores[kept] = score;
                kept += usize::from(score > needed);
            }
        }
        *len = kept;
    }

    #[inline(always)]
    fn decode(&mut self, list: &PostingList<'_>, block: usize) {
        if self.block != block {
            self.len = list.decode_docs(block, &mut self.buffer.docs);
            // Searching takes all 128 places in order; a tail's free places count as past the end.
            self.buffer.docs[self.len..].fill(DocId::END.0);
            self.block = block;
            self.has_freqs = false;
            self.has_shares = false;
        }
    }

    #[inline(always)]
    fn score(&mut self, term: &Term<'_>, norms: &[f32]) {
        if !self.has_shares {
            self.decode_freqs(&term.list);
            let (docs, freqs) = (&self.buffer.docs[..self.len], &self.buffer.freqs[..self.len]);
            score_block(docs, freqs, term.weight, norms, &mut self.shares[..self.len]);
            self.has_shares = true;
        }
    }

    #[inline(always)]
    fn decode_freqs(&mut self, list: &PostingList<'_>) {
        if !self.has_freqs {
            list.decode_freqs(self.block, &mut self.buffer.freqs);
            self.has_freqs = true;
        }
    }
}

/// Bit i: score i is above `needed`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn above(scores: &[f32; CHUNK_DOCS], needed: f32) -> u32 {
    use std::arch::x86_64::{_mm_cmpgt_ps, _mm_movemask_ps, _mm_set1_ps};
    let (fours, _) = scores.as_chunks::<4>();
    let mut hits = 0;
    for (i, &four) in fours.iter().enumerate() {
        // SAFETY: these instructions are part of every x86-64.
        let mask = unsafe { _mm_movemask_ps(_mm_cmpgt_ps(bytemuck::cast(four), _mm_set1_ps(needed))) };
        hits |= (mask as u32) << (4 * i);
    }
    hits
}

/// Bit i: score i is above `needed`.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn above(scores: &[f32; CHUNK_DOCS], needed: f32) -> u32 {
    (0..).zip(scores).fold(0, |hits, (i, &score)| hits | u32::from(score > needed) << i)
}

/// A posting's share; 0 for a frequency of 0, which stands for no posting.
#[inline(always)]
fn share_or_zero(weight: f32, freq: u32, norm: f32) -> f32 {
    // A norm of 0 would make it 0 / 0. The least number above it changes no other quotient: added to 1 or more, it is lost.
    Bm25::score(weight, freq, norm.max(f32::MIN_POSITIVE))
}
