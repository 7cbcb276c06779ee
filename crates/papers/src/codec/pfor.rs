//! The original PForDelta: blocks with their own widths, and exceptions chained through their slots.
//!
//! Most numbers of a block fit `b` bits and are stored in slots of that width. A larger number is an **exception**. It
//! is stored whole behind the slots, and its slot holds the distance to the next exception. A decoder copies all slots
//! and then follows the chain:
//!
//! ```text
//! numbers     3  1  0  9  2  1  14      b = 2, first exception at 3
//! slots       3  1  0 [2] 2  1 [.]      the exception at 3: two others between it and the next
//! behind      9  14                     a byte each
//! ```
//!
//! A slot of `b` bits holds distances up to 2^b. If exceptions are further apart, the number at the largest distance
//! becomes an exception as well. `b` is the narrowest width that nine of ten numbers fit.
//!
//! A block in 32-bit words:
//!
//! | word | meaning |
//! | --- | --- |
//! | 0 | bits 0 to 5: width of a slot; 6, 7: bytes of an exception (0: one, 1: two, 2: four); 8 to 17: exceptions; 18 to 26: place of the first |
//! | 1 .. | slots, [packed](super::packed) |
//! | then | exceptions, low bytes first, padded to a word |
//!
//! Ding et al. compared their [PForDelta](super::PForDelta) with this one in blocks of 128, which their CPU ran.
//! Tatikonda et al. packed the 512 postings between two skips by it. Sources: Zukowski, Heman, Nes, Boncz,
//! "Super-Scalar RAM-CPU Cache Compression", ICDE 2006; exceptions of one, two or four bytes as in Zhang, Long, Suel,
//! "Performance of compressed inverted list caching in search engines", WWW 2008.

use tandem_engine::index::BLOCK_LEN;

use super::frame::{BlockCodec, BlockWords, Framed};
use super::packed::{bits, check_width, mask, pack, packed_words, unpack_group, width_of};
use super::words::{Words, push_bytes};
use super::{Codec, CodecError, Column, ListReader};

/// PForDelta with a width per block of `LEN` values, 128 or 512. `pfor.rs` describes the words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pfor<const LEN: usize>;

const FITTING_PERCENT: usize = 90;

impl<const LEN: usize> Codec for Pfor<LEN> {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn encode(&self, column: Column, values: &[u32], words: &mut Vec<u32>) -> Result<(), CodecError> {
        Framed::<Self>::new().encode(column, values, words)
    }

    fn open<'a>(&self, column: Column, words: &'a [u32]) -> Result<Box<dyn ListReader + 'a>, CodecError> {
        Framed::<Self>::new().open(column, words)
    }
}

impl<const LEN: usize> BlockCodec for Pfor<LEN> {
    const LEN: usize = LEN;
    const NAME: &'static str = match LEN {
        128 => "pfor",
        512 => "pfor-512",
        _ => panic!("blocks are of 128 or 512 values"),
    };

    fn encode(numbers: &[u32], words: &mut Vec<u32>) {
        let width = slot_width(numbers);
        let places = exceptions(numbers, width);
        let mut slots = numbers.to_vec();
        for (i, &place) in places.iter().enumerate() {
            slots[place] = places.get(i + 1).map_or(0, |next| (next - place - 1) as u32);
        }
        let largest = places.iter().map(|&place| numbers[place]).fold(0, u32::max);
        let size =
            [1_usize, 2, 4].into_iter().position(|bytes| width_of(&[largest]) as usize <= 8 * bytes).unwrap_or(2);
        let first = places.first().copied().unwrap_or(0);
        words.push(u32::from(width) | (size as u32) << 6 | (places.len() as u32) << 8 | (first as u32) << 18);
        pack(&slots, width, words);
        let bytes: Vec<u8> =
            places.iter().flat_map(|&place| numbers[place].to_le_bytes().into_iter().take(1 << size)).collect();
        push_bytes(&bytes, words);
    }

    #[inline]
    fn decode(block: BlockWords<'_>, numbers: &mut [u32]) -> Result<(), CodecError> {
        let mut rest = Words(block.own());
        let header = rest.next("a block's header")?;
        let width = check_width("the width of a slot", header & 0x3f)?;
        let size = 1 << (header >> 6 & 3).min(2);
        let count = (header >> 8 & 0x3ff) as usize;
        CodecError::check(count <= numbers.len(), "a block's exceptions", count, "at most its numbers")?;
        let mut place = (header >> 18 & 0x1ff) as usize;
        let group_words = packed_words(BLOCK_LEN, width);
        let slots = rest.take(packed_words(numbers.len(), width), "a block's slots")?;
        for (i, group) in numbers.chunks_mut(BLOCK_LEN).enumerate() {
            unpack_group(slots.get(i * group_words..).unwrap_or_default(), width, group)?;
        }
        let bytes: &[u8] = bytemuck::cast_slice(rest.take((count * size).div_ceil(4), "a block's exceptions")?);
        for exception in bytes.chunks(size).take(count) {
            let slot = numbers.get_mut(place).ok_or(CodecError::Damaged {
                what: "an exception's place",
                found: place,
                expected: "inside its block",
            })?;
            place += 1 + *slot as usize;
            *slot = exception.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
        }
        Ok(())
    }
}

/// Returns the narrowest slot that nine of ten numbers fit; at least one bit with exceptions, so that the chain can
/// step over a number.
fn slot_width(numbers: &[u32]) -> u8 {
    let allowed = numbers.len() - (numbers.len() * FITTING_PERCENT).div_ceil(100);
    let largest = width_of(numbers);
    let is_wide = |width: u8| numbers.iter().filter(|&&number| bits(number) > width).count() <= allowed;
    (0..=largest).find(|&width| is_wide(width) && (width > 0 || largest == 0)).unwrap_or(largest)
}

/// Returns the places of the exceptions, with those that the chain needs in between.
fn exceptions(numbers: &[u32], width: u8) -> Vec<usize> {
    let reach = mask(width) as usize + 1;
    let mut places: Vec<usize> = Vec::new();
    for (place, _) in numbers.iter().enumerate().filter(|&(_, &number)| bits(number) > width) {
        while let Some(&last) = places.last()
            && place - last > reach
        {
            places.push(last + reach);
        }
        places.push(place);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_text_is_packed_as_it_says() {
        let numbers = [3, 1, 0, 9, 2, 1, 14];
        // The example fixes the width, although three in ten numbers do not fit two bits.
        assert_eq!(exceptions(&numbers, 2), [3, 6]);
        let mut far = vec![1; 60];
        (far[0], far[50]) = (300, 400);
        assert_eq!(slot_width(&far), 1);
        // A slot of one bit reaches the next place and the one after it.
        let places = exceptions(&far, 1);
        assert_eq!(places.len(), 26);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] == 2));
        let mut words = Vec::new();
        <Pfor<128> as BlockCodec>::encode(&far, &mut words);
        // Each exception takes two bytes.
        assert_eq!(words.len(), 1 + 2 + 13);
    }
}
