//! Simple16: as many numbers as fit in 28 bits of a word; the four highest bits say how those are divided.
//!
//! Packs the few small numbers that a block's exceptions are. Numbers must be below 2^28.
//! Source: Zhang, Long, Suel, "Performance of compressed inverted list caching in search engines", WWW 2008.

use super::CodecError;
use super::words::Words;

/// The widths of a word's numbers, lowest bits first, as runs of (numbers, width).
const DIVISIONS: [&[(u8, u8)]; 16] = [
    &[(28, 1)],
    &[(7, 2), (14, 1)],
    &[(7, 1), (7, 2), (7, 1)],
    &[(14, 1), (7, 2)],
    &[(14, 2)],
    &[(1, 4), (8, 3)],
    &[(1, 3), (4, 4), (3, 3)],
    &[(7, 4)],
    &[(4, 5), (2, 4)],
    &[(2, 4), (4, 5)],
    &[(3, 6), (2, 5)],
    &[(2, 5), (3, 6)],
    &[(4, 7)],
    &[(1, 10), (2, 9)],
    &[(2, 14)],
    &[(1, 28)],
];

/// Bits that a number may have.
pub(super) const MAX_BITS: u8 = 28;

/// The widths of a division, one a number.
fn widths(division: &[(u8, u8)]) -> impl Iterator<Item = u8> + '_ {
    division.iter().flat_map(|&(count, width)| std::iter::repeat_n(width, count.into()))
}

/// The word that takes the most of the numbers that are left, which are below 2^28, and how many it takes.
fn next_word(numbers: &[u32]) -> (u32, usize) {
    for (selector, division) in (0_u32..).zip(DIVISIONS) {
        if widths(division).zip(numbers).all(|(width, &number)| u64::from(number) < 1 << width) {
            let mut word = selector << MAX_BITS;
            let mut bit = 0;
            let mut taken = 0;
            for (width, &number) in widths(division).zip(numbers) {
                word |= number << bit;
                bit += width;
                taken += 1;
            }
            return (word, taken);
        }
    }
    unreachable!("{} is not below 2^28", numbers[0])
}

/// Words that `numbers`, all below 2^28, take.
pub(super) fn encoded_words(mut numbers: &[u32]) -> usize {
    let mut words = 0;
    while !numbers.is_empty() {
        numbers = &numbers[next_word(numbers).1..];
        words += 1;
    }
    words
}

/// Appends `numbers`, all below 2^28.
pub(super) fn encode(mut numbers: &[u32], words: &mut Vec<u32>) {
    while !numbers.is_empty() {
        let (word, taken) = next_word(numbers);
        words.push(word);
        numbers = &numbers[taken..];
    }
}

/// Reads `numbers.len()` numbers.
///
/// # Errors
/// If `rest` has fewer.
pub(super) fn decode(rest: &mut Words<'_>, numbers: &mut [u32]) -> Result<(), CodecError> {
    let mut at = 0;
    while at < numbers.len() {
        let mut word = rest.next("a block's exceptions")?;
        for &(count, width) in DIVISIONS[(word >> MAX_BITS) as usize] {
            let mask = (1 << width) - 1;
            let end = (at + usize::from(count)).min(numbers.len());
            for number in &mut numbers[at..end] {
                *number = word & mask;
                word >>= width;
            }
            at = end;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_use_at_most_28_bits_and_all_sizes_roundtrip() {
        for division in DIVISIONS {
            assert!(widths(division).map(u32::from).sum::<u32>() <= u32::from(MAX_BITS));
        }
        let mut numbers: Vec<u32> = (0..28).map(|width| (1 << width) - 1 + (1 << width) / 2).collect();
        numbers.extend([0; 40]);
        numbers.extend((0..300).map(|i| i * i % 9));
        let mut words = Vec::new();
        encode(&numbers, &mut words);
        assert_eq!(words.len(), encoded_words(&numbers));
        let mut out = vec![0; numbers.len()];
        decode(&mut Words(&words), &mut out).unwrap();
        assert_eq!(out, numbers);
        assert!(decode(&mut Words(&words[..words.len() - 1]), &mut out).is_err());
    }
}
