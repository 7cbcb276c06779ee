//! Words of ASCII text, 64 bytes at a time.
//!
//! Each group of 64 bytes is lower-cased and turned into a few masks with a bit for each byte. Words are runs of ones in
//! them; a run begins or ends where a mask differs from itself shifted by one:
//!
//! ```text
//! text     T h e   f o x ' s   d e n
//! words    1 1 1 0 1 1 1 1 1 0 1 1 1      ' stands between two letters
//! edges    1     1 1         1 1     1
//! ```
//!
//! On x86-64, which always has SSE2, sixteen bytes are classified at once; elsewhere one.

const GROUP: usize = 64;

/// Classes of a group's bytes, as masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Masks {
    letters: u64,
    digits: u64,
    underscores: u64,
    /// `'`, `.`, `:`, which join two letters.
    mid_letters: u64,
    /// `'`, `.`, `,`, `;`, which join two digits.
    mid_digits: u64,
}

/// Calls `visit` for each longest run of ASCII letters and digits, lower-cased; all other bytes separate.
pub(super) fn for_each_run(text: &[u8], lower: &mut Vec<u8>, mut visit: impl FnMut(&[u8])) {
    let (mut start, mut carry) = (0, 0);
    for_each_group(text, lower, |base, lower, masks, _| {
        let inside = masks.letters | masks.digits;
        let mut edges = inside ^ (inside << 1 | carry);
        let mut is_open = carry != 0;
        carry = inside >> (GROUP - 1);
        while edges != 0 {
            let at = base + edges.trailing_zeros() as usize;
            edges &= edges - 1;
            if is_open {
                visit(&lower[start..at]);
            } else {
                start = at;
            }
            is_open = !is_open;
        }
    });
    if carry != 0 {
        visit(&lower[start..text.len()]);
    }
}

/// Calls `visit` for each word of ASCII text by the Unicode rules (UAX 29), lower-cased and reduced to letters and
/// digits.
pub(super) fn for_each_word(text: &[u8], lower: &mut Vec<u8>, mut visit: impl FnMut(&[u8])) {
    let (mut start, mut carry) = (0, 0);
    // The last byte of the group before, and one past the last byte so far that must be left out of words.
    let (mut before, mut dirty_end) = (Masks::default(), 0);
    let mut kept: Vec<u8> = Vec::new();
    let mut take = |word: &[u8], is_dirty: bool| {
        if !is_dirty {
            return visit(word);
        }
        kept.clear();
        kept.extend(word.iter().filter(|byte| byte.is_ascii_alphanumeric()));
        if !kept.is_empty() {
            visit(&kept);
        }
    };
    for_each_group(text, lower, |base, lower, masks, next| {
        let after = |mask: u64, before: u64| mask << 1 | before >> (GROUP - 1);
        let joins = masks.mid_letters
            & after(masks.letters, before.letters)
            & (masks.letters >> 1 | u64::from(next.is_ascii_alphabetic()) << (GROUP - 1))
            | masks.mid_digits
                & after(masks.digits, before.digits)
                & (masks.digits >> 1 | u64::from(next.is_ascii_digit()) << (GROUP - 1));
        let dirty = masks.underscores | joins;
        let inside = masks.letters | masks.digits | dirty;
        let mut edges = inside ^ (inside << 1 | carry);
        let mut is_open = carry != 0;
        carry = inside >> (GROUP - 1);
        while edges != 0 {
            let bit = edges.trailing_zeros();
            let at = base + bit as usize;
            edges &= edges - 1;
            if is_open {
                let dirty_before = dirty & ((1 << bit) - 1);
                let last = if dirty_before == 0 { dirty_end } else { base + end_of(dirty_before) };
                take(&lower[start..at], last > start);
            } else {
                start = at;
            }
            is_open = !is_open;
        }
        if dirty != 0 {
            dirty_end = base + end_of(dirty);
        }
        before = masks;
    });
    if carry != 0 {
        take(&lower[start..text.len()], dirty_end > start);
    }
}

fn end_of(mask: u64) -> usize {
    GROUP - mask.leading_zeros() as usize
}

