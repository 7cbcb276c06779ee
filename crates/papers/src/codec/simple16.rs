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
pub(crate) const MAX_BITS: u8 = 28;

/// Whether the first numbers fit a division; where there are fewer numbers than it has room for, the rest counts as 0.
fn fits(division: &[(u8, u8)], mut numbers: &[u32]) -> bool {
    division.iter().all(|&(count, width)| {
        let (run, rest) = numbers.split_at(numbers.len().min(count.into()));
        numbers = rest;
        run.iter().fold(0, |all, number| all | number) >> width == 0
    })
}

/// How many numbers the next word takes, the most that fit, and how it divides them. Numbers are below 2^28.
fn next_division(numbers: &[u32]) -> (u32, usize) {
    let selector = DIVISIONS.iter().position(|division| fits(division, numbers)).unwrap_or(DIVISIONS.len() - 1);
    let room: usize = DIVISIONS[selector].iter().map(|&(count, _)| usize::from(count)).sum();
    (selector as u32, room.min(numbers.len()))
}

/// Words that `numbers`, all below 2^28, take.
pub(crate) fn encoded_words(mut numbers: &[u32]) -> usize {
    let mut words = 0;
    while !numbers.is_empty() {
        numbers = &numbers[next_division(numbers).1..];
        words += 1;
    }
    words
}

/// Appends `numbers`, all below 2^28.
pub(crate) fn encode(mut numbers: &[u32], words: &mut Vec<u32>) {
    while !numbers.is_empty() {
        let (selector, taken) = next_division(numbers);
        let (mut run, rest) = numbers.split_at(taken);
        let mut word = selector << MAX_BITS;
        let mut bit = 0;
        for &(count, width) in DIVISIONS[selector as usize] {
            let (these, others) = run.split_at(run.len().min(count.into()));
            for &number in these {
                word |= number << bit;
                bit += width;
            }
            run = others;
        }
        words.push(word);
        numbers = rest;
    }
}

/// Reads `numbers.len()` numbers.
pub(crate) fn decode(rest: &mut Words<'_>, numbers: &mut [u32]) -> Result<(), CodecError> {
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
            let bits: u32 = division.iter().map(|&(count, width)| u32::from(count) * u32::from(width)).sum();
            assert!(bits <= u32::from(MAX_BITS));
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
