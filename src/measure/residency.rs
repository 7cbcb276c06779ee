//! What of a part of an index near a GPU is worth: counted, not timed, from the lists and queries alone.
//!
//! The reads that a query is expected to do ([`expected_reads`]) are near or far under three orders of blocks: one learned from
//! a log beforehand, one that follows the queries ([`OnlineTier`], the executor's own machine), and one learned from the very
//! queries that are counted, which nobody has beforehand.

use std::sync::Arc;

use crate::cache::{BlockReads, OnlineOptions, OnlineTier, Pages, expected_reads};
use crate::ids::TermId;
use crate::index::{BLOCK_LEN, Index};
use crate::query::Query;

/// Rows of 16 bytes that blocks take in a GPU's memory: `kernels/lists.cuh` says of what.
#[derive(Clone, Debug)]
pub struct DeviceRows {
    /// By block, those of short lists behind the others, one for each term.
    rows: Vec<u32>,
    /// By block: bits of a document.
    doc_widths: Vec<u8>,
    num_long_blocks: u32,
}

impl DeviceRows {
    /// Decodes all lists.
    #[must_use]
    pub fn new(index: &Index) -> Self {
        let num_long_blocks = index.blocks().len() as u32;
        let num_blocks = num_long_blocks as usize + index.num_terms() as usize;
        let mut found = Self { rows: vec![0; num_blocks], doc_widths: vec![0; num_blocks], num_long_blocks };
        let (mut docs, mut freqs) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
        for term in (0..index.num_terms()).map(TermId) {
            let list = index.list(term);
            let (first_block, _) = found.blocks(index, term);
            for block in 0..list.num_blocks() {
                let len = list.decode_docs(block, &mut docs);
                list.decode_freqs(block, &mut freqs);
                let width = |value: u32| u32::BITS - value.leading_zeros();
                let doc_width = width(docs[len - 1] - docs[0]);
                let freq_width = width(freqs[..len].iter().max().map_or(0, |most| most - 1));
                let at = first_block as usize + block;
                found.rows[at] = value_rows(len, doc_width) + byte_rows(len) + value_rows(len, freq_width);
                found.doc_widths[at] = doc_width as u8;
            }
        }
        found
    }

    /// The blocks of a list: the first, and how many.
    #[must_use]
    pub fn blocks(&self, index: &Index, term: TermId) -> (u32, u32) {
        match index.long_list(term) {
            Some(list) => (list.first_block, list.doc_freq.div_ceil(BLOCK_LEN as u32)),
            None => (self.num_long_blocks + term.0, 1),
        }
    }

    /// Rows of a block,
    pub(super) fn rows(&self, block: u32) -> u32 {
        self.rows[block as usize]
    }

    /// and bits of one of its documents.
    pub(super) fn doc_width(&self, block: u32) -> u32 {
        u32::from(self.doc_widths[block as usize])
    }

    /// Pages of the lists in the order in which `reads` has them.
    #[must_use]
    pub fn pages(&self, index: &Index, reads: &BlockReads, page_rows: u32) -> Pages {
        let lists = reads.order(index.num_terms()).into_iter().map(|term| {
            let (first_block, num_blocks) = self.blocks(index, TermId(term));
            (term, first_block..first_block + num_blocks)
        });
        Pages::new(&self.rows, lists, page_rows)
    }
}

/// Rows that values of a width take.
pub(super) fn value_rows(len: usize, width: u32) -> u32 {
    (len.div_ceil(4) as u32 * width).div_ceil(32)
}

/// Rows that bytes take.
pub(super) fn byte_rows(len: usize) -> u32 {
    len.div_ceil(16) as u32
}

/// What is far with such a share of pages near.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residency {
    /// The share of all pages that is near.
    pub near_share: f64,
    /// Of the reads of all queries, those that are far: learned from the log,
    pub learned: f64,
    /// following the queries, over all of them,
    pub online: f64,
    /// and over the last quarter of them,
    pub online_last: f64,
    /// and learned from the queries themselves.
    pub told: f64,
    /// Of the last quarter's reads, those that are far, learned from the log.
    pub learned_last: f64,
    /// Pages that came,
    pub moved_pages: u64,
    /// in so many epochs,
    pub epochs: u64,
    /// which took so long to decide, in milliseconds each.
    pub decide_ms: f64,
}

