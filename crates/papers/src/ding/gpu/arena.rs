//! Lists coded by PForDelta in the device's layout: one arena of words, and a tree of the places of arrays.

use super::kernels::PFOR_BLOCK_LEN;
use super::twin::read_slot;
use crate::codec::{Column, packed_words};

/// Words for the device, and the number of words of scratch memory for decoded exceptions.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    pub(crate) words: Vec<u32>,
    pub(crate) scratch_len: usize,
}

/// A packed array: the places of its parts in the arena.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) len: u32,
    pub(crate) width: u32,
    pub(crate) num_exceptions: u32,
    pub(crate) slots: usize,
    /// Value before each block of an ascending array.
    pub(crate) bases: Option<usize>,
    /// First exception of each block, and the number of exceptions.
    pub(crate) starts: usize,
    pub(crate) positions: Source,
    pub(crate) overflows: Source,
}

/// Place of an array of exceptions.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Nowhere,
    /// The array is uncompressed in the arena.
    Raw(usize),
    /// The array is packed, and is decoded to this place in scratch memory, in words.
    Packed {
        tree: Box<Tree>,
        scratch: usize,
    },
}

impl Tree {
    pub(crate) fn num_blocks(&self) -> u32 {
        self.len.div_ceil(PFOR_BLOCK_LEN as u32)
    }

    /// Returns the number of words of the decoded values, in whole blocks.
    pub(crate) fn output_len(&self) -> usize {
        self.num_blocks() as usize * PFOR_BLOCK_LEN
    }

    /// Returns the levels of packed arrays below this one.
    pub(crate) fn depth(&self) -> usize {
        let below = |source: &Source| match source {
            Source::Packed { tree, .. } => 1 + tree.depth(),
            Source::Raw(_) | Source::Nowhere => 0,
        };
        below(&self.positions).max(below(&self.overflows))
    }
}

impl Arena {
    /// Appends a list that [`PForDelta`](crate::codec::PForDelta) encoded as `column`. Panics if it is not such a list.
    pub(crate) fn push_list(&mut self, column: Column, encoded: &[u32]) -> Tree {
        let (header, mut rest) = encoded.split_at(4);
        let (len, width, levels) = (header[0] as usize, header[1] & 0xff, header[1] >> 8);
        let num_exceptions = header[2] as usize;
        let entry_len = if column == Column::Docs { 2 } else { 1 };
        let skips = take(&mut rest, len.div_ceil(PFOR_BLOCK_LEN) * entry_len);
        let slots = take(&mut rest, packed_words(len, width));
        let (overflows, _) = self.push_array(&mut rest, num_exceptions, levels, false);
        let (positions, _) = self.push_array(&mut rest, num_exceptions, levels, true);
        let starts = skips.chunks(entry_len).map(|entry| entry[entry_len - 1]);
        let bases = (column == Column::Docs).then(|| skips.chunks(entry_len).map(|entry| entry[0]));
        self.push_tree((len, width, num_exceptions), slots, bases, starts, (positions, overflows))
    }

    /// Appends an array of exceptions with `levels` of recursion; returns its values as well.
    fn push_array(&mut self, rest: &mut &[u32], len: usize, levels: u32, ascends: bool) -> (Source, Vec<u32>) {
        if len == 0 {
            return (Source::Nowhere, Vec::new());
        }
        if levels == 0 {
            let values = restore(take(rest, len).to_vec(), ascends);
            return (Source::Raw(self.push(&values)), values);
        }
        let (width, num_exceptions) = (take(rest, 1)[0], take(rest, 1)[0] as usize);
        let slots = take(rest, packed_words(len, width));
        let (overflows, overflow_values) = self.push_array(rest, num_exceptions, levels - 1, false);
        let (positions, places) = self.push_array(rest, num_exceptions, levels - 1, true);
        let mut numbers: Vec<u32> = (0..len).map(|i| read_slot(slots, width, len, i)).collect();
        for (&place, &overflow) in places.iter().zip(&overflow_values) {
            numbers[place as usize] += overflow << width;
        }
        let values = restore(numbers, ascends);
        let blocks = (0..len).step_by(PFOR_BLOCK_LEN);
        let starts = blocks.clone().map(|first| places.partition_point(|&place| (place as usize) < first) as u32);
        let bases = ascends.then(|| blocks.map(|first| first.checked_sub(1).map_or(u32::MAX, |i| values[i])));
        let tree = self.push_tree((len, width, num_exceptions), slots, bases, starts, (positions, overflows));
        let scratch = self.scratch_len;
        self.scratch_len += tree.output_len();
        (Source::Packed { tree: Box::new(tree), scratch }, values)
    }

    /// Appends a packed array whose exceptions are already in the arena or nowhere.
    fn push_tree(
        &mut self,
        (len, width, num_exceptions): (usize, u32, usize),
        slots: &[u32],
        bases: Option<impl Iterator<Item = u32>>,
        starts: impl Iterator<Item = u32>,
        (positions, overflows): (Source, Source),
    ) -> Tree {
        let (len, num_exceptions) = (len as u32, num_exceptions as u32);
        let bases = bases.map(|bases| self.push(&bases.collect::<Vec<_>>()));
        let slots = self.push(slots);
        let starts = self.push(&starts.chain([num_exceptions]).collect::<Vec<_>>());
        Tree { len, width, num_exceptions, slots, bases, starts, positions, overflows }
    }

    /// Appends words at a multiple of sixteen bytes; returns their place.
    pub(crate) fn push(&mut self, words: &[u32]) -> usize {
        self.align();
        let start = self.words.len();
        self.words.extend_from_slice(words);
        start
    }

    /// Pads the arena to a multiple of sixteen bytes.
    pub(crate) fn align(&mut self) {
        self.words.resize(self.words.len().next_multiple_of(4), 0);
    }
}

/// Turns packed numbers into values: adds one to each, and sums gaps up from -1.
fn restore(mut numbers: Vec<u32>, ascends: bool) -> Vec<u32> {
    let mut before = u32::MAX;
    for number in &mut numbers {
        *number = number.wrapping_add(1);
        if ascends {
            before = before.wrapping_add(*number);
            *number = before;
        }
    }
    numbers
}

pub(crate) fn take<'a>(rest: &mut &'a [u32], len: usize) -> &'a [u32] {
    let (taken, left) = rest.split_at(len);
    *rest = left;
    taken
}
