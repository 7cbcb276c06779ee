//! Expansion of packed frequencies, one per posting, to the bits of their documents in a word.

/// Documents per word of bits.
pub(crate) const WORD_DOCS: usize = 64;

/// Frequencies of a word, and eight more that a step may read.
pub(crate) const WORD_FREQS: usize = WORD_DOCS + 8;

/// For each byte, the index of each document's frequency among the next ones; 128 for an absent document.
pub(crate) static EXPANSIONS: [[u8; 8]; 256] = {
    let mut table = [[128; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut posting) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte][bit] = posting;
                posting += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// For each byte of bits, the number of bits set in earlier bytes.

#[inline(always)]
pub(crate) fn bits_before(bits: u64) -> [u8; 8] {
    let pairs = bits - (bits >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    bytes.wrapping_mul(0x0101_0101_0101_0100).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_byte_by_byte() {
        for bits in [0, 1, u64::MAX, 0x8000_0000_0000_0001, 0x0123_4567_89ab_cdef, 0xff00_ff00_ff00_ff00] {
            for (byte, before) in bits_before(bits).into_iter().enumerate() {
                assert_eq!(u32::from(before), (bits & ((1 << (8 * byte)) - 1)).count_ones(), "{bits:x}");
            }
        }
    }
}
