//! Elias-Fano by blocks: low bits of sums in binary, high bits in unary.
//!
//! The numbers of a block are summed up to `u`. The lowest `l` bits of each sum, with `l` near the logarithm of `u /
//! n`, are stored in binary, and the increments of the higher bits in [unary](super::unary). In contrast to Rice,
//! values are sums, so that each needs one slot and one zero's place, without a prefix sum.
//!
//! A block in 32-bit words:
//!
//! | word | meaning |
//! | --- | --- |
//! | 0 | bits 0 to 7: `l`, 0 to 32; bit 8: set if the block is not sums but its numbers, [packed](super::packed) at width `l` (where sums pass 2^32, as only frequencies do) |
//! | 1 .. | the sums' lowest `l` bits, packed |
//! | then | the higher bits' differences in unary, zero-padded to a whole word |
//!
//! Source: Vigna, "Quasi-succinct indices", WSDM 2013; by blocks, Ottaviano and Venturini, "Partitioned Elias-Fano
//! indexes", SIGIR 2014.

use super::frame::{BlockCodec, BlockWords};
use super::packed::{check_width, grow, pack, packed_words, unpack_group, width_of};
use super::words::Words;
use super::{CodecError, Column, simd, unary};

#[derive(Debug)]
pub(crate) struct EliasFano;

/// Flag in the first word of a block whose numbers are packed.
const PACKED: u32 = 1 << 8;

impl BlockCodec for EliasFano {
    const NAME: &'static str = "elias-fano";

    fn encode(numbers: &[u32], words: &mut Vec<u32>) {
        let sums = numbers.iter().scan(0_u32, |sum, &number| {
            *sum = sum.checked_add(number)?;
            Some(*sum)
        });
        let sums: Vec<u32> = sums.collect();
        let Some(&last) = sums.last().filter(|_| sums.len() == numbers.len()) else {
            let width = width_of(numbers);
            words.push(u32::from(width) | PACKED);
            pack(numbers, width, words);
            return;
        };
        let low = (last / numbers.len() as u32).checked_ilog2().unwrap_or(0);
        words.push(low);
        pack(&sums, low as u8, words);
        let unary_part = grow(words, (numbers.len() + (last >> low) as usize).div_ceil(32));
        let before = std::iter::once(0).chain(sums.iter().copied());
        unary::write(unary_part, 0, sums.iter().zip(before).map(|(sum, before)| (sum >> low) - (before >> low)));
    }

    #[inline]
    fn decode(block: BlockWords<'_>, numbers: &mut [u32]) -> Result<(), CodecError> {
        if decode_sums(block.own(), numbers)? {
            let mut before = 0;
            for number in numbers {
                (before, *number) = (*number, number.wrapping_sub(before));
            }
        }
        Ok(())
    }

    #[inline]
    fn decode_docs(block: BlockWords<'_>, base: u32, docs: &mut [u32]) -> Result<(), CodecError> {
        if !decode_sums(block.own(), docs)? {
            Column::Docs.restore(base, docs);
            return Ok(());
        }
        let first = base.wrapping_add(1);
        for (i, doc) in (0..).zip(docs) {
            *doc = doc.wrapping_add(first.wrapping_add(i));
        }
        Ok(())
    }
}

/// Decodes a block's sums and returns true, or its numbers and returns false.
#[inline]
fn decode_sums(words: &[u32], sums: &mut [u32]) -> Result<bool, CodecError> {
    let mut rest = Words(words);
    let header = rest.next("a block's header")?;
    let low = check_width("the low bits of a sum", header & !PACKED)?;
    let slots = rest.take(packed_words(sums.len(), low), "the low bits")?;
    unpack_group(slots, low, sums)?;
    if header & PACKED != 0 {
        return Ok(false);
    }
    let mut zeros = [0; simd::MAX_ZEROS];
    unary::zeros(rest.0, 0, rest.0.len() * 32, sums.len(), &mut zeros)?;
    for (j, (sum, &zero)) in (0_u32..).zip(sums.iter_mut().zip(&zeros)) {
        *sum |= zero.wrapping_sub(j).checked_shl(low.into()).unwrap_or(0);
    }
    Ok(true)
}
