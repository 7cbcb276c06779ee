//! NewPFD and OptPFD: slots and exceptions by blocks.
//!
//! As in [PForDelta](super::PForDelta), each number stores its lowest bits in a slot, and an exception stores its
//! remaining bits, the overflow, elsewhere. Every block of 128 has its own width, and its exceptions are packed by
//! [Simple16](super::simple16). NewPFD takes the narrowest width that leaves at most a tenth of the numbers as
//! exceptions, OptPFD the width with the shortest block.
//!
//! A block in 32-bit words:
//!
//! | word | meaning |
//! | --- | --- |
//! | 0 | bits 0 to 7: width of a slot; bits 8 to 15: exceptions `e`; others zero |
//! | 1 .. | slots, [packed](super::packed) |
//! | then | Simple16 of `2 e` numbers: `e` gaps between the exceptions' places, minus 1 (the first from -1), `e` overflows minus 1 |
//!
//! Overflows must be below 2^28, so that the width is at most 28 below that of the largest number. `huang/ranges` packs
//! blocks of other lengths up to 128 in the same way. Source: Yan, Ding, Suel, "Inverted index compression and query
//! processing with optimized document ordering", WWW 2009.

use tandem_engine::index::BLOCK_LEN;

use super::CodecError;
use super::frame::{BlockCodec, BlockWords};
use super::packed::{bits, check_width, pack, packed_words, unpack_group, width_of};
use super::simple16;
use super::words::Words;

/// NewPFD: at most a tenth of a block's numbers are exceptions.
#[derive(Debug)]
pub(crate) struct NewPfd;

impl BlockCodec for NewPfd {
    const NAME: &'static str = "new-pfd";

    fn encode(numbers: &[u32], words: &mut Vec<u32>) {
        let allowed = numbers.len() / 10;
        let counts = num_exceptions(numbers);
        let width = widths(numbers).find(|&width| counts[usize::from(width)] <= allowed);
        let width = width.unwrap_or_else(|| width_of(numbers));
        encode(numbers, width, words);
    }

    #[inline]
    fn decode(block: BlockWords<'_>, numbers: &mut [u32]) -> Result<(), CodecError> {
        decode(block.own(), numbers)
    }
}

/// Appends a block of 1 to 128 numbers in NewPFD.
#[cfg(feature = "gpu")]
pub(crate) fn encode_new_pfd(numbers: &[u32], words: &mut Vec<u32>) {
    NewPfd::encode(numbers, words);
}

/// Decodes a block of `numbers.len()` numbers, 1 to 128, that [`encode_new_pfd`] wrote.
#[cfg(feature = "gpu")]
#[inline]
pub(crate) fn decode_new_pfd(words: &[u32], numbers: &mut [u32]) -> Result<(), CodecError> {
    decode(words, numbers)
}

/// OptPFD: the width with the shortest block.
#[derive(Debug)]
pub(crate) struct OptPfd;

impl BlockCodec for OptPfd {
    const NAME: &'static str = "opt-pfd";

    fn encode(numbers: &[u32], words: &mut Vec<u32>) {
        let counts = num_exceptions(numbers);
        let (mut best, mut shortest) = (0, usize::MAX);
        // Wider slots go first, because among equals the one with fewer exceptions decodes faster.
        for width in widths(numbers).rev() {
            // An exception takes at least one bit for its place and one for its overflow.
            let slots = packed_words(numbers.len(), width);
            if slots + packed_words(2 * counts[usize::from(width)], 1_u8) < shortest {
                let length = slots + simple16::encoded_words(&exceptions(numbers, width));
                if length < shortest {
                    (best, shortest) = (width, length);
                }
            }
        }
        encode(numbers, best, words);
    }

    #[inline]
    fn decode(block: BlockWords<'_>, numbers: &mut [u32]) -> Result<(), CodecError> {
        decode(block.own(), numbers)
    }
}

/// Counts the numbers that do not fit each width of a slot.
fn num_exceptions(numbers: &[u32]) -> [usize; 33] {
    let mut counts = [0; 33];
    for &number in numbers {
        counts[usize::from(bits(number))] += 1;
    }
    let mut wider = 0;
    for count in counts.iter_mut().rev() {
        (*count, wider) = (wider, wider + *count);
    }
    counts
}

/// Returns the possible widths of a block's slots.
fn widths(numbers: &[u32]) -> std::ops::RangeInclusive<u8> {
    let largest = width_of(numbers);
    largest.saturating_sub(simple16::MAX_BITS)..=largest
}

/// Returns the gaps between the exceptions' places, then their overflows, all minus one.
fn exceptions(numbers: &[u32], width: u8) -> Vec<u32> {
    let mut gaps = Vec::new();
    let mut overflows = Vec::new();
    let mut next = 0;
    for (place, &number) in (0_u32..).zip(numbers) {
        let overflow = (u64::from(number) >> width) as u32;
        if overflow > 0 {
            gaps.push(place - next);
            overflows.push(overflow - 1);
            next = place + 1;
        }
    }
    gaps.extend(overflows);
    gaps
}

fn encode(numbers: &[u32], width: u8, words: &mut Vec<u32>) {
    let exceptions = exceptions(numbers, width);
    words.push(u32::from(width) | (exceptions.len() as u32 / 2) << 8);
    pack(numbers, width, words);
    simple16::encode(&exceptions, words);
}

#[inline]
fn decode(words: &[u32], numbers: &mut [u32]) -> Result<(), CodecError> {
    let mut rest = Words(words);
    let header = rest.next("a block's header")?;
    let width = check_width("the width of a slot", header & 0xff)?;
    let count = (header >> 8) as usize;
    CodecError::check(count <= numbers.len(), "a block's exceptions", count, "at most its numbers")?;
    let slots = rest.take(packed_words(numbers.len(), width), "a block's slots")?;
    unpack_group(slots, width, numbers)?;
    if count == 0 {
        return Ok(());
    }
    let mut exceptions = [0; BLOCK_LEN * 2];
    simple16::decode(&mut rest, &mut exceptions[..count * 2])?;
    let (gaps, overflows) = exceptions[..count * 2].split_at(count);
    let mut next = 0;
    for (&gap, &overflow) in gaps.iter().zip(overflows) {
        let place = next + gap as usize;
        let Some(number) = numbers.get_mut(place) else {
            return Err(CodecError::Damaged {
                what: "an exception's place",
                found: place,
                expected: "inside its block",
            });
        };
        *number |= (overflow + 1).checked_shl(width.into()).unwrap_or(0);
        next = place + 1;
    }
    Ok(())
}
