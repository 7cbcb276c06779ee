//! What blocks take in a GPU's memory, and what queries are expected to read there: known from an index alone, without a GPU.

use crate::cache::{BlockReads, LearnedReads, ListRead, ListSize, Pages, ReadRates, expected_reads};
use crate::ids::TermId;
use crate::index::{BLOCK_LEN, Index};
use crate::query::Query;

/// Bytes of a row, and of a block's header.
pub const ROW_BYTES: u64 = 16;
const HEADER_BYTES: u64 = 16;

/// What a query is expected to read of its lists, which are numbered as terms are.
pub fn query_reads<'a>(query: &'a Query, rates: &'a ReadRates) -> impl Iterator<Item = ListRead> + use<'a> {
    expected_reads(query.terms.iter().map(|term| (term.term.0, term.doc_freq)), BLOCK_LEN as u32, rates)
}

/// How often these queries are expected to read a block of each list.
#[must_use]
pub fn block_reads(queries: &[Query], rates: &ReadRates) -> BlockReads {
    let mut reads = BlockReads::default();
    queries.iter().for_each(|query| reads.record(query_reads(query, rates)));
    reads
}

/// What queries of a log are expected to read of each list, to tell what others will.
#[must_use]
pub fn learned_reads(log: &[Query], rates: &ReadRates) -> LearnedReads {
    let mut learned = LearnedReads::default();
    for (number, query) in log.iter().enumerate() {
        query_reads(query, rates).for_each(|read| learned.record(number, read.list, read.reads));
    }
    learned
}

/// Rows of 16 bytes that blocks take in a GPU's memory: `kernels/lists.cuh` says of what.
#[derive(Clone, Debug)]
pub struct DeviceRows {
    /// By block, those of short lists behind the others, one for each term.
    rows: Vec<u32>,
}

impl DeviceRows {
    /// Decodes all lists.
    #[must_use]
    pub fn new(index: &Index) -> Self {
        let num_blocks = index.list_sections().blocks.len() + index.num_terms() as usize;
        let mut found = Self { rows: vec![0; num_blocks] };
        let (mut docs, mut freqs) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
        for term in (0..index.num_terms()).map(TermId) {
            let list = index.list(term);
            let (first_block, _) = list_blocks(index, term);
            for block in 0..list.num_blocks() {
                let len = list.decode_docs(block, &mut docs);
                list.decode_freqs(block, &mut freqs);
                let width = |value: u32| u32::BITS - value.leading_zeros();
                let doc_width = width(docs[len - 1] - docs[0]);
                let freq_width = width(freqs[..len].iter().max().map_or(0, |most| most - 1));
                let at = first_block as usize + block;
                found.rows[at] = value_rows(len, doc_width) + byte_rows(len) + value_rows(len, freq_width);
            }
        }
        found
    }

    /// By list: how long it is, and its rows.
    #[must_use]
    pub fn list_sizes(&self, index: &Index) -> Vec<ListSize> {
        list_sizes(index, &self.rows)
    }

    /// Rows of a block.
    #[must_use]
    pub fn rows(&self, block: u32) -> u32 {
        self.rows[block as usize]
    }

    /// Bytes of the headers of all blocks.
    #[must_use]
    pub fn headers_bytes(&self) -> u64 {
        HEADER_BYTES * self.rows.len() as u64
    }

    /// Rows of all blocks.
    #[must_use]
    pub fn num_rows(&self) -> u64 {
        self.rows.iter().map(|&rows| u64::from(rows)).sum()
    }

    /// Pages of the lists, in this order.
    #[must_use]
    pub fn pages(&self, index: &Index, order: &[u32], page_rows: u32) -> Pages {
        let lists = order.iter().map(|&term| {
            let (first_block, num_blocks) = list_blocks(index, TermId(term));
            (term, first_block..first_block + num_blocks)
        });
        Pages::new(&self.rows, lists, page_rows)
    }
}

/// The blocks of a term's list among all: the first, and how many. A short list has one of its own behind those of the long ones.
#[must_use]
pub fn list_blocks(index: &Index, term: TermId) -> (u32, u32) {
    match index.long_list(term) {
        Some(list) => (list.first_block, list.doc_freq.div_ceil(BLOCK_LEN as u32)),
        None => (index.list_sections().blocks.len() as u32 + term.0, 1),
    }
}

/// By list: how long it is, and the rows that it takes where blocks take so many each.
#[must_use]
pub fn list_sizes(index: &Index, rows: &[u32]) -> Vec<ListSize> {
    let size = |term: TermId| {
        let (first_block, num_blocks) = list_blocks(index, term);
        let of_list = &rows[first_block as usize..(first_block + num_blocks) as usize];
        ListSize { postings: index.list(term).doc_freq(), rows: of_list.iter().map(|&rows| u64::from(rows)).sum() }
    };
    (0..index.num_terms()).map(TermId).map(size).collect()
}

/// Rows that values of a width take.
#[must_use]
pub fn value_rows(len: usize, width: u32) -> u32 {
    (len.div_ceil(4) as u32 * width).div_ceil(32)
}

/// Rows that bytes take.
#[must_use]
pub fn byte_rows(len: usize) -> u32 {
    len.div_ceil(16) as u32
}
