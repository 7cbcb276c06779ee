//! PForDelta of Ding et al.: one width per list, exceptions packed recursively.
//!
//! Most numbers of a list fit `b` bits. Every number stores its lowest `b` bits in a slot of that width. A larger
//! number is an **exception**; its remaining bits, the **overflow**, and the place of its slot are stored in two more
//! arrays. These arrays are small numbers again (places as gaps) and are packed in the same way, with exceptions of
//! their own, for a chosen number of **levels** of recursion. The innermost arrays are stored plainly.
//!
//! ```text
//! numbers     3  1  0  9  2  1  14      b = 2
//! slots       3  1  0  1  2  1   2
//! overflows            2         3      minus 1: 1, 2
//! places               3         6      gaps minus 1: 3, 2
//! ```
//!
//! With slots of one width, a GPU finds any slot by multiplication. Widths per block compress about as well without
//! recursion. A list in 32-bit words, blocks of 512 values:
//!
//! | word | meaning |
//! | --- | --- |
//! | 0 | values `n` |
//! | 1 | bits 0 to 7: width `b` of a slot, 0 to 32; bits 8 to 15: levels `L` of recursion; others zero |
//! | 2 | exceptions `e` |
//! | 3 | words of the array of overflows |
//! | 4 .. | skip table, an entry per block. Documents: the document before the block (-1 as `u32::MAX`), exceptions before the block. Frequencies: the latter alone |
//! | then | slots, [packed](super::packed): block `k` begins at their word `16 b k` |
//! | then | array(`L`) of the `e` overflows, each minus 1 |
//! | then | array(`L`) of the `e` exceptions' places in the list, each as its gap to the one before, minus 1 (the first from -1) |
//!
//! An array(0) of `m` numbers is `m` words. An array(`l`) of no number is empty, and one of `m` numbers is:
//!
//! | word | meaning |
//! | --- | --- |
//! | 0 | width of a slot |
//! | 1 | exceptions `x` |
//! | 2 .. | slots, packed |
//! | then | array(`l - 1`) of `x` overflows minus 1, array(`l - 1`) of `x` gaps between places minus 1 |
//!
//! Source: Ding, He, Yan, Suel, "Using graphics processors for high performance IR query processing", WWW 2009, 6.2.

use tandem_engine::index::BLOCK_LEN;

use super::packed::{bits, check_width, pack, packed_words, unpack, unpack_group};
use super::words::{SkipTable, Words};
use super::{Codec, CodecError, Column, ListReader, check_block};

/// PForDelta of Ding et al. with one width per list and recursive exceptions. `pfor_delta.rs` describes the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PForDelta {
    levels: u8,
}

impl PForDelta {
    /// Values per block, each with an entry in the skip table.
    pub const BLOCK_LEN: usize = 512;
    /// Maximum levels of recursion: four in the paper's figure 3.
    pub const MAX_LEVELS: u8 = 4;
    /// Percent of numbers that fit a slot ("say, 90 %", section 2).
    const FITTING_PERCENT: usize = 90;

    /// Makes a codec with `levels` of recursion, at most [`MAX_LEVELS`](Self::MAX_LEVELS); the paper settles on 1.
    pub fn new(levels: u8) -> Self {
        Self { levels: levels.min(Self::MAX_LEVELS) }
    }
}

impl Default for PForDelta {
    fn default() -> Self {
        Self::new(1)
    }
}

