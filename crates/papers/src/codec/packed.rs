//! Arrays of numbers of one width, the slots of most codecs.
//!
//! Groups of 128 are packed **vertically** in four lanes as in SIMD-BP128: number *i* of a group is in lane *i* mod 4,
//! at bit `(i / 4) * width` of that lane's stream; the words of the four lanes alternate. A last group of fewer than
//! 128 numbers is packed **horizontally**: number *i* at bit `i * width`, padded to a whole word.
//!
//! ```text
//! group       first word     number i of the group begins at
//! full        4 width g      word 4 ((i / 4) width / 32) + i mod 4, bit ((i / 4) width) mod 32
//! last        4 width g      word i width / 32, bit i width mod 32
//! ```
//!
//! Single numbers can be read, and multiplication gives the place of a group.

use bitpacking::{BitPacker, BitPacker4x};
use tandem_engine::index::BLOCK_LEN;

use super::{CodecError, simd};

/// Returns the number of 32-bit words of `len` numbers of `width` bits.
pub(crate) fn packed_words(len: usize, width: impl Into<u32>) -> usize {
    // 128 numbers fill whole words, so that only the last group is rounded up.
    (len * width.into() as usize).div_ceil(32)
}

/// Checks a width from encoded words.
pub(crate) fn check_width(what: &'static str, width: u32) -> Result<u8, CodecError> {
    CodecError::check(width <= 32, what, width as usize, "at most 32 bits")?;
    Ok(width as u8)
}

/// Appends the lowest `width` bits of each value.
pub(crate) fn pack(values: &[u32], width: u8, out: &mut Vec<u32>) {
    let mask = mask(width);
    let (groups, tail) = values.as_chunks::<BLOCK_LEN>();
    for group in groups {
        let low = group.map(|value| value & mask);
        let section = grow(out, packed_words(BLOCK_LEN, width));
        BitPacker4x::new().compress(&low, bytemuck::cast_slice_mut(section), width);
    }
    pack_horizontal(tail, width, grow(out, packed_words(tail.len(), width)));
}

/// Unpacks one group from the beginning of `words` into `out`: 128 numbers, or fewer for the last group. Fails if
/// `words` is short. `width` is at most 32.
#[inline]
pub(crate) fn unpack_group(words: &[u32], width: u8, out: &mut [u32]) -> Result<(), CodecError> {
    let needed = packed_words(out.len(), width);
    let Some(words) = words.get(..needed) else {
        return Err(CodecError::Truncated { what: "a packed group", needed, found: words.len() });
    };
    if let Ok(group) = <&mut [u32; BLOCK_LEN]>::try_from(&mut *out) {
        simd::unpack(words, width, group);
    } else {
        simd::unpack_horizontal(words, width, out);
    }
    Ok(())
}

pub(crate) fn unpack(words: &[u32], width: u8, len: usize, out: &mut Vec<u32>) -> Result<(), CodecError> {
    let start = out.len();
    out.resize(start + len, 0);
    let group_words = packed_words(BLOCK_LEN, width);
    for (i, group) in out[start..].chunks_mut(BLOCK_LEN).enumerate() {
        unpack_group(words.get(i * group_words..).unwrap_or_default(), width, group)?;
    }
    Ok(())
}

/// Packs the lowest `width` bits of each value horizontally. `section` is zeroed and long enough.
pub(crate) fn pack_horizontal(values: &[u32], width: u8, section: &mut [u32]) {
    let mask = mask(width);
    for (i, &value) in values.iter().enumerate().take_while(|_| width > 0) {
        let bit = i * usize::from(width);
        let shifted = u64::from(value & mask) << (bit % 32);
        section[bit / 32] |= shifted as u32;
        if let Some(next) = section.get_mut(bit / 32 + 1) {
            *next |= (shifted >> 32) as u32;
        }
    }
}

/// Appends `words` zero words to `out` and returns them.
pub(crate) fn grow(out: &mut Vec<u32>, words: usize) -> &mut [u32] {
    let start = out.len();
    out.resize(start + words, 0);
    &mut out[start..]
}

/// Returns the bits of `value`; 0 has none.
pub(crate) fn bits(value: u32) -> u8 {
    (u32::BITS - value.leading_zeros()) as u8
}

/// Returns the bits of the largest of `numbers`.
pub(crate) fn width_of(numbers: &[u32]) -> u8 {
    bits(numbers.iter().fold(0, |all, number| all | number))
}

/// Returns a mask of the lowest `width` bits, at most 32.
#[inline]
pub(crate) fn mask(width: u8) -> u32 {
    ((1_u64 << width) - 1) as u32
}