/// Counts `queries`, learned from `log`, with such shares of all pages near.
#[must_use]
pub fn count_residency(
    index: &Index,
    rows: &DeviceRows,
    log: &[Query],
    queries: &[Query],
    near_shares: &[f64],
    options: OnlineOptions,
) -> Vec<Residency> {
    let (learned, told) = (block_reads(log), block_reads(queries));
    let tier_of = |reads: &BlockReads, near_share: f64| {
        let pages = Arc::new(rows.pages(index, reads, options.page_rows));
        let num_frames = (f64::from(pages.num_pages()) * near_share) as u32;
        let mut tier = OnlineTier::new(pages, index.num_terms() as usize, num_frames, options);
        reads.iter().for_each(|(list, reads)| tier.record(list, reads));
        tier
    };
    let last_from = queries.len() - queries.len() / 4;
    let count = |&near_share: &f64| {
        let static_tier = tier_of(&learned, near_share);
        let far = |tier: &OnlineTier, queries: &[Query]| Tally::of(tier, queries).share();
        let mut tier = static_tier.clone();
        let (mut all, mut last, mut moved_pages, mut epochs, mut decide_ms) =
            (Tally::default(), Tally::default(), 0, 0, 0.0);
        for (number, epoch) in queries.chunks(options.epoch_queries as usize).enumerate() {
            let first = number * options.epoch_queries as usize;
            all.add(Tally::of(&tier, epoch));
            last.add(Tally::of(&tier, &epoch[last_from.saturating_sub(first).min(epoch.len())..]));
            let began = std::time::Instant::now();
            for query in epoch {
                let lists = lists(query);
                for (&(list, _), (blocks, reads)) in lists.iter().zip(expected_reads(&lists, BLOCK_LEN as u32)) {
                    tier.record(list, (reads / f64::from(blocks)) as f32);
                }
            }
            moved_pages += tier.end_epoch().come.len() as u64;
            decide_ms += began.elapsed().as_secs_f64() * 1e3;
            epochs += 1;
        }
        Residency {
            near_share,
            learned: far(&static_tier, queries),
            online: all.share(),
            online_last: last.share(),
            told: far(&tier_of(&told, near_share), queries),
            learned_last: far(&static_tier, &queries[last_from..]),
            moved_pages,
            epochs,
            decide_ms: decide_ms / epochs.max(1) as f64,
        }
    };
    near_shares.iter().map(count).collect()
}

/// How often these queries are expected to read a block of each list.
#[must_use]
pub fn block_reads(queries: &[Query]) -> BlockReads {
    let mut reads = BlockReads::default();
    queries.iter().for_each(|query| reads.record(&lists(query), BLOCK_LEN as u32));
    reads
}

/// Reads, and those of them that are far.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    far: f64,
    all: f64,
}

impl Tally {
    fn of(tier: &OnlineTier, queries: &[Query]) -> Self {
        let mut tally = Self::default();
        for query in queries {
            let lists = lists(query);
            for (&(list, _), (_, reads)) in lists.iter().zip(expected_reads(&lists, BLOCK_LEN as u32)) {
                tally.add(Self { far: reads * tier.far_share(list), all: reads });
            }
        }
        tally
    }

    fn add(&mut self, more: Self) {
        self.far += more.far;
        self.all += more.all;
    }

    fn share(self) -> f64 {
        if self.all > 0.0 { self.far / self.all } else { 0.0 }
    }
}

/// A query's lists: their numbers and lengths.
fn lists(query: &Query) -> Vec<(u32, u32)> {
    query.terms.iter().map(|term| (term.term.0, term.doc_freq)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::QueryId;

    #[test]
    fn reads_come_near_when_queries_turn_to_other_lists() {
        let list = |from: u32| (from..60_000).step_by(2).map(|doc| (doc, 1 + doc % 5)).collect();
        let lists: [(&str, Vec<(u32, u32)>); 4] = [("a", list(0)), ("b", list(1)), ("c", list(2)), ("d", list(3))];
        let index = Index::from_lists(&lists).unwrap();
        let rows = DeviceRows::new(&index);
        // Documents two apart take 8 bits, frequencies up to 5 three: 8 rows, a byte each 8, 3 more.
        assert_eq!((rows.rows(0), rows.doc_width(0)), (8 + 8 + 3, 8));
        let log = |terms: &[&str]| vec![Query::prepare(QueryId(0), "q", terms, &index).unwrap(); 64];
        let options = OnlineOptions { page_rows: 128, half_life_queries: 16, ..OnlineOptions::of_epochs(8) };
        let [found] = count_residency(&index, &rows, &log(&["a", "b"]), &log(&["c", "d"]), &[0.5], options)[..] else {
            panic!("one share was asked for");
        };
        // Half of the pages hold two of four lists: none of those that are asked for now, but for the page at the border.
        assert!(found.learned > 0.95 && found.told < 0.05, "{found:?}");
        assert!(found.online_last < 0.05 && found.online < 0.75 && found.moved_pages > 0, "{found:?}");
        assert_eq!(found.epochs, 8);
    }
}
