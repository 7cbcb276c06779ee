//! The index file, byte by byte.
//!
//! One file, `index.tandem`; all numbers are little-endian. It is a header of 512 bytes, then eleven sections, each at
//! a multiple of 64 bytes, zeros between them. It is mapped, not read: sections are used as they lie on disk.
//!
//! | OFFSET | SIZE | MEANING |
//! | ---: | ---: | --- |
//! | 0 | 8 | magic, `TandemIx` |
//! | 8 | 4 | format version, 3 |
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
//! | 64 | 11 x 32 | section table, in the order below: kind (8), offset (8), length in bytes (8), checksum (8) |
//! | 416 | 88 | zero |
//! | 504 | 8 | XXH3-64 of bytes 0 to 503 |
//!
//! | KIND | SECTION | ITEM |
//! | ---: | --- | --- |
//! | 1 | payload | 4-byte words: what long lists are packed into, and their probe forms |
//! | 2 | last documents | 4 bytes per block of a long list |
//! | 3 | blocks | 8 bytes per block of a long list: [`BlockEntry`](super::BlockEntry) |
//! | 4 | long lists | 40 bytes: [`LongList`](super::LongList), in order of their terms |
//! | 5 | short lists | bits, each list at a whole byte; the section at a multiple of 4 |
//! | 6 | terms | 4 bytes: `TermSlot`, in byte order of the terms |
//! | 7 | dictionary | maps from the terms to their ranks: see below |
//! | 8 | document lengths | 4 bytes: tokens |
//! | 9 | ends of external ids | 8 bytes: where each id ends in section 10; empty when documents have no ids of their own |
//! | 10 | external ids | UTF-8 text |
//! | 11 | tokenizer | UTF-8 text: its name and options |
//!
//! A section's checksum is the XXH3-64 of the XXH3-64 (8 bytes each) of its pieces of 4 MiB, so that many threads can
//! check it.
//!
//! # Dictionary
//!
//! There is a part for each 65,536 terms, in their order; the last has fewer. First, for each part, 8 bytes: where it
//! ends, from the section's beginning. Then the parts: each an `fst` map from its terms to how many terms of the part
//! come before. In format 2, which is read too, the section is one such map of all terms.
//!
//! # Lists
//!
//! A list of one posting of frequency 1 is its slot. Any other list of fewer than 128 postings is **short**; bit by
//! bit, least significant first:
//!
//! | BIT | BITS | MEANING |
//! | ---: | ---: | --- |
//! | 0 | 7 | postings, 1 to 127 |
//! | 7 | 6 | how the gaps are packed: a code |
//! | 13 | 6 | how the frequencies are packed: a code |
//! | 19 | 8 | bound of the impacts: at most (byte + 1) x (1 + 2^-20) / 256 |
//! | 27 | | gaps minus one, frequencies minus one, exceptions of the gaps, exceptions of the frequencies |
//!
//! A **long** list is a range of blocks and a range of the payload, in rows of 16 bytes. Its blocks lie one after
//! another, each at a whole byte: a full one's documents, then its frequencies. The list's last block may have fewer
//! than 128 postings; then it is packed as a short list's bits from 27 on. Zeros fill the last row. Behind the blocks
//! is the probe form, if there is one:
//!
//! | WORDS | MEANING |
//! | --- | --- |
//! | 16 for each 512 documents | a bit a document, set if it is in the list |
//! | 2 for each 512 documents | 2 bytes for each 128: postings before them, from the last multiple of 65,536 documents on |
//! | 1 for each 65,536 documents | postings before them |
//! | 1 | bit 0: whether frequencies take 8 bits, not 4; above it, how many are too large for them |
//! | 1 for each large frequency | the number of its posting, ascending |
//! | 1 for each large frequency | the frequency |
//! | 1 for each 8 postings of 4 bits, or for each 4 of 8 bits and 18 more | each posting's frequency, or 0 if that is too large |
//!
//! All counts round up, and zeros fill the last row. There are 8 bits where more than one frequency in 40 is above 15.
//!
//! Behind the last list, 448 zero bytes end the payload, so that wide loads stay inside it.
//!
//! # Codes of full blocks
//!
//! A code has seven bits. 63 is a bitset, for documents only: bit *j* of its `last - base` bits, rounded up to bytes,
//! stands for document `base + 1 + j`, where `base` is the last document of the block before, or -1. Any other code is
//! the width of the widest group (6 bits, 0 to 32), and whether widths take four bits (1). Then gaps minus one, or
//! frequencies minus one, are packed in sixteen groups of eight values, each group at its own width:
//!
//! | BYTES | MEANING |
//! | --- | --- |
//! | 4, or 8 if widths take four bits | how much narrower than the widest each group is |
//! | the group's width, for each | its eight values, one after another from the lowest bit on |
//!
//! With two bits a group, byte *j* has groups *j*, *j* + 4, *j* + 8 and *j* + 12, from its lowest bits on; with four,
//! groups *j* and *j* + 8. If the widest width is 0, there are no bits.
//!
//! # Codes of fewer postings
//!
//! A code has six bits. 0 to 32: a width. 33 to 62: a width of 0 to 29, with exceptions. Exceptions are: their number
//! minus one (5 bits), the width of their high bits minus one (5), then each's position (7) and high bits.

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use tandem_base::base::named::named_enum;

