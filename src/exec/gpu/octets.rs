//! Lists in the form that GPU decodes fastest: what `kernels/octet.cuh` reads, packed here, and unpacked for tests.
//!
//! The file's blocks are made for the CPU and for little space: exceptions, bitsets, any width. A GPU's warp decodes
//! four blocks of this form at once, eight lanes each, with hardly more than an instruction a posting, and pays with
//! somewhat wider gaps: widths are even, there are no exceptions, and four blocks that follow each other share one
//! width.
//!
//! ```text
//! lane t of a block's eight    postings 16t .. 16t+15, in `lane_words` words: width / 2
//! columns in a word            4 of 8 bits (width <= 8), 2 of 16 (width <= 16), or 1 of 32: posting i is in column
//!                              i mod columns, row i / columns; a column's rows follow each other bit by bit through
//!                              the lane's words
//! words of a block             pieces of 4 words a lane, then 2, then 1; a piece holds lane 0's words, lane 1's, ...
//! ```

use crate::index::BLOCK_LEN;

/// Lanes that share a block.
const OCTET: usize = 8;
/// Blocks that share a width.
pub(super) const GROUP: usize = 4;
const LANE_ITEMS: usize = BLOCK_LEN / OCTET;
/// Numbers of words that a lane's gaps may fill.
const LANE_WORDS: [usize; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16];

/// Where a block is: `OctetBlock` in octet.cuh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct OctetBlock {
    /// Of its first word, in units of 8 words.
    pub(super) offset: u32,
    /// Words of each lane.
    pub(super) lane_words: u32,
}

/// Packed lists, one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct OctetLists {
    pub(super) payload: Vec<u32>,
    pub(super) blocks: Vec<OctetBlock>,
    pub(super) last_docs: Vec<u32>,
}

impl OctetLists {
    /// Adds a list of ascending documents, of which the first counts from `base`; numbers wrap, so that the document
    /// before the first of all is `u32::MAX`.
    ///
    /// # Panics
    /// If the payload exceeds 2^32 units of 8 words: 128 GiB.
    pub(super) fn push(&mut self, docs: &[u32], mut base: u32) {
        let mut gaps = [[1_u32; BLOCK_LEN]; GROUP];
        for group in docs.chunks(GROUP * BLOCK_LEN) {
            let mut bits = 0;
            for (block, gaps) in group.chunks(BLOCK_LEN).zip(&mut gaps) {
                gaps.fill(1);
                for (&doc, gap) in block.iter().zip(gaps.iter_mut()) {
                    *gap = doc.wrapping_sub(base);
                    bits |= *gap;
                    base = doc;
                }
                self.last_docs.push(base);
            }
            let lane_words = lane_words(bits);
            for gaps in &gaps[..group.len().div_ceil(BLOCK_LEN)] {
                let offset = u32::try_from(self.payload.len() / OCTET).expect("less than 128 GiB of payload");
                self.blocks.push(OctetBlock { offset, lane_words: lane_words as u32 });
                pack(gaps, lane_words, &mut self.payload);
            }
        }
    }

    /// Adds all that `other` has.
    ///
    /// # Panics
    /// If the payload exceeds 2^32 units of 8 words: 128 GiB.
    pub(super) fn append(&mut self, other: &Self) {
        let offset = u32::try_from(self.payload.len() / OCTET).expect("less than 128 GiB of payload");
        self.payload.extend_from_slice(&other.payload);
        self.last_docs.extend_from_slice(&other.last_docs);
        let moved = |block: &OctetBlock| OctetBlock {
            offset: offset.checked_add(block.offset).expect("less than 128 GiB of payload"),
            ..*block
        };
        self.blocks.extend(other.blocks.iter().map(moved));
    }
}

/// Words that a lane's sixteen values fill, of which `bits` are the bits that any of them has set.
pub(super) fn lane_words(bits: u32) -> usize {
    let needed = (32 - bits.leading_zeros()).div_ceil(2) as usize;
    *LANE_WORDS.iter().find(|&&words| words >= needed).unwrap_or(&LANE_WORDS[LANE_WORDS.len() - 1])
}

/// Where a value lies: its words in the lane, the bit in the first of them, and how many of its bits are there.
struct Place {
    word: usize,
    shift: usize,
    bits_here: usize,
    /// Where the rest begins in the next word.
    column: usize,
}

impl Place {
    fn of(item: usize, lane_words: usize) -> Self {
        let width = 2 * lane_words;
        let column_bits = width.next_power_of_two().max(8);
        let columns = 32 / column_bits;
        let (row, column) = (item / columns, item % columns * column_bits);
        let bit = row * width;
        let shift = bit % column_bits;
        Self { word: bit / column_bits, shift: column + shift, bits_here: width.min(column_bits - shift), column }
    }
}

