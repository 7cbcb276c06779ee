//! Rice coding of Ding et al. with separate unary and binary parts.
//!
//! A list has one number of bits `b`, near the logarithm of the mean. A number `v` has a quotient `v >> b` in unary,
//! that many ones and a zero, and a remainder of `b` bits. All quotients form one bit vector and all remainders one
//! packed array, so that prefix sums decode both; those of the quotients are the places of [zeros](super::unary).
//!
//! ```text
//! gaps minus 1   5   0   2   9      b = 2
//! unary          10  0   0   110    zero j at bit 1 2 3 6, minus j: 1 1 1 3 = sums of quotients
//! binary         01  00  10  01
//! document j = base + 1 + j + (sum of quotients << b) + (sum of remainders)
//! ```
//!
//! A list in 32-bit words, blocks of 128 values:
//!
//! | word | meaning |
//! | --- | --- |
//! | 0 | values `n` |
//! | 1 | `b`, 0 to 32 |
//! | 2 | bits of the unary part |
//! | 3 .. | skip table, an entry per block. Documents: the document before the block (-1 as `u32::MAX`), the bit of the unary part where it begins. Frequencies: the latter alone |
//! | then | binary part: [packed](super::packed) remainders, block `k` begins at its word `4 b k` |
//! | then | unary part: bit `i` is bit `i % 32` of its word `i / 32`, zero-padded to a whole word |
//!
//! The paper stores sums for every 128 bits of the unary part and for every 128 remainders. Here one base per block
//! combines both, and the start of a block's unary part saves a search. Source: Ding, He, Yan, Suel, "Using graphics
//! processors for high performance IR query processing", WWW 2009, 6.1.

use tandem_engine::index::BLOCK_LEN;
use tandem_engine::index::sum_gaps;

use super::packed::{check_width, grow, pack, packed_words, unpack_group};
use super::words::{SkipTable, Words};
use super::{Codec, CodecError, Column, ListReader, check_block, simd, unary};

/// Rice coding of Ding et al. with separate unary and binary parts. `rice.rs` describes the words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rice;

impl Codec for Rice {
    fn name(&self) -> &'static str {
        "rice"
    }

    fn encode(&self, column: Column, values: &[u32], words: &mut Vec<u32>) -> Result<(), CodecError> {
        let numbers = column.reduce(values)?;
        let width = best_width(&numbers);
        let header = words.len();
        words.extend([values.len() as u32, width.into(), 0]);
        let mut unary_bits = 0_u64;
        for (block, numbers) in numbers.chunks(BLOCK_LEN).enumerate() {
            if column == Column::Docs {
                words.push(block.checked_mul(BLOCK_LEN).filter(|&at| at > 0).map_or(u32::MAX, |at| values[at - 1]));
            }
            words.push(unary_bits as u32);
            unary_bits += numbers.iter().map(|&v| (u64::from(v) >> width) + 1).sum::<u64>();
        }
        words[header + 2] = unary_bits as u32;
        pack(&numbers, width, words);
        let unary_part = grow(words, (unary_bits as usize).div_ceil(32));
        unary::write(unary_part, 0, numbers.iter().map(|&number| (u64::from(number) >> width) as u32));
        Ok(())
    }

    fn open<'a>(&self, column: Column, words: &'a [u32]) -> Result<Box<dyn ListReader + 'a>, CodecError> {
        Ok(Box::new(RiceList::open(column, words)?))
    }
}

/// Returns the `b` of the shortest list, near the logarithm of the mean. Quotients sum to at most twice the number of
/// values, so that bit positions fit 32 bits.
fn best_width(numbers: &[u32]) -> u8 {
    let sum: u64 = numbers.iter().map(|&v| u64::from(v)).sum();
    let mean = sum / numbers.len().max(1) as u64;
    let near = mean.checked_ilog2().unwrap_or(0) as u8;
    let bits_at = |width: u8| -> u64 { numbers.iter().map(|&v| u64::from(width) + (u64::from(v) >> width)).sum() };
    (near..=near + 1).min_by_key(|&width| bits_at(width)).unwrap_or(near)
}

#[derive(Clone, Copy, Debug)]
struct RiceList<'a> {
    len: usize,
    width: u8,
    unary_bits: u32,
    /// Skip table whose positions are bits of the unary part.
    skips: SkipTable<'a>,
    binary: &'a [u32],
    unary: &'a [u32],
}

impl<'a> RiceList<'a> {
    /// Reads the header and finds the parts. Fails if the words are not such a list. Blocks are checked when they are
    /// decoded.
    fn open(column: Column, words: &'a [u32]) -> Result<Self, CodecError> {
        let mut rest = Words(words);
        let len = rest.next("the number of values")? as usize;
        let width = check_width("the width of a remainder", rest.next("the width")?)?;
        let unary_bits = rest.next("the length of the unary part")?;
        let skips = SkipTable::take(&mut rest, column, len.div_ceil(BLOCK_LEN))?;
        let binary = rest.take(packed_words(len, width), "the binary part")?;
        let unary = rest.take((unary_bits as usize).div_ceil(32), "the unary part")?;
        Ok(Self { len, width, unary_bits, skips, binary, unary })
    }

    /// Returns the bit of the unary part at which `block` begins, or the part's end after the last block.
    fn unary_start(&self, block: usize) -> usize {
        self.skips.position(block).unwrap_or(self.unary_bits as usize)
    }
}

impl ListReader for RiceList<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn block_len(&self) -> usize {
        BLOCK_LEN
    }

    fn base(&self, block: usize) -> Option<u32> {
        self.skips.base(block)
    }

    #[inline]
    fn decode_block(&self, block: usize, out: &mut [u32]) -> Result<usize, CodecError> {
        let len = check_block(self, block, out)?;
        let out = &mut out[..len];
        let start_word = block * packed_words(BLOCK_LEN, self.width);
        unpack_group(self.binary.get(start_word..).unwrap_or_default(), self.width, out)?;
        let (start, end) = (self.unary_start(block), self.unary_start(block + 1));
        let mut zeros = [0; simd::MAX_ZEROS];
        unary::zeros(self.unary, start, end, len, &mut zeros)?;
        let shift = u32::from(self.width);
        let shl = |quotient: u32| quotient.checked_shl(shift).unwrap_or(0);
        match self.skips.column() {
            Column::Docs => {
                // Each remainder counts one more, which restores the gaps' subtracted one.
                sum_gaps(self.base(block).unwrap_or(u32::MAX), out);
                for (j, (doc, &zero)) in out.iter_mut().zip(&zeros).enumerate() {
                    *doc = doc.wrapping_add(shl(zero.wrapping_sub(j as u32)));
                }
            }
            Column::Freqs => {
                let mut before = u32::MAX;
                for (freq, &zero) in out.iter_mut().zip(&zeros) {
                    let quotient = zero.wrapping_sub(before).wrapping_sub(1);
                    *freq = freq.wrapping_add(shl(quotient)).wrapping_add(1);
                    before = zero;
                }
            }
        }
        Ok(len)
    }
}
