//! Widths: how many bits numbers take.

/// Bits that `value` takes: 0 for 0.
pub(crate) fn bits(value: u32) -> u8 {
    (u32::BITS - value.leading_zeros()) as u8
}

/// Bits that the largest of `numbers` takes.
pub(crate) fn width_of(numbers: &[u32]) -> u8 {
    bits(numbers.iter().fold(0, |all, number| all | number))
}

/// The lowest `width` bits set; `width` is at most 32.
#[inline]
pub(crate) fn mask(width: u8) -> u32 {
    ((1_u64 << width) - 1) as u32
}