/// Where word `word` of lane `lane` is among a block's words.
fn word_position(lane: usize, word: usize, lane_words: usize) -> usize {
    let in_fours = lane_words / 4 * 4;
    if word < in_fours {
        return word / 4 * 4 * OCTET + 4 * lane + word % 4;
    }
    // What is left are two words, one, or two and one.
    let in_twos = lane_words / 2 * 2;
    if word < in_twos { in_fours * OCTET + 2 * lane + (word - in_fours) } else { in_twos * OCTET + lane }
}

/// Appends a block of values, each of at most twice `lane_words` bits.
pub(super) fn pack(values: &[u32; BLOCK_LEN], lane_words: usize, payload: &mut Vec<u32>) {
    let start = payload.len();
    payload.resize(start + OCTET * lane_words, 0);
    let words = &mut payload[start..];
    let places: [Place; LANE_ITEMS] = std::array::from_fn(|item| Place::of(item, lane_words));
    for (lane, values) in values.chunks(LANE_ITEMS).enumerate() {
        for (place, &value) in places.iter().zip(values) {
            let here = u64::from(value) & ((1 << place.bits_here) - 1);
            words[word_position(lane, place.word, lane_words)] |= (here << place.shift) as u32;
            if place.bits_here < 2 * lane_words {
                let rest = u64::from(value) >> place.bits_here << place.column;
                words[word_position(lane, place.word + 1, lane_words)] |= rest as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The kernels' twin: a block's values.
    fn unpack(words: &[u32], lane_words: usize) -> Vec<u32> {
        let value = |position: usize| {
            let (lane, place) = (position / LANE_ITEMS, Place::of(position % LANE_ITEMS, lane_words));
            let word = |word| u64::from(words[word_position(lane, word, lane_words)]);
            let here = word(place.word) >> place.shift & ((1 << place.bits_here) - 1);
            let rest_bits = 2 * lane_words - place.bits_here;
            let rest = if rest_bits == 0 { 0 } else { word(place.word + 1) >> place.column & ((1 << rest_bits) - 1) };
            (here | rest << place.bits_here) as u32
        };
        (0..BLOCK_LEN).map(value).collect()
    }

    #[test]
    fn values_of_every_width_come_back() {
        let mut random = Random::new(3, 0);
        for width in 1..=32_u32 {
            let values: [u32; BLOCK_LEN] = std::array::from_fn(|_| random.bits() as u32 >> (32 - width));
            let lane_words = lane_words(u32::MAX >> (32 - width));
            assert!(2 * lane_words >= width as usize && 2 * lane_words <= width as usize + 7, "width {width}");
            let mut payload = Vec::new();
            pack(&values, lane_words, &mut payload);
            assert_eq!(payload.len(), OCTET * lane_words);
            assert_eq!(unpack(&payload, lane_words), values, "width {width}");
        }
    }

    #[test]
    fn words_of_a_block_fill_it_without_a_gap() {
        for lane_words in LANE_WORDS {
            let mut places: Vec<usize> =
                (0..OCTET).flat_map(|lane| (0..lane_words).map(move |w| word_position(lane, w, lane_words))).collect();
            places.sort_unstable();
            assert_eq!(places, (0..OCTET * lane_words).collect::<Vec<_>>());
        }
    }

    #[test]
    fn lists_come_back_block_by_block() {
        let mut random = Random::new(4, 0);
        for len in [1, 15, 16, 127, 128, 129, 511, 512, 513, 5000] {
            let mut doc = u32::MAX;
            let docs: Vec<u32> = (0..len)
                .map(|_| {
                    let spread = 1 << random.below(18);
                    doc = doc.wrapping_add(1 + random.below(spread));
                    doc
                })
                .collect();
            let mut lists = OctetLists::default();
            lists.push(&[7, 9], u32::MAX);
            let mut list = OctetLists::default();
            list.push(&docs, u32::MAX);
            lists.append(&list);
            let mut base = u32::MAX;
            let mut decoded = Vec::new();
            for (block, last_doc) in lists.blocks[1..].iter().zip(&lists.last_docs[1..]) {
                for gap in unpack(&lists.payload[OCTET * block.offset as usize..], block.lane_words as usize) {
                    base = base.wrapping_add(gap);
                    decoded.push(base);
                }
                base = *last_doc;
            }
            assert_eq!(decoded[..len], docs, "{len}");
        }
    }
}
