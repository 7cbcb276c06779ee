//! Simple16: a word holds as many numbers as fit 28 bits, and its four highest bits select their widths.
//!
//! It packs the few small numbers of a block's exceptions, which must be below 2^28. Source: Zhang, Long, Suel,
//! "Performance of compressed inverted list caching in search engines", WWW 2008.

use super::CodecError;
use super::words::Words;

/// Widths of a word's numbers, lowest bits first, as runs of (numbers, width).
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

/// Maximum number of bits of a number.
pub(crate) const MAX_BITS: u8 = 28;

/// Returns whether the first numbers fit a division. Missing numbers count as 0.
fn fits(division: &[(u8, u8)], mut numbers: &[u32]) -> bool {
    division.iter().all(|&(count, width)| {
        let (run, rest) = numbers.split_at(numbers.len().min(count.into()));
        numbers = rest;
        run.iter().fold(0, |all, number| all | number) >> width == 0
    })
}

/// Returns the selector of the next word and the number of its numbers, the most that fit.
fn next_division(numbers: &[u32]) -> (u32, usize) {
    let selector = DIVISIONS.iter().position(|division| fits(division, numbers)).unwrap_or(DIVISIONS.len() - 1);
    let room: usize = DIVISIONS[selector].iter().map(|&(count, _)| usize::from(count)).sum();
    (selector as u32, room.min(numbers.len()))
}

pub(crate) fn encoded_words(mut numbers: &[u32]) -> usize {
    let mut words = 0;
    while !numbers.is_empty() {
        numbers = &numbers[next_division(numbers).1..];
        words += 1;
    }
    words
}

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
