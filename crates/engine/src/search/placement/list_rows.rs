//! Blocks and rows of lists in the GPU's layout, computed from an index without a GPU.

use tandem_base::base::ids::TermId;

use super::learned_reads::ListSize;
use crate::index::{BLOCK_LEN, Index};

pub(crate) const ROW_BYTES: u64 = 16;

/// The first block of a term's list among all blocks, and the number of its blocks. Each short list is one block after
/// the blocks of all long lists.
pub(crate) fn list_blocks(index: &Index, term: TermId) -> (u32, u32) {
    match index.long_list(term) {
        Some(list) => (list.first_block, list.doc_freq.div_ceil(BLOCK_LEN as u32)),
        None => (index.list_sections().blocks.len() as u32 + term.0, 1),
    }
}

/// Length and rows of each list, if block b takes `rows[b]` rows.
pub(crate) fn list_sizes(index: &Index, rows: &[u32]) -> Vec<ListSize> {
    let size = |term: TermId| {
        let (first_block, num_blocks) = list_blocks(index, term);
        let of_list = &rows[first_block as usize..(first_block + num_blocks) as usize];
        ListSize { postings: index.list(term).doc_freq(), rows: of_list.iter().map(|&rows| u64::from(rows)).sum() }
    };
    (0..index.num_terms()).map(TermId).map(size).collect()
}

/// Rows of `len` values of `width` bits.
pub(crate) fn value_rows(len: usize, width: u32) -> u32 {
    (len.div_ceil(4) as u32 * width).div_ceil(32)
}

/// Rows of `len` bytes.
pub(crate) fn byte_rows(len: usize) -> u32 {
    len.div_ceil(16) as u32
}

/// Directory entries per document of a long list with `stride` entries per block, in units of 2^-32.
pub(crate) fn directory_scale(num_docs: u32, doc_freq: u32, stride: u32) -> u32 {
    let entries = u64::from(stride) * u64::from(doc_freq.div_ceil(BLOCK_LEN as u32)) - 1;
    ((entries << 32) / u64::from(num_docs)) as u32
}
