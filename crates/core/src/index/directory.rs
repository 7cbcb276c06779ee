//! Where lists and blocks are: the fixed-size items that stand before the packed bits.

use bytemuck::{Pod, Zeroable};

use super::packed::{Code, ColumnCode};

/// Where a term's list is: four bytes, as stored. The two highest bits tell which kind it is.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct TermSlot(u32);

/// A [`TermSlot`], unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListPlace {
    /// The list is this document, with frequency 1. Stored with a high bit of 0.
    Single(u32),
    /// The list is in the section of short lists, from this byte on. High bits 10.
    Short(u32),
    /// The list's number in the table of long lists. High bits 11.
    Long(u32),
}

impl TermSlot {
    /// Bytes of short lists, and numbers of long ones, are below this.
    pub(super) const LIMIT: usize = 1 << 30;

    /// The slot of a list.
    pub(super) fn new(place: ListPlace) -> Self {
        match place {
            ListPlace::Single(doc) => Self(doc),
            ListPlace::Short(byte) => Self(0b10 << 30 | byte),
            ListPlace::Long(number) => Self(0b11 << 30 | number),
        }
    }

    #[inline]
    pub(super) fn place(self) -> ListPlace {
        let low = self.0 & (Self::LIMIT as u32 - 1);
        match self.0 >> 30 {
            0b10 => ListPlace::Short(low),
            0b11 => ListPlace::Long(low),
            _ => ListPlace::Single(self.0),
        }
    }
}

/// The k of the stored k-th best impacts.
pub(super) const STORED_RANKS: [usize; 3] = [10, 100, 1000];

/// A list of 128 postings or more: 40 bytes, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct LongList {
    /// First word of the list's payload, in 32-bit words from the payload's start; a multiple of 4.
    pub payload_word: u64,
    /// The list's first block; it has `doc_freq` / 128 blocks, rounded up.
    pub first_block: u32,
    /// Documents that contain the term.
    pub doc_freq: u32,
    /// Upper bound of `tf / (tf + norm(document))` over the list, BM25 at the parameters the index was built with.
    pub max_impact: f32,
    /// Lower bounds of the 10th, 100th and 1,000th best of these; 0 where there are fewer postings.
    pub kth_impacts: [f32; STORED_RANKS.len()],
    /// Where the probe form begins, in rows of 16 bytes from the list's payload; 0 if there is none.
    pub probe_row: u32,
    /// Rows of the list's payload, the probe form included.
    pub rows: u32,
}

/// What a search must know of a block before it decodes it, but for its last document: 8 bytes, as stored and
/// as the GPU reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockEntry {
    /// Where the block begins, in bytes from the list's payload.
    pub byte: u32,
    /// From the lowest bit: how documents are packed (7), how frequencies are (7), how many bytes before these (10),
    /// the bound of the impacts (8): at most (byte + 1) / 256 of the list's.
    pub packing: u32,
}

/// Where in a block's packing the bytes before its frequencies are.
const FREQS_AT_SHIFT: u32 = 2 * ColumnCode::BITS;
/// Most bytes before a block's frequencies: 16 groups of 32 take fewer.
const MAX_FREQS_AT: usize = (1 << 10) - 1;

impl BlockEntry {
    /// A full block; its bound is 0 still.
    pub(super) fn full(byte: u32, codes: (ColumnCode, ColumnCode), freqs_at: usize) -> Self {
        assert!(freqs_at <= MAX_FREQS_AT, "{freqs_at} bytes of documents");
        let codes = codes.0.stored() | codes.1.stored() << ColumnCode::BITS;
        Self { byte, packing: codes | (freqs_at as u32) << FREQS_AT_SHIFT }
    }

    /// A list's last block that isn't full; its bound is 0 still.
    pub(super) fn run(byte: u32, codes: (Code, Code)) -> Self {
        Self { byte, packing: codes.0.stored() | codes.1.stored() << ColumnCode::BITS }
    }

    /// The block with the bound of its impacts, which had none.
    pub(super) fn with_impact(self, impact: u8) -> Self {
        Self { packing: self.packing | u32::from(impact) << 24, ..self }
    }

    /// How a full block's documents and frequencies are packed.
    #[inline]
    pub(super) fn column_codes(self) -> (ColumnCode, ColumnCode) {
        (ColumnCode::from_stored(self.packing), ColumnCode::from_stored(self.packing >> ColumnCode::BITS))
    }

    /// How those of a block that isn't full are.
    #[inline]
    pub(super) fn run_codes(self) -> (Code, Code) {
        (Code::from_stored(self.packing), Code::from_stored(self.packing >> ColumnCode::BITS))
    }

    /// Bytes of a full block's documents.
    #[inline]
    pub(super) fn freqs_at(self) -> usize {
        (self.packing >> FREQS_AT_SHIFT) as usize & MAX_FREQS_AT
    }

    #[inline]
    pub(super) fn impact(self) -> u8 {
        (self.packing >> 24) as u8
    }
}

/// A bound of impacts in one byte: `(byte + 1) / 256` of a whole.
#[inline]
pub(super) fn impact_bound(byte: u8, whole: f32) -> f32 {
    whole * ((f32::from(byte) + 1.0) / 256.0)
}

/// The smallest byte whose bound is at least `impact`, which is at most `whole`.
pub(super) fn impact_byte(impact: f32, whole: f32) -> u8 {
    // One below what the quotient says, since that is rounded. The cast saturates: a quotient that
    // is no number becomes 0.
    let mut byte = ((impact / whole * 256.0).ceil() as u8).saturating_sub(2);
    while impact_bound(byte, whole) < impact && byte < u8::MAX {
        byte += 1;
    }
    byte
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slots_keep_their_places() {
        for place in [0, 1, (1 << 30) - 1].into_iter().flat_map(|n| [ListPlace::Short(n), ListPlace::Long(n)]) {
            assert_eq!(TermSlot::new(place).place(), place);
        }
        for doc in [0, 1 << 30, (1 << 31) - 1] {
            assert_eq!(TermSlot::new(ListPlace::Single(doc)).place(), ListPlace::Single(doc));
        }
    }

    proptest! {
        #[test]
        fn a_byte_bounds_its_impact_tightly(whole in 1e-6_f32..1.1, share in 0.0_f32..=1.0) {
            let impact = (whole * share).min(whole);
            let byte = impact_byte(impact, whole);
            prop_assert!(impact_bound(byte, whole) >= impact);
            prop_assert!(byte == 0 || impact_bound(byte - 1, whole) < impact);
            prop_assert_eq!(impact_byte(whole, whole), 255);
        }
    }
}