/// The file's name in its folder.
pub const FILE_NAME: &str = "index.tandem";

pub(crate) const MAGIC: [u8; 8] = *b"TandemIx";
pub(crate) const VERSION: u32 = 3;
/// The previous version, in which one map was the whole dictionary.
pub(crate) const WHOLE_DICTIONARY_VERSION: u32 = 2;
pub(crate) const BYTE_ORDER_MARK: u32 = 0x0A0B_0C0D;
pub(crate) const HEADER_BYTES: usize = size_of::<FileHeader>();
pub(crate) const SECTION_ALIGNMENT: u64 = 64;
/// Bytes of a section that are hashed at once.
pub(crate) const PIECE_BYTES: usize = 4 << 20;

named_enum! {
    /// A part of the index file, in its order.
    pub enum Section {
        /// Long lists' packed blocks and probe forms.
        Payload = "payload",
        /// The last document of each block.
        LastDocs = "last documents",
        /// Place and packing of each block.
        Blocks = "blocks",
        /// The long lists.
        LongLists = "long lists",
        /// The short lists.
        ShortLists = "short lists",
        /// Place of each term's list.
        Terms = "terms",
        /// The map from terms to ranks.
        Dictionary = "dictionary",
        /// Tokens of each document.
        DocLengths = "document lengths",
        /// Ends of external ids.
        ExternalIdEnds = "ends of external ids",
        /// External ids.
        ExternalIds = "external ids",
        /// The tokenizer's name.
        Tokenizer = "tokenizer",
    }
}

impl Section {
    pub(crate) fn item_bytes(self) -> u64 {
        match self {
            Self::LongLists => 40,
            Self::Blocks | Self::ExternalIdEnds => 8,
            Self::Dictionary | Self::ExternalIds | Self::Tokenizer => 1,
            _ => 4,
        }
    }

    /// Its number in the section table.
    pub(crate) fn kind(self) -> u64 {
        self as u64 + 1
    }
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct SectionEntry {
    pub(crate) kind: u64,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) checksum: u64,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct FileHeader {
    pub(crate) magic: [u8; 8],
    pub(crate) version: u32,
    pub(crate) byte_order_mark: u32,
    pub(crate) file_len: u64,
    pub(crate) num_postings: u64,
    pub(crate) num_tokens: u64,
    pub(crate) num_docs: u32,
    pub(crate) num_terms: u32,
    pub(crate) k1: f32,
    pub(crate) b: f32,
    pub(crate) idf: u32,
    pub(crate) zero: u32,
    pub(crate) sections: [SectionEntry; Section::ALL.len()],
    pub(crate) zeros: [u64; 11],
    pub(crate) checksum: u64,
}

impl FileHeader {
    pub(crate) fn compute_checksum(&self) -> u64 {
        xxh3_64(&bytemuck::bytes_of(self)[..HEADER_BYTES - 8])
    }

    pub(crate) fn section(&self, section: Section) -> &SectionEntry {
        &self.sections[section as usize]
    }
}

pub(crate) fn section_checksum(bytes: &[u8]) -> u64 {
    let pieces: Vec<u64> = bytes.par_chunks(PIECE_BYTES).map(xxh3_64).collect();
    let mut all = Xxh3::new();
    pieces.iter().for_each(|piece| all.update(&piece.to_le_bytes()));
    all.digest()
}
