//! The inner loops of decoding, in the best form that this processor runs.
//!
//! Each has a portable twin that gives the same bits; which one runs is decided at run time.

use bitpacking::{BitPacker, BitPacker4x};

use crate::index::BLOCK_LEN;

/// Unpacks 128 numbers of `width` bits, packed in four lanes.
///
/// # Panics
/// If `words` is short of `4 * width`, or `width` above 32.
#[inline]
pub(super) fn unpack(words: &[u32], width: u8, out: &mut [u32; BLOCK_LEN]) {
    BitPacker4x::new().decompress(bytemuck::cast_slice(words), out, width);
}

/// Replaces each gap minus one by its document: the sum up to it, counted from `base`.
#[inline]
pub(super) fn sum_gaps(base: u32, values: &mut [u32]) {
    let mut before = base;
    for value in values {
        before = before.wrapping_add(*value).wrapping_add(1);
        *value = before;
    }
}
