//! Fixed-size items that locate lists and blocks.

use bytemuck::{Pod, Zeroable};

use super::packed::{column::ColumnCode, patch::Code};

/// Place of a term's list, as stored in four bytes. The two highest bits give the kind of the list.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct TermSlot(u32);

/// A [`TermSlot`], unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListPlace {
    /// The list is this document, with frequency 1. Stored with a high bit of 0.
    Single(u32),
    /// The list begins at this byte of the section of short lists. The highest bits are 10.
    Short(u32),
    /// Number of the list in the table of long lists. The highest bits are 11.
    Long(u32),
}

impl TermSlot {
    /// Exclusive bound of bytes of short lists and of numbers of long lists.
    pub(crate) const LIMIT: usize = 1 << 30;

    pub(crate) fn new(place: ListPlace) -> Self {
        match place {
            ListPlace::Single(doc) => Self(doc),
            ListPlace::Short(byte) => Self(0b10 << 30 | byte),
            ListPlace::Long(number) => Self(0b11 << 30 | number),
        }
    }

    #[inline]
    pub(crate) fn place(self) -> ListPlace {
        let low = self.0 & (Self::LIMIT as u32 - 1);
        match self.0 >> 30 {
            0b10 => ListPlace::Short(low),
            0b11 => ListPlace::Long(low),
            _ => ListPlace::Single(self.0),
        }
    }
}

/// Ranks k of the stored k-th best impacts.
pub(crate) const STORED_RANKS: [usize; 3] = [10, 100, 1000];

/// A list of at least 128 postings, as stored in 40 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct LongList {
    /// First 32-bit word of the list's payload, counted from the payload's start. It is a multiple of 4.
    pub payload_word: u64,
    /// First block of the list. The list has `doc_freq` / 128 blocks, rounded up.
    pub first_block: u32,
    /// Documents that contain the term.
    pub doc_freq: u32,
    /// Upper bound of `tf / (tf + norm(document))` over the list, for the BM25 parameters of the index.
    pub max_impact: f32,
    /// Lower bounds of the 10th, 100th and 1,000th best such value, or 0 if there are fewer postings.
    pub kth_impacts: [f32; STORED_RANKS.len()],
    /// Start of the probe form in rows of 16 bytes from the list's payload, or 0 if there is none.
    pub probe_row: u32,
    /// Rows of the list's payload, including the probe form.
    pub rows: u32,
}

/// Facts of a block that a search needs before it decodes the block, except the last document. They take 8 bytes, in the form
/// in which files store and GPUs read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockEntry {
    /// Start of the block in bytes from the list's payload.
    pub byte: u32,
    /// Bit fields from the lowest bit on: code of documents (7), code of frequencies (7), bytes before the frequencies
    /// (10), bound of the impacts (8). The bound is (byte + 1) / 256 of the list's.
    pub packing: u32,
}

/// Position of the field `freqs_at` in `packing`.
const FREQS_AT_SHIFT: u32 = 2 * ColumnCode::BITS;
/// Maximum bytes before a block's frequencies. Sixteen groups of 32 take fewer.
const MAX_FREQS_AT: usize = (1 << 10) - 1;

impl BlockEntry {
    /// A full block whose bound is not set yet.
    pub(crate) fn full(byte: u32, codes: (ColumnCode, ColumnCode), freqs_at: usize) -> Self {
        assert!(freqs_at <= MAX_FREQS_AT, "{freqs_at} bytes of documents");
        let codes = codes.0.stored() | codes.1.stored() << ColumnCode::BITS;
        Self { byte, packing: codes | (freqs_at as u32) << FREQS_AT_SHIFT }
    }

    /// The partial block at the end of a list, whose bound is not set yet.
    pub(crate) fn run(byte: u32, codes: (Code, Code)) -> Self {
        Self { byte, packing: codes.0.stored() | codes.1.stored() << ColumnCode::BITS }
    }

    /// Sets the bound of the impacts, which must not be set yet.
    pub(crate) fn with_impact(self, impact: u8) -> Self {
        Self { packing: self.packing | u32::from(impact) << 24, ..self }
    }

    /// Codes of a full block's documents and frequencies.
    #[inline]
    pub(crate) fn column_codes(self) -> (ColumnCode, ColumnCode) {
        (ColumnCode::from_stored(self.packing), ColumnCode::from_stored(self.packing >> ColumnCode::BITS))
    }

    /// Codes of a partial block's documents and frequencies.
    #[inline]
    pub(crate) fn run_codes(self) -> (Code, Code) {
        (Code::from_stored(self.packing), Code::from_stored(self.packing >> ColumnCode::BITS))
    }

    /// Bytes of a full block's documents.
    #[inline]
    pub(crate) fn freqs_at(self) -> usize {
        (self.packing >> FREQS_AT_SHIFT) as usize & MAX_FREQS_AT
    }

    #[inline]
    pub(crate) fn impact(self) -> u8 {
        (self.packing >> 24) as u8
    }
}

/// Decodes a bound of impacts: `(byte + 1) / 256` of `whole`.
#[inline]
pub(crate) fn impact_bound(byte: u8, whole: f32) -> f32 {
    whole * ((f32::from(byte) + 1.0) / 256.0)
}

/// The smallest byte whose bound is at least `impact`, which is at most `whole`.
pub(crate) fn impact_byte(impact: f32, whole: f32) -> u8 {
    // The quotient is rounded, so the search begins one lower. The cast saturates, and NaN becomes 0.
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
