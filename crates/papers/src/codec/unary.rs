//! Sums in unary, for the quotients of [Rice](super::Rice).
//!
//! A number `n` is `n` ones and a zero. If zero *j* is bit `p` of the vector, then `p - j` ones precede it, which is
//! the sum of the numbers up to *j*. The places of zeros therefore give sums without decoding numbers.

use super::CodecError;
use super::simd::{self, Zeros};

/// Writes numbers from bit `start` on into zeroed bits.
pub(crate) fn write(words: &mut [u32], start: usize, numbers: impl Iterator<Item = u32>) {
    let mut bit = start;
    for number in numbers {
        let end = bit + number as usize;
        for (i, word) in words.iter_mut().enumerate().take(end.div_ceil(32)).skip(bit / 32) {
            let from = bit.saturating_sub(i * 32) as u32;
            let to = (end - i * 32).min(32) as u32;
            *word |= (u64::from(u32::MAX) >> (32 - (to - from)) << from) as u32;
        }
        bit = end + 1;
    }
}

/// Finds the places of the first `len` zeros of bits `start..end`, counted from `start`. `len` is at most 128; later
/// entries are unspecified. Fails if there are fewer zeros, or if the range exceeds `words`.
#[inline]
pub(crate) fn zeros(words: &[u32], start: usize, end: usize, len: usize, zeros: &mut Zeros) -> Result<(), CodecError> {
    CodecError::check(start <= end && end <= words.len() * 32, "the end of a block's unary part", end, "in the list")?;
    let found = simd::zeros(words, start, end, len, zeros);
    CodecError::check(found >= len, "the number of codes in a block's unary part", found, "one a value")
}
