//! Lists as a GPU takes them: where each is, and long ones with full blocks repacked in vertical lanes.
//!
//! A warp unpacks a block best when lane *t*'s four postings lie side by side at one bit of four streams: the layout of
//! SIMD-BP128, in **rows** of 16 bytes. Value *i* is in word *i* mod 4 of its row, from bit `i / 4 * width` of these
//! words' stream on; gaps minus one first, frequencies minus one after them, each at the width of the block's largest.
//! A bitset stays one, filled up to a row; a list's last block that isn't full stays as it is, from a row's start on.
//! Source: Lemire and Boytsov, "Decoding billions of integers per second through vectorization", 2015.

use bitpacking::{BitPacker, BitPacker4x};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use super::directory::ListPlace;
use super::encode::ROW_WORDS;
use super::list::Block;
use super::packed::{ColumnCode, FullBlock, Run};
use super::{BLOCK_LEN, Index, PostingList};
use crate::ids::TermId;

/// Lists that one task repacks.
const LISTS_A_TASK: usize = 64;
/// A code for a bitset.
const BITSET: u32 = 63;

/// All long lists of an index.
#[derive(Clone, Debug, Default)]
pub struct DeviceLists {
    /// Rows of all blocks.
    pub payload: Vec<u32>,
    /// Blocks, as many and in the same order as the index has.
    pub blocks: Vec<DeviceBlock>,
    /// Each long list's first word in the payload; a multiple of 4.
    pub starts: Vec<u64>,
}

/// A block: 8 bytes, as kernels read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct DeviceBlock {
    /// Where the block begins, in rows from its list's first word.
    pub row: u32,
    /// From the lowest bit: how documents are packed (6), how frequencies are (6), zero (12), the bound of the impacts
    /// (8), as in a [`BlockEntry`](super::BlockEntry). A full block's codes are widths, or 63 for a bitset.
    pub packing: u32,
}

/// Where a list is, for kernels.
#[derive(Clone, Copy, Debug)]
pub struct ListPosition {
    /// A short list's first packed bit, in bits from the start of the short lists; a long list's number.
    pub start: u64,
    /// A long list's first block.
    pub first_block: u32,
    /// Documents that contain the term.
    pub doc_freq: u32,
    /// The document that the list's first gap counts from; `u32::MAX` where that is the document before the first.
    pub base: u32,
    /// How a short list is packed, as in a [`DeviceBlock`] whose bound is the whole of `max_impact`; 0 for a long list.
    pub packing: u32,
    /// The list's bound.
    pub max_impact: f32,
}

impl DeviceBlock {
    fn full(row: u32, codes: [u32; 2], impact: u8) -> Self {
        Self { row, packing: codes[0] | codes[1] << 6 | u32::from(impact) << 24 }
    }

    /// A block that isn't full.
    fn run(row: u32, run: &Run<'_>, impact: u8) -> Self {
        Self { row, packing: run.doc_code.stored() | run.freq_code.stored() << 6 | u32::from(impact) << 24 }
    }
}

impl Index {
    /// Repacks all long lists, on all of rayon's threads.
    #[must_use]
    pub fn device_lists(&self) -> DeviceLists {
        let lists = self.long_posting_lists();
        let parts: Vec<DeviceLists> = lists
            .par_chunks(LISTS_A_TASK)
            .map(|lists| {
                let mut part = DeviceLists::default();
                lists.iter().for_each(|list| part.add(list));
                part
            })
            .collect();
        let mut all = DeviceLists::default();
        for part in parts {
            let start = all.payload.len() as u64;
            all.starts.extend(part.starts.iter().map(|first| start + first));
            all.payload.extend(part.payload);
            all.blocks.extend(part.blocks);
        }
        all
    }
}

impl Index {
    /// Where a device that has the [short lists](Index::short_lists) and the [`DeviceLists`] finds the term's list.
    ///
    /// # Panics
    /// If there is no such term.
    #[must_use]
    pub fn list_position(&self, term: TermId) -> ListPosition {
        let (start, first_block) = match self.place(term) {
            ListPlace::Single(_) => (0, 0),
            ListPlace::Short(byte) => (u64::from(byte) * 8, 0),
            ListPlace::Long(number) => (u64::from(number), self.long_lists()[number as usize].first_block),
        };
        let list = self.list(term);
        let (doc_freq, max_impact) = (list.doc_freq(), list.max_impact());
        match list.as_run() {
            Some(run) => {
                let DeviceBlock { packing, .. } = DeviceBlock::run(0, run, u8::MAX);
                let start = start + run.bit as u64;
                ListPosition { start, first_block, doc_freq, base: run.base, packing, max_impact }
            }
            None => ListPosition { start, first_block, doc_freq, base: u32::MAX, packing: 0, max_impact },
        }
    }
}

