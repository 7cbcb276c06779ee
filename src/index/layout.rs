//! The index file, byte by byte.
//!
//! One file, `index.tandem`; all numbers are little-endian. It is a header of 384 bytes, then eight sections, each at a
//! multiple of 64 bytes, zeros between them. It is mapped, not read: sections are used as they lie on disk.
//!
//! | OFFSET | SIZE | MEANING |
//! | ---: | ---: | --- |
//! | 0 | 8 | magic, `TandemIx` |
//! | 8 | 4 | format version, 1 |
//! | 12 | 4 | byte-order mark, 0x0A0B0C0D |
//! | 16 | 8 | length of the file in bytes |
//! | 24 | 8 | postings |
//! | 32 | 8 | tokens |
//! | 40 | 4 | documents, 1 to 2^31 - 1 |
//! | 44 | 4 | terms, at least 1 |
//! | 48 | 4 | BM25's k1, single precision |
//! | 52 | 4 | BM25's b, single precision |
//! | 56 | 4 | form of the idf: 0 plus, 1 papers, 2 none: frequencies are impacts |
//! | 60 | 4 | zero |
//! | 64 | 8 x 32 | section table, in the order below: kind (8), offset (8), length in bytes (8), checksum (8) |
//! | 320 | 56 | zero |
//! | 376 | 8 | XXH3-64 of bytes 0 to 375 |
//!
//! | KIND | SECTION | ITEM |
//! | ---: | --- | --- |
//! | 1 | payload | 4-byte words: packed gaps and frequencies, see [`PostingList`](super::PostingList) |
//! | 2 | block headers | 16 bytes: [`BlockHeader`](super::BlockHeader) |
//! | 3 | terms | 24 bytes: [`TermEntry`](super::TermEntry), in byte order of the terms |
//! | 4 | dictionary | an `fst` map from the terms to their ranks |
//! | 5 | document lengths | 4 bytes: tokens |
//! | 6 | ends of external ids | 8 bytes: where each id ends in section 7; empty when documents have no ids of their own |
//! | 7 | external ids | UTF-8 text |
//! | 8 | tokenizer | UTF-8 text: its name and options |
//!
//! A section's checksum is the XXH3-64 of the XXH3-64 (8 bytes each) of its pieces of 4 MiB, so that many threads can
//! check it. Payload word 0 of a list with a full block is at a multiple of 4 words.

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The file's name in its folder.
pub const FILE_NAME: &str = "index.tandem";

pub(super) const MAGIC: [u8; 8] = *b"TandemIx";
pub(super) const VERSION: u32 = 1;
pub(super) const BYTE_ORDER_MARK: u32 = 0x0A0B_0C0D;
pub(super) const HEADER_BYTES: usize = size_of::<FileHeader>();
pub(super) const SECTION_ALIGNMENT: u64 = 64;
/// Bytes of a section that are hashed together.
pub(super) const PIECE_BYTES: usize = 4 << 20;

/// A part of the index file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Packed gaps and frequencies.
    Payload,
    /// Block headers.
    Blocks,
    /// Term entries.
    Terms,
    /// The map from terms to ranks.
    Dictionary,
    /// Tokens of each document.
    DocLengths,
    /// Where external ids end.
    ExternalIdEnds,
    /// External ids.
    ExternalIds,
    /// The tokenizer's name.
    Tokenizer,
}

impl Section {
    /// All sections, in the order of the file.
    pub const ALL: [Self; 8] = [
        Self::Payload,
        Self::Blocks,
        Self::Terms,
        Self::Dictionary,
        Self::DocLengths,
        Self::ExternalIdEnds,
        Self::ExternalIds,
        Self::Tokenizer,
    ];

    /// Its name in messages and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Blocks => "block headers",
            Self::Terms => "terms",
            Self::Dictionary => "dictionary",
            Self::DocLengths => "document lengths",
            Self::ExternalIdEnds => "ends of external ids",
            Self::ExternalIds => "external ids",
            Self::Tokenizer => "tokenizer",
        }
    }

    /// Its number in the section table.
    pub(super) fn kind(self) -> u64 {
        self as u64 + 1
    }
}

/// A row of the section table.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct SectionEntry {
    pub(super) kind: u64,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) checksum: u64,
}

/// The first bytes of the file.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct FileHeader {
    pub(super) magic: [u8; 8],
    pub(super) version: u32,
    pub(super) byte_order_mark: u32,
    pub(super) file_len: u64,
    pub(super) num_postings: u64,
    pub(super) num_tokens: u64,
    pub(super) num_docs: u32,
    pub(super) num_terms: u32,
    pub(super) k1: f32,
    pub(super) b: f32,
    pub(super) idf: u32,
    pub(super) zero: u32,
    pub(super) sections: [SectionEntry; 8],
    pub(super) zeros: [u64; 7],
    pub(super) checksum: u64,
}

impl FileHeader {
    /// The checksum that belongs into `checksum`.
    pub(super) fn compute_checksum(&self) -> u64 {
        xxh3_64(&bytemuck::bytes_of(self)[..HEADER_BYTES - 8])
    }

    /// The row of `section`.
    pub(super) fn section(&self, section: Section) -> &SectionEntry {
        &self.sections[section as usize]
    }
}

/// The checksum of a whole section, on all threads.
pub(super) fn section_checksum(bytes: &[u8]) -> u64 {
    let pieces: Vec<u64> = bytes.par_chunks(PIECE_BYTES).map(xxh3_64).collect();
    let mut all = Xxh3::new();
    pieces.iter().for_each(|piece| all.update(&piece.to_le_bytes()));
    all.digest()
}
