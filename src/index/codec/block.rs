//! Bit packing of blocks: gaps between documents, and frequencies.
//!
//! Documents ascend strictly, so each is stored as its gap to the one before, minus one; frequencies are at least 1 and
//! stored minus one. All values of a block take the width of the largest:
//!
//! ```text
//! documents      3    4    7   12        before the list: -1
//! gaps minus 1   3    0    2    4        3 bits each
//! ```
//!
//! Full blocks go through [`BitPacker4x`]: value *i* is in lane *i* mod 4 of 16-byte vectors, at bit `(i / 4) * bits` of
//! that lane's stream of words. Tails go horizontally: value *i* begins at bit `i * bits`, least significant first, and
//! the section is padded to a whole word.
//! Source: Lemire and Boytsov, "Decoding billions of integers per second through vectorization", 2015.

use bitpacking::{BitPacker, BitPacker4x};

use super::packed::{grow, pack_horizontal, packed_words, unpack_horizontal, width_of};
use super::simd;
use crate::index::BLOCK_LEN;

/// Appends the packed gaps of `docs`, at most a block, ascending strictly from above `previous`; returns the width.
pub(in crate::index) fn pack_docs(previous: Option<u32>, docs: &[u32], out: &mut Vec<u32>) -> u8 {
    if docs.len() == BLOCK_LEN {
        let packer = BitPacker4x::new();
        let width = packer.num_bits_strictly_sorted(previous, docs);
        let section = grow(out, packed_words(BLOCK_LEN, width));
        packer.compress_strictly_sorted(previous, docs, bytemuck::cast_slice_mut(section), width);
        return width;
    }
    let mut gaps = [0; BLOCK_LEN];
    let mut before = previous.unwrap_or(u32::MAX);
    for (gap, &doc) in gaps.iter_mut().zip(docs) {
        *gap = doc.wrapping_sub(before).wrapping_sub(1);
        before = doc;
    }
    pack_tail(&gaps[..docs.len()], out)
}

/// Appends the packed `freqs`, at most a block, each at least 1; returns the width.
pub(in crate::index) fn pack_freqs(freqs: &[u32], out: &mut Vec<u32>) -> u8 {
    let mut values = [0; BLOCK_LEN];
    for (value, &freq) in values.iter_mut().zip(freqs) {
        *value = freq.wrapping_sub(1);
    }
    if freqs.len() < BLOCK_LEN {
        return pack_tail(&values[..freqs.len()], out);
    }
    let packer = BitPacker4x::new();
    let width = packer.num_bits(&values);
    let section = grow(out, packed_words(BLOCK_LEN, width));
    packer.compress(&values, bytemuck::cast_slice_mut(section), width);
    width
}

/// The `len` documents packed into `words` at `width`; those past `len` are unspecified.
///
/// # Panics
/// If `words` is short of `packed_words(len, width)`, `width` above 32 or `len` above a block.
#[inline]
pub(in crate::index) fn unpack_docs(
    previous: Option<u32>,
    words: &[u32],
    width: u8,
    len: usize,
    docs: &mut [u32; BLOCK_LEN],
) {
    if len == BLOCK_LEN {
        simd::unpack_docs(words, width, previous.unwrap_or(u32::MAX), docs);
        return;
    }
    unpack_horizontal(&words[..packed_words(len, width)], width, &mut docs[..len]);
    simd::sum_gaps(previous.unwrap_or(u32::MAX), &mut docs[..len]);
}

/// The `len` frequencies packed into `words` at `width`; those past `len` are unspecified.
///
/// # Panics
/// As [`unpack_docs`].
#[inline]
pub(in crate::index) fn unpack_freqs(words: &[u32], width: u8, len: usize, freqs: &mut [u32; BLOCK_LEN]) {
    if len == BLOCK_LEN {
        simd::unpack(words, width, freqs);
    } else {
        unpack_horizontal(&words[..packed_words(len, width)], width, &mut freqs[..len]);
    }
    for freq in &mut freqs[..len] {
        *freq = freq.wrapping_add(1);
    }
}

fn pack_tail(values: &[u32], out: &mut Vec<u32>) -> u8 {
    let width = width_of(values);
    pack_horizontal(values, width, grow(out, packed_words(values.len(), width)));
    width
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values below `2^width`, one of them exactly `width` bits wide.
    fn values(len: usize, width: u8, seed: u64) -> Vec<u32> {
        let mut state = seed | 1;
        let mask = ((1_u64 << width) - 1) as u32;
        let mut values: Vec<u32> = (0..len)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 32) as u32 & mask
            })
            .collect();
        if width > 0 {
            values[len / 2] |= 1 << (width - 1);
        }
        values
    }

    #[test]
    fn frequencies_of_every_width_and_length_roundtrip() {
        for width in 0..=32_u8 {
            for len in 1..=BLOCK_LEN {
                // Frequencies are stored minus one, so 2^32 - 1 itself is not a value that is stored.
                let freqs: Vec<u32> =
                    values(len, width, len as u64).iter().map(|v| (*v).min(u32::MAX - 1) + 1).collect();
                let mut words = Vec::new();
                let got_width = pack_freqs(&freqs, &mut words);
                assert_eq!(got_width, width, "length {len}");
                assert_eq!(words.len(), packed_words(len, width));
                let mut out = [0; BLOCK_LEN];
                unpack_freqs(&words, width, len, &mut out);
                assert_eq!(&out[..len], freqs, "width {width}, length {len}");
            }
        }
    }

    #[test]
    fn documents_of_every_width_and_length_roundtrip() {
        for width in 0..=31_u8 {
            for len in 1..=BLOCK_LEN {
                for previous in [None, Some(0), Some(41)] {
                    // One gap has the width, the others are 1: documents stay in range.
                    let mut doc = previous.map_or(0, |p: u32| p + 1);
                    let docs: Vec<u32> = (0..len)
                        .map(|i| {
                            doc += if i == len / 2 && width > 0 { 1 << (width - 1) } else { 0 };
                            doc += 1;
                            doc - 1
                        })
                        .collect();
                    let mut words = Vec::new();
                    let got_width = pack_docs(previous, &docs, &mut words);
                    assert_eq!(got_width, width);
                    let mut out = [0; BLOCK_LEN];
                    unpack_docs(previous, &words, width, len, &mut out);
                    assert_eq!(&out[..len], docs, "width {width}, length {len}");
                }
            }
        }
    }

    #[test]
    fn a_full_block_holds_plain_packed_gaps_minus_one_in_four_lanes() {
        for (previous, start) in [(None, 5_u32), (None, 0), (Some(99), 100), (Some(99), 130)] {
            let docs: Vec<u32> = (0..128_u32).map(|i| start + i * 3 + i % 3).collect();
            let mut words = Vec::new();
            let width = usize::from(pack_docs(previous, &docs, &mut words));
            let before = std::iter::once(previous.unwrap_or(u32::MAX)).chain(docs.iter().copied());
            for (i, (before, &doc)) in before.zip(&docs).enumerate() {
                let gap: u32 = (0..width)
                    .map(|bit| {
                        let at = i / 4 * width + bit;
                        (words[at / 32 * 4 + i % 4] >> (at % 32) & 1) << bit
                    })
                    .sum();
                assert_eq!(gap, doc.wrapping_sub(before).wrapping_sub(1), "value {i} after {previous:?}");
            }
        }
    }
}