impl DeviceLists {
    fn add(&mut self, list: &PostingList<'_>) {
        let start = self.payload.len();
        self.starts.push(start as u64);
        for block in 0..list.num_blocks() {
            let row = ((self.payload.len() - start) / ROW_WORDS) as u32;
            let impact = list.block_impact_byte(block);
            let block = match list.block(block) {
                Block::Full(full) => DeviceBlock::full(row, self.add_full(&full), impact),
                Block::Run(run) => {
                    self.add_bytes(&run.bytes[..run.end().div_ceil(8)]);
                    DeviceBlock::run(row, &run, impact)
                }
            };
            self.blocks.push(block);
        }
    }

    /// Appends a full block and returns its codes.
    fn add_full(&mut self, full: &FullBlock<'_>) -> [u32; 2] {
        let mut values = [0; BLOCK_LEN];
        let doc_code = if full.doc_code == ColumnCode::BITSET {
            self.add_bytes(&full.bytes[..full.freqs_at]);
            BITSET
        } else {
            full.decode_docs(&mut values);
            let mut before = full.base;
            for value in &mut values {
                let doc = std::mem::replace(value, value.wrapping_sub(before).wrapping_sub(1));
                before = doc;
            }
            self.add_values(&values)
        };
        full.decode_freqs(&mut values);
        values.iter_mut().for_each(|freq| *freq -= 1);
        [doc_code, self.add_values(&values)]
    }

    /// Appends values in four lanes and returns their width.
    fn add_values(&mut self, values: &[u32; BLOCK_LEN]) -> u32 {
        let packer = BitPacker4x::new();
        let width = packer.num_bits(values);
        let start = self.payload.len();
        self.payload.resize(start + ROW_WORDS * usize::from(width), 0);
        packer.compress(values, bytemuck::cast_slice_mut(&mut self.payload[start..]), width);
        width.into()
    }

    /// Appends bytes, zeros filling the last row.
    fn add_bytes(&mut self, bytes: &[u8]) {
        let start = self.payload.len();
        self.payload.resize(start + bytes.len().div_ceil(4 * ROW_WORDS) * ROW_WORDS, 0);
        bytemuck::cast_slice_mut::<u32, u8>(&mut self.payload[start..])[..bytes.len()].copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repacked_blocks_unpack_to_the_same_postings() {
        let sparse: Vec<(u32, u32)> =
            (0..1000).map(|i| (i * 9 + i % 5 + i / 90 * 400, if i % 50 == 3 { 900 } else { 1 + i % 3 })).collect();
        let dense: Vec<(u32, u32)> = (0..700).map(|i| (i / 4 * 8 + i % 4, 1)).collect();
        let index = Index::from_lists(&[("dense", dense), ("sparse", sparse)]).unwrap();
        let lists = index.device_lists();
        assert_eq!((lists.starts.len(), lists.blocks.len()), (2, index.blocks().len()));
        let mut blocks = lists.blocks.iter();
        let packer = BitPacker4x::new();
        let mut bitsets = 0;
        for (list, &start) in index.long_posting_lists().iter().zip(&lists.starts) {
            for block in 0..list.num_blocks() {
                let (mut docs, mut freqs, mut got) = ([0; BLOCK_LEN], [0; BLOCK_LEN], [0; BLOCK_LEN]);
                let len = list.decode_docs(block, &mut docs);
                list.decode_freqs(block, &mut freqs);
                let entry = blocks.next().unwrap();
                let words = &lists.payload[start as usize + ROW_WORDS * entry.row as usize..];
                assert_eq!(entry.packing >> 12 & 0xfff, 0);
                let Block::Full(full) = list.block(block) else {
                    assert!(len < BLOCK_LEN);
                    continue;
                };
                let (doc_width, freq_width) = (entry.packing & 63, entry.packing >> 6 & 63);
                let rows = if doc_width == BITSET {
                    bitsets += 1;
                    full.last_doc.wrapping_sub(full.base).div_ceil(128)
                } else {
                    let base = (full.base != u32::MAX).then_some(full.base);
                    packer.decompress_strictly_sorted(base, bytemuck::cast_slice(words), &mut got, doc_width as u8);
                    assert_eq!(got, docs);
                    doc_width
                };
                packer.decompress(bytemuck::cast_slice(&words[4 * rows as usize..]), &mut got, freq_width as u8);
                assert_eq!(got.map(|freq| freq + 1), freqs);
            }
        }
        assert!(bitsets > 0);
    }
}