/// Lower-cases `text` into `lower` and calls `visit` for each group: with the position of its first byte, the text
/// lower-cased so far, its masks and the byte after it (0 at the end).
#[inline(always)]
fn for_each_group(text: &[u8], lower: &mut Vec<u8>, mut visit: impl FnMut(usize, &[u8], Masks, u8)) {
    let padded = text.len().next_multiple_of(GROUP);
    if lower.len() < padded {
        lower.resize(padded, 0);
    }
    let (groups, rest) = text.as_chunks::<GROUP>();
    for (number, group) in groups.iter().enumerate() {
        let base = number * GROUP;
        let masks = classify(group, lower[base..].first_chunk_mut().expect("room for all groups"));
        let next = text.get(base + GROUP).copied().unwrap_or(0);
        visit(base, lower, masks, next);
    }
    if !rest.is_empty() {
        let base = text.len() - rest.len();
        let mut group = [0; GROUP];
        group[..rest.len()].copy_from_slice(rest);
        let masks = classify(&group, lower[base..].first_chunk_mut().expect("room for all groups"));
        visit(base, lower, masks, 0);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn classify(group: &[u8; GROUP], lower: &mut [u8; GROUP]) -> Masks {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { classify_sse2(group, lower) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn classify_sse2(group: &[u8; GROUP], lower: &mut [u8; GROUP]) -> Masks {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_and_si128, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8, _mm_sub_epi8,
    };
    let splat = |byte: u8| _mm_set1_epi8(byte as i8);
    let mut masks = Masks::default();
    for (part, (bytes, lower)) in group.as_chunks::<16>().0.iter().zip(lower.as_chunks_mut::<16>().0).enumerate() {
        let bytes: __m128i = bytemuck::cast(*bytes);
        // The comparison is unsigned: x - low is at most high - low only for x from low to high.
        let is_from = |x: __m128i, low: u8, high: u8| {
            let distance = _mm_sub_epi8(x, splat(low));
            _mm_cmpeq_epi8(_mm_min_epu8(distance, splat(high - low)), distance)
        };
        let is = |byte: u8| _mm_cmpeq_epi8(bytes, splat(byte));
        let bits = |mask: __m128i| u64::from(_mm_movemask_epi8(mask) as u16) << (16 * part);
        let upper = is_from(bytes, b'A', b'Z');
        let lowered = _mm_add_epi8(bytes, _mm_and_si128(upper, splat(b'a' - b'A')));
        *lower = bytemuck::cast(lowered);
        let middle = _mm_or_si128(is(b'\''), is(b'.'));
        masks.letters |= bits(is_from(lowered, b'a', b'z'));
        masks.digits |= bits(is_from(bytes, b'0', b'9'));
        masks.underscores |= bits(is(b'_'));
        masks.mid_letters |= bits(_mm_or_si128(middle, is(b':')));
        masks.mid_digits |= bits(_mm_or_si128(middle, _mm_or_si128(is(b','), is(b';'))));
    }
    masks
}

#[cfg(not(target_arch = "x86_64"))]
fn classify(group: &[u8; GROUP], lower: &mut [u8; GROUP]) -> Masks {
    classify_portable(group, lower)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn classify_portable(group: &[u8; GROUP], lower: &mut [u8; GROUP]) -> Masks {
    let mut masks = Masks::default();
    for (place, (byte, lower)) in group.iter().zip(lower).enumerate() {
        *lower = byte.to_ascii_lowercase();
        let bit = |is: bool| u64::from(is) << place;
        masks.letters |= bit(byte.is_ascii_alphabetic());
        masks.digits |= bit(byte.is_ascii_digit());
        masks.underscores |= bit(*byte == b'_');
        masks.mid_letters |= bit(b"'.:".contains(byte));
        masks.mid_digits |= bit(b"'.,;".contains(byte));
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_classify_bytes_as_the_portable_twin() {
        for first in 0..=255_u8 {
            let group: [u8; GROUP] = std::array::from_fn(|place| first.wrapping_add(place as u8));
            let (mut fast, mut portable) = ([0; GROUP], [0; GROUP]);
            assert_eq!(classify(&group, &mut fast), classify_portable(&group, &mut portable));
            assert_eq!(fast, portable);
        }
    }
}