impl Codec for PForDelta {
    fn name(&self) -> &'static str {
        ["pfor-delta-0", "pfor-delta-1", "pfor-delta-2", "pfor-delta-3", "pfor-delta-4"][usize::from(self.levels)]
    }

    fn encode(&self, column: Column, values: &[u32], words: &mut Vec<u32>) -> Result<(), CodecError> {
        let numbers = column.reduce(values)?;
        let width = slot_width(&numbers);
        let exceptions = Exceptions::of(&numbers, width);
        let header = words.len();
        let count = exceptions.overflows.len() as u32;
        words.extend([values.len() as u32, u32::from(width) | u32::from(self.levels) << 8, count, 0]);
        for start in (0..values.len()).step_by(Self::BLOCK_LEN) {
            if column == Column::Docs {
                words.push(start.checked_sub(1).map_or(u32::MAX, |last| values[last]));
            }
            words.push(exceptions.places.partition_point(|&place| (place as usize) < start) as u32);
        }
        pack(&numbers, width, words);
        let overflows_start = words.len();
        pack_array(&exceptions.overflows, self.levels, words);
        words[header + 3] = (words.len() - overflows_start) as u32;
        pack_array(&exceptions.gaps(), self.levels, words);
        Ok(())
    }

    fn open<'a>(&self, column: Column, words: &'a [u32]) -> Result<Box<dyn ListReader + 'a>, CodecError> {
        Ok(Box::new(PForDeltaList::open(column, words)?))
    }
}

/// Returns the narrowest slot that enough of the numbers fit.
fn slot_width(numbers: &[u32]) -> u8 {
    let mut counts = [0_usize; 33];
    for &number in numbers {
        counts[usize::from(bits(number))] += 1;
    }
    let wanted = (numbers.len() * PForDelta::FITTING_PERCENT).div_ceil(100);
    let mut fitting = 0;
    counts.iter().position(|count| (fitting += count, fitting >= wanted).1).unwrap_or(0) as u8
}

/// The numbers that do not fit their slots.
#[derive(Debug, Default)]
struct Exceptions {
    /// Bits above the slot's, minus one.
    overflows: Vec<u32>,
    places: Vec<u32>,
}

impl Exceptions {
    fn of(numbers: &[u32], width: u8) -> Self {
        let mut exceptions = Self::default();
        for (place, &number) in numbers.iter().enumerate() {
            let overflow = (u64::from(number) >> width) as u32;
            if overflow > 0 {
                exceptions.overflows.push(overflow - 1);
                exceptions.places.push(place as u32);
            }
        }
        exceptions
    }

    fn gaps(&self) -> Vec<u32> {
        let before = std::iter::once(u32::MAX).chain(self.places.iter().copied());
        self.places.iter().zip(before).map(|(place, before)| place.wrapping_sub(before).wrapping_sub(1)).collect()
    }
}

/// Appends an array with `levels` of recursion.
fn pack_array(numbers: &[u32], levels: u8, words: &mut Vec<u32>) {
    if levels == 0 || numbers.is_empty() {
        words.extend_from_slice(numbers);
        return;
    }
    let width = slot_width(numbers);
    let exceptions = Exceptions::of(numbers, width);
    words.extend([width.into(), exceptions.overflows.len() as u32]);
    pack(numbers, width, words);
    pack_array(&exceptions.overflows, levels - 1, words);
    pack_array(&exceptions.gaps(), levels - 1, words);
}

fn unpack_array(rest: &mut Words<'_>, len: usize, levels: u8) -> Result<Vec<u32>, CodecError> {
    if levels == 0 || len == 0 {
        return Ok(rest.take(len, "a plain array of exceptions")?.to_vec());
    }
    let width = check_width("the width of an array's slots", rest.next("an array's width")?)?;
    let count = rest.next("an array's number of exceptions")? as usize;
    CodecError::check(count <= len, "an array's number of exceptions", count, "at most its length")?;
    let slots = rest.take(packed_words(len, width), "an array's slots")?;
    let mut numbers = Vec::new();
    unpack(slots, width, len, &mut numbers)?;
    let overflows = unpack_array(rest, count, levels - 1)?;
    let places = places(unpack_array(rest, count, levels - 1)?, len)?;
    for (&overflow, &place) in overflows.iter().zip(&places) {
        add_overflow(&mut numbers[place as usize], overflow, width);
    }
    Ok(numbers)
}

