//! What must hold in an index file before anything in it is trusted.
//!
//! Each check says what it expected; the caller adds the path and the way out. After them, decoding any block stays inside
//! the payload, and every list's documents end below the number of documents.

use rayon::prelude::*;

use super::layout::{
    BYTE_ORDER_MARK, FileHeader, HEADER_BYTES, MAGIC, SECTION_ALIGNMENT, Section, VERSION, section_checksum,
};
use super::{BLOCK_LEN, BlockHeader, TermEntry};

/// The header of the file, if it is one of ours, whole, and its sections are in place with the right checksums.
pub(super) fn check_file(bytes: &[u8]) -> Result<FileHeader, String> {
    let magic_len = bytes.len().min(MAGIC.len());
    if bytes[..magic_len] != MAGIC[..magic_len] {
        return Err("not a Tandem index (its first bytes differ)".into());
    }
    let Some(head) = bytes.get(..HEADER_BYTES) else {
        return Err(format!("truncated: {} bytes, the header alone has {HEADER_BYTES}", bytes.len()));
    };
    let header: FileHeader = bytemuck::pod_read_unaligned(head);
    if header.byte_order_mark == BYTE_ORDER_MARK.swap_bytes() {
        return Err("written in the other byte order than this machine's".into());
    }
    if header.version != VERSION {
        return Err(format!("index format {}, this build reads {VERSION}", header.version));
    }
    if header.byte_order_mark != BYTE_ORDER_MARK || header.checksum != header.compute_checksum() {
        return Err("damaged: the header's checksum differs".into());
    }
    if header.file_len != bytes.len() as u64 {
        return Err(format!("truncated or extended: {} bytes, expected {}", bytes.len(), header.file_len));
    }
    let mut end = HEADER_BYTES as u64;
    for section in Section::ALL {
        let entry = header.section(section);
        let next = entry.offset.checked_add(entry.len).and_then(|end| end.checked_next_multiple_of(SECTION_ALIGNMENT));
        let in_place = entry.kind == section.kind() && entry.offset == end;
        end = match next {
            Some(next) if in_place && next <= header.file_len => next,
            _ => return Err(format!("damaged: section `{}` is out of place", section.name())),
        };
        let (start, stop) = (entry.offset as usize, (entry.offset + entry.len) as usize);
        if section_checksum(&bytes[start..stop]) != entry.checksum {
            return Err(format!("damaged: the checksum of section `{}` differs", section.name()));
        }
        if bytes[stop..end as usize].iter().any(|&byte| byte != 0) {
            return Err(format!("damaged: bytes after section `{}`, expected zeros", section.name()));
        }
    }
    if end != header.file_len {
        return Err("damaged: bytes after the last section".into());
    }
    Ok(header)
}

/// Checks that the lists lie one after another and inside the payload, on all threads.
pub(super) fn check_lists(
    header: &FileHeader,
    entries: &[TermEntry],
    blocks: &[BlockHeader],
    payload: &[u32],
) -> Result<(), String> {
    let inconsistent = |what: &str| Err(format!("damaged: {what}"));
    if entries.len() != header.num_terms as usize || entries.is_empty() {
        return inconsistent("the number of terms differs from the header's");
    }
    let postings: u64 = entries.par_iter().map(|entry| u64::from(entry.doc_freq)).sum();
    if postings != header.num_postings {
        return inconsistent("the number of postings differs from the header's");
    }
    let good = |position: usize| {
        let entry = &entries[position];
        let (next_block, next_word) = entries
            .get(position + 1)
            .map_or((blocks.len(), payload.len() as u64), |next| (next.first_block as usize, next.payload_word));
        let first_block = entry.first_block as usize;
        let contiguous = (position > 0 || first_block == 0)
            && first_block.checked_add((entry.doc_freq as usize).div_ceil(BLOCK_LEN)) == Some(next_block)
            && next_block <= blocks.len();
        let aligned = (entry.doc_freq as usize) < BLOCK_LEN || entry.payload_word.is_multiple_of(4);
        contiguous
            && aligned
            && (1..=header.num_docs).contains(&entry.doc_freq)
            && check_blocks(entry, &blocks[first_block..next_block], header.num_docs)
                .and_then(|words| entry.payload_word.checked_add(words))
                .is_some_and(|end| end <= next_word && next_word <= payload.len() as u64)
    };
    match (0..entries.len()).into_par_iter().with_min_len(1024).find_first(|&position| !good(position)) {
        Some(position) => inconsistent(&format!("list {position} is inconsistent")),
        None => Ok(()),
    }
}

/// The words that a list's blocks take, if the blocks are consistent with each other and with `entry`.
fn check_blocks(entry: &TermEntry, blocks: &[BlockHeader], num_docs: u32) -> Option<u64> {
    let mut words = 0;
    let mut left = entry.doc_freq as usize;
    // One past the last document before the block.
    let mut next_doc = 0_u64;
    for block in blocks {
        let widths_fit = block.doc_bits <= 32 && block.freq_bits <= 32;
        let enough_docs = u64::from(block.last_doc) + 1 >= next_doc + block.len() as u64;
        let bound_holds = (0.0..=entry.max_impact).contains(&block.max_impact);
        if !widths_fit || block.len() != left.min(BLOCK_LEN) || u64::from(block.word_offset) != words {
            return None;
        }
        if !enough_docs || !bound_holds || block.last_doc >= num_docs {
            return None;
        }
        words += block.words() as u64;
        left -= block.len();
        next_doc = u64::from(block.last_doc) + 1;
    }
    (left == 0).then_some(words)
}
