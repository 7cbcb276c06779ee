//! Validation of an index file before its contents are used.
//!
//! Each check returns what it expected; the caller adds the path and the remedy. After these checks, decoding any list
//! stays inside its section, documents ascend below the number of documents, and frequencies are at least 1. All
//! documents are decoded once to verify this, so searches need no checks.

use rayon::prelude::*;

use super::BLOCK_LEN;
use super::device::ListSections;
use super::directory::{ListPlace, TermSlot};
use super::encode::ROW_WORDS;
use super::layout::{
    BYTE_ORDER_MARK, FileHeader, HEADER_BYTES, MAGIC, SECTION_ALIGNMENT, Section, VERSION, WHOLE_DICTIONARY_VERSION,
    section_checksum,
};
use super::list::{Block, Blocks, short_run};
use super::packed::{SLACK_BYTES, column::ColumnCode, full::FullBlock, patch::Code, run::Run};
use super::probe::ProbeShape;

/// Returns the file's header if magic number, version, section table and checksums are valid.
pub(crate) fn check_file(bytes: &[u8]) -> Result<FileHeader, String> {
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
    if !(WHOLE_DICTIONARY_VERSION..=VERSION).contains(&header.version) {
        let (version, oldest) = (header.version, WHOLE_DICTIONARY_VERSION);
        return Err(format!("index format {version}, this build reads formats {oldest} to {VERSION}"));
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
        if !entry.len.is_multiple_of(section.item_bytes()) {
            return Err(format!("damaged: section `{}` holds no whole number of items", section.name()));
        }
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

/// Checks all lists on all threads. Each list must be inside its section, long lists must be contiguous, and terms and
/// postings must be as many as in the header.
pub(crate) fn check_lists(header: &FileHeader, lists: ListSections<'_>) -> Result<(), String> {
    if lists.slots.len() != header.num_terms as usize || lists.slots.is_empty() {
        return Err("damaged: the number of terms differs from the header's".into());
    }
    if lists.payload.len() * 4 < SLACK_BYTES {
        return Err("damaged: the payload ends too early".into());
    }
    if lists.blocks.len() != lists.last_docs.len() {
        return Err("damaged: the number of blocks differs from that of last documents".into());
    }
    let bad = (0..lists.long_lists.len()).into_par_iter().find_first(|&number| !lists.is_long_good(number));
    if let Some(number) = bad {
        return Err(format!("damaged: long list {number} is inconsistent"));
    }
    let postings = (0..lists.slots.len())
        .into_par_iter()
        .with_min_len(1024)
        .map(|term| lists.postings_of(term).ok_or(term))
        .try_reduce(|| 0, |a, b| Ok(a + b));
    match postings {
        Err(term) => Err(format!("damaged: list {term} is inconsistent")),
        Ok(postings) if postings != header.num_postings => {
            Err("damaged: the number of postings differs from the header's".into())
        }
        Ok(_) => Ok(()),
    }
}

impl ListSections<'_> {
    /// The postings of a term, or `None` if its list is inconsistent.
    fn postings_of(&self, term: usize) -> Option<u64> {
        match bytemuck::cast::<u32, TermSlot>(self.slots[term]).place() {
            ListPlace::Single(doc) => (doc < self.num_docs).then_some(1),
            ListPlace::Short(byte) => {
                let bytes: &[u8] = bytemuck::cast_slice(self.short_lists);
                let run = short_run(bytes, byte)?;
                let bits = (bytes.len() - byte as usize) * 8;
                (run.len > 0 && is_run_good(&run, bits, 0, self.num_docs, None)).then_some(run.len as u64)
            }
            ListPlace::Long(number) => self.long_lists.get(number as usize).map(|list| u64::from(list.doc_freq)),
        }
    }

    /// Whether a long list and its parts begin where the previous ones end.
    fn is_long_good(&self, number: usize) -> bool {
        let (list, num_docs) = (&self.long_lists[number], self.num_docs);
        let payload_end = self.payload.len() as u64 - SLACK_BYTES as u64 / 4;
        let (next_block, next_word) = self
            .long_lists
            .get(number + 1)
            .map_or((self.blocks.len(), payload_end), |next| (next.first_block as usize, next.payload_word));
        let (first_block, doc_freq) = (list.first_block as usize, list.doc_freq as usize);
        let words = u64::from(list.rows) * ROW_WORDS as u64;
        let contiguous = (number > 0 || (first_block == 0 && list.payload_word == 0))
            && first_block.checked_add(doc_freq.div_ceil(BLOCK_LEN)) == Some(next_block)
            && next_block <= self.blocks.len()
            && list.payload_word.checked_add(words) == Some(next_word)
            && next_word <= payload_end;
        let bounds_hold =
            list.max_impact.is_finite() && list.kth_impacts.iter().all(|kth| (0.0..=list.max_impact).contains(kth));
        if !contiguous || !bounds_hold || !(BLOCK_LEN..=num_docs as usize).contains(&doc_freq) {
            return false;
        }
        let mut blocks_end = words as usize * 4;
        if list.probe_row != 0 {
            let probe = &self.payload[list.payload_word as usize..][..words as usize];
            let probe = probe.get(list.probe_row as usize * ROW_WORDS..).unwrap_or_default();
            let shape = ProbeShape::read(num_docs as usize, doc_freq, probe);
            if shape.is_none_or(|shape| shape.words() != probe.len()) {
                return false;
            }
            blocks_end = list.probe_row as usize * ROW_WORDS * 4;
        }
        let payload = bytemuck::cast_slice(&self.payload[list.payload_word as usize..]);
        let range = first_block..next_block;
        let blocks = Blocks { list, entries: &self.blocks[range.clone()], payload, num_docs };
        are_blocks_good(blocks, blocks_end, &self.last_docs[range])
    }
}

/// Whether all blocks of a list lie in the first `end` bytes of its payload and decode to valid postings.
fn are_blocks_good(blocks: Blocks<'_>, end: usize, last_docs: &[u32]) -> bool {
    // One more than the last document of the previous block.
    let mut next_doc = 0_u32;
    for (number, (entry, &last_doc)) in blocks.entries.iter().zip(last_docs).enumerate() {
        let Some(bytes) = end.checked_sub(entry.byte as usize) else { return false };
        let good = last_doc < blocks.num_docs
            && match blocks.block(number, next_doc.wrapping_sub(1), last_doc) {
                Block::Full(full) => is_full_block_good(&full, bytes, next_doc),
                Block::Run(run) => is_run_good(&run, bytes * 8, next_doc, blocks.num_docs, Some(last_doc)),
            };
        if !good {
            return false;
        }
        next_doc = last_doc + 1;
    }
    true
}

/// Whether a full block takes at most `len` bytes and decodes to valid postings.
fn is_full_block_good(full: &FullBlock<'_>, len: usize, next_doc: u32) -> bool {
    let codes_hold = full.doc_code.is_valid() && full.freq_code.is_valid() && full.freq_code != ColumnCode::BITSET;
    let (doc_bytes, freq_bytes) = full.part_bytes();
    if !codes_hold || full.freqs_at != doc_bytes || doc_bytes + freq_bytes > len {
        return false;
    }
    let mut values = [0; BLOCK_LEN];
    full.decode_docs(&mut values);
    let docs_hold = do_ascend(&values, next_doc) && values[BLOCK_LEN - 1] == full.last_doc;
    // Only a 32-bit frequency minus one can overflow to zero.
    docs_hold
        && (full.freq_code.widest() < 32 || {
            full.decode_freqs(&mut values);
            !values.contains(&0)
        })
}

/// Whether a run takes at most `len` bits and decodes to valid postings, which end with `last_doc` if given.
fn is_run_good(run: &Run<'_>, len: usize, next_doc: u32, num_docs: u32, last_doc: Option<u32>) -> bool {
    if run.end() - run.bit > len.saturating_sub(run.bit)
        || run.doc_code == Code::INVALID
        || run.freq_code == Code::INVALID
    {
        return false;
    }
    let mut values = [0; BLOCK_LEN];
    run.decode_docs(&mut values);
    let Some(&last) = values[..run.len].last() else { return true };
    let docs_hold =
        do_ascend(&values[..run.len], next_doc) && last < num_docs && last_doc.is_none_or(|doc| doc == last);
    docs_hold && {
        run.decode_freqs(&mut values);
        !values[..run.len].contains(&0)
    }
}

/// Whether documents ascend strictly from at least `next_doc`.
fn do_ascend(docs: &[u32], next_doc: u32) -> bool {
    docs.windows(2).fold(docs.first().is_none_or(|&doc| doc >= next_doc), |all, pair| all & (pair[0] < pair[1]))
}
