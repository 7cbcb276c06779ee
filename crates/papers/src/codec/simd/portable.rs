//! Inner loops for any processor; `mod.rs` describes each of them.

use bitpacking::{BitPacker, BitPacker4x};
use tandem_engine::index::BLOCK_LEN;

use crate::codec::packed::mask;

/// Capacity of [`Zeros`]: the places of a block, and the surplus of a step over 64 bits.
pub(crate) const MAX_ZEROS: usize = BLOCK_LEN + 64;

/// Places of zeros in a vector of bits.
pub(crate) type Zeros = [u32; MAX_ZEROS];

pub(crate) fn unpack(words: &[u32], width: u8, out: &mut [u32; BLOCK_LEN]) {
    BitPacker4x::new().decompress(bytemuck::cast_slice(words), out, width);
}

#[inline]
pub(crate) fn unpack_horizontal(words: &[u32], width: u8, out: &mut [u32]) {
    unpack_horizontal_from(0, words, width, out);
}

#[inline(always)]
pub(crate) fn unpack_horizontal_from(first: usize, words: &[u32], width: u8, out: &mut [u32]) {
    let mask = mask(width);
    let bytes: &[u8] = bytemuck::cast_slice(words);
    for (i, value) in out.iter_mut().enumerate() {
        let bit = (first + i) * usize::from(width);
        let window = match bytes.get(bit / 8..).and_then(<[u8]>::first_chunk) {
            Some(&eight) => u64::from_le_bytes(eight) >> (bit % 8),
            None => {
                // Fewer than eight bytes remain near the end.
                let low = words.get(bit / 32).copied().unwrap_or(0);
                let high = words.get(bit / 32 + 1).copied().unwrap_or(0);
                (u64::from(high) << 32 | u64::from(low)) >> (bit % 32)
            }
        };
        *value = window as u32 & mask;
    }
}

/// Returns the zeros of bits `start..end` as set bits of 64-bit words, each with the place of its lowest bit, counted
/// from `start` (wrapping, because the first word may begin before).
#[inline(always)]
pub(crate) fn zero_words(words: &[u32], start: usize, end: usize) -> impl Iterator<Item = (u64, u32)> {
    let first = start / 32 * 32;
    words[start / 32..end.div_ceil(32)].chunks(2).zip((first..).step_by(64)).map(move |(pair, at)| {
        let high = pair.get(1).copied().unwrap_or(0);
        let mut zeros = !(u64::from(high) << 32 | u64::from(pair[0]));
        if at < start {
            zeros &= u64::MAX << (start - at);
        }
        if at + 64 > end {
            zeros &= (1 << (end - at)) - 1;
        }
        (zeros, at.wrapping_sub(start) as u32)
    })
}

#[inline]
pub(crate) fn zeros(words: &[u32], start: usize, end: usize, len: usize, zeros: &mut Zeros) -> usize {
    let mut found = 0;
    for (mut bits, place) in zero_words(words, start, end) {
        while bits != 0 {
            zeros[found] = place.wrapping_add(bits.trailing_zeros());
            bits &= bits - 1;
            found += 1;
        }
        if found >= len {
            break;
        }
    }
    found
}
