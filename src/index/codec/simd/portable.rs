//! Inner loops for any processor.

use bitpacking::{BitPacker, BitPacker4x};

use crate::index::BLOCK_LEN;
use crate::index::codec::unary::Zeros;

pub(super) fn unpack(words: &[u32], width: u8, out: &mut [u32; BLOCK_LEN]) {
    BitPacker4x::new().decompress(bytemuck::cast_slice(words), out, width);
}

pub(super) fn unpack_docs(words: &[u32], width: u8, base: u32, out: &mut [u32; BLOCK_LEN]) {
    let previous = (base != u32::MAX).then_some(base);
    BitPacker4x::new().decompress_strictly_sorted(previous, bytemuck::cast_slice(words), out, width);
}

#[inline]
pub(super) fn sum_gaps(base: u32, values: &mut [u32]) {
    let mut before = base;
    for value in values {
        before = before.wrapping_add(*value).wrapping_add(1);
        *value = before;
    }
}

/// Two steps: a 64-bit word's zeros are written eight at a time whether or not there are as many, so that no branch
/// depends on how many there are.
#[inline(always)]
pub(super) fn zeros(words: &[u32], start: usize, end: usize, len: usize, zeros: &mut Zeros) -> usize {
    let words = &words[start / 32..end.div_ceil(32)];
    let mut first = (start % 32) as u32;
    // Bits of the words, from `start` on, that are still to come.
    let mut left = end - start;
    let mut found = 0;
    // Where bit 0 of the pair of words is, counted from `start`.
    let mut place = 0_u32.wrapping_sub(first);
    for pair in words.chunks(2) {
        let high = pair.get(1).copied().unwrap_or(0);
        let mut bits = !(u64::from(high) << 32 | u64::from(pair[0]));
        bits &= u64::MAX << first;
        let last = first as usize + left;
        if last < 64 {
            bits &= (1 << last) - 1;
        }
        left = left.saturating_sub(64 - first as usize);
        let count = bits.count_ones() as usize;
        let mut at = found;
        while bits != 0 {
            for zero in &mut zeros[at..at + 8] {
                *zero = place.wrapping_add(bits.trailing_zeros());
                bits &= bits.wrapping_sub(1);
            }
            at += 8;
        }
        found += count;
        if found >= len {
            break;
        }
        place = place.wrapping_add(64);
        first = 0;
    }
    found
}

/// Bytes of the four numbers of each control byte.
pub(super) static QUAD_BYTES: [u8; 256] = {
    let mut lens = [0; 256];
    let mut control = 0;
    while control < 256 {
        lens[control] = (4 + (control & 3) + (control >> 2 & 3) + (control >> 4 & 3) + (control >> 6)) as u8;
        control += 1;
    }
    lens
};

#[inline]
pub(super) fn stream_vbyte_bytes(controls: &[u8], len: usize) -> usize {
    let quads: usize = controls.iter().map(|&control| usize::from(QUAD_BYTES[usize::from(control)])).sum();
    // Numbers that are not there count one byte each, as their fields are zero.
    quads.saturating_sub(controls.len() * 4 - len.min(controls.len() * 4))
}

#[inline]
pub(super) fn stream_vbyte(controls: &[u8], data: &[u8], numbers: &mut [u32]) {
    let mut at = 0;
    for (quad, &control) in numbers.chunks_mut(4).zip(controls) {
        for (i, number) in quad.iter_mut().enumerate() {
            let len = usize::from(control >> (2 * i) & 3) + 1;
            let mut bytes = [0; 4];
            bytes[..len].copy_from_slice(&data[at..at + len]);
            *number = u32::from_le_bytes(bytes);
            at += len;
        }
    }
}