/// Turns the gaps between exceptions into their places among `len` numbers.
fn places(mut gaps: Vec<u32>, len: usize) -> Result<Vec<u32>, CodecError> {
    let mut next = 0_usize;
    for gap in &mut gaps {
        let place = next + *gap as usize;
        CodecError::check(place < len, "an exception's place", place, "inside the list")?;
        *gap = place as u32;
        next = place + 1;
    }
    Ok(gaps)
}

#[inline]
fn add_overflow(number: &mut u32, overflow_minus_one: u32, width: u8) {
    let high = overflow_minus_one.wrapping_add(1).checked_shl(width.into()).unwrap_or(0);
    *number = number.wrapping_add(high);
}

/// An opened list with decoded exceptions and encoded slots.
#[derive(Clone, Debug)]
struct PForDeltaList<'a> {
    len: usize,
    width: u8,
    /// Skip table whose positions are numbers of exceptions.
    skips: SkipTable<'a>,
    slots: &'a [u32],
    overflows: Vec<u32>,
    places: Vec<u32>,
}

impl<'a> PForDeltaList<'a> {
    /// Reads the header and decodes all exceptions, as in the paper. Fails if the words are not such a list.
    fn open(column: Column, words: &'a [u32]) -> Result<Self, CodecError> {
        let mut rest = Words(words);
        let len = rest.next("the number of values")? as usize;
        let widths = rest.next("the widths")?;
        let width = check_width("the width of a slot", widths & 0xff)?;
        let levels = widths >> 8;
        CodecError::check(levels <= PForDelta::MAX_LEVELS.into(), "the level of recursion", levels as usize, "0 to 4")?;
        let count = rest.next("the number of exceptions")? as usize;
        CodecError::check(count <= len, "the number of exceptions", count, "at most the list's length")?;
        let overflow_words = rest.next("the length of the overflows")? as usize;
        let skips = SkipTable::take(&mut rest, column, len.div_ceil(PForDelta::BLOCK_LEN))?;
        let slots = rest.take(packed_words(len, width), "the slots")?;
        let mut overflow_part = Words(rest.take(overflow_words, "the overflows")?);
        let overflows = unpack_array(&mut overflow_part, count, levels as u8)?;
        let places = places(unpack_array(&mut rest, count, levels as u8)?, len)?;
        Ok(Self { len, width, skips, slots, overflows, places })
    }

    fn exceptions_before(&self, block: usize) -> usize {
        self.skips.position(block).unwrap_or(self.overflows.len())
    }
}

impl ListReader for PForDeltaList<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn block_len(&self) -> usize {
        PForDelta::BLOCK_LEN
    }

    fn base(&self, block: usize) -> Option<u32> {
        self.skips.base(block)
    }

    #[inline]
    fn decode_block(&self, block: usize, out: &mut [u32]) -> Result<usize, CodecError> {
        let len = check_block(self, block, out)?;
        let out = &mut out[..len];
        let first = block * PForDelta::BLOCK_LEN;
        let group_words = packed_words(BLOCK_LEN, self.width);
        for (group, numbers) in out.chunks_mut(BLOCK_LEN).enumerate() {
            let start = (first / BLOCK_LEN + group) * group_words;
            unpack_group(self.slots.get(start..).unwrap_or_default(), self.width, numbers)?;
        }
        let range = self.exceptions_before(block)..self.exceptions_before(block + 1);
        let (Some(overflows), Some(places)) = (self.overflows.get(range.clone()), self.places.get(range.clone()))
        else {
            return Err(CodecError::Damaged {
                what: "the number of exceptions before a block",
                found: range.start.max(range.end),
                expected: "ascending, at most all exceptions",
            });
        };
        for (&overflow, &place) in overflows.iter().zip(places) {
            let found = place as usize;
            let number = found.checked_sub(first).and_then(|at| out.get_mut(at));
            let number = number.ok_or(CodecError::Damaged {
                what: "an exception's place",
                found,
                expected: "inside its block",
            })?;
            add_overflow(number, overflow, self.width);
        }
        self.skips.column().restore(self.base(block).unwrap_or(u32::MAX), out);
        Ok(len)
    }
}
