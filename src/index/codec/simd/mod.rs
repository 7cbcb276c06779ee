//! The inner loops of decoding, in the best form that this processor runs.
//!
//! Each has a [`portable`] twin that gives the same bits; which one runs is decided at run time.

mod portable;

use super::unary::Zeros;
use crate::index::BLOCK_LEN;

/// Unpacks 128 numbers of `width` bits, packed in four lanes.
///
/// # Panics
/// If `words` is short of `4 * width`, or `width` above 32.
#[inline]
pub(super) fn unpack(words: &[u32], width: u8, out: &mut [u32; BLOCK_LEN]) {
    portable::unpack(words, width, out);
}

/// Unpacks 128 gaps minus one and sums them up to documents after `base`: [`unpack`] and then [`sum_gaps`].
///
/// # Panics
/// As [`unpack`].
#[inline]
pub(super) fn unpack_docs(words: &[u32], width: u8, base: u32, out: &mut [u32; BLOCK_LEN]) {
    portable::unpack_docs(words, width, base, out);
}

/// Replaces each gap minus one by its document: the sum up to it, counted from `base`.
#[inline]
pub(super) fn sum_gaps(base: u32, values: &mut [u32]) {
    portable::sum_gaps(base, values);
}

/// Writes where zeros are in bits `start..end` of `words`, counted from `start`, until there are at least `len`; returns
/// how many were found. Entries past those are unspecified.
///
/// # Panics
/// If the range is not in `words`, or `len` above 128.
#[inline]
pub(super) fn zeros(words: &[u32], start: usize, end: usize, len: usize, zeros: &mut Zeros) -> usize {
    portable::zeros(words, start, end, len, zeros)
}

/// Bytes of data that control bytes announce for `len` numbers, at most four a control byte.
#[inline]
pub(super) fn stream_vbyte_bytes(controls: &[u8], len: usize) -> usize {
    portable::stream_vbyte_bytes(controls, len)
}

/// Decodes StreamVByte; `data` may go on past the numbers' bytes.
///
/// # Panics
/// If `data` has fewer bytes than [`stream_vbyte_bytes`], or there are fewer control bytes than one for four numbers.
#[inline]
pub(super) fn stream_vbyte(controls: &[u8], data: &[u8], numbers: &mut [u32]) {
    portable::stream_vbyte(controls, data, numbers);
}
