//! Skip tables: what stands before a list's blocks, so that any of them is found without decoding the others.
//!
//! An entry a block. For documents it is the document before the block (-1 as `u32::MAX`) and a position; for
//! frequencies the position alone. What the position counts is the codec's: words, bits, exceptions.

use super::words::Words;
use super::{CodecError, Column};

/// The skip table of an encoded list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SkipTable<'a> {
    column: Column,
    words: &'a [u32],
}

impl<'a> SkipTable<'a> {
    /// Words that an entry takes.
    pub(crate) fn entry_words(column: Column) -> usize {
        match column {
            Column::Docs => 2,
            Column::Freqs => 1,
        }
    }

    /// Takes the table of `num_blocks` blocks from the words of a list.
    pub(crate) fn take(rest: &mut Words<'a>, column: Column, num_blocks: usize) -> Result<Self, CodecError> {
        let words = rest.take(num_blocks * Self::entry_words(column), "the skip table")?;
        Ok(Self { column, words })
    }

    /// The column that the list holds.
    pub(crate) fn column(self) -> Column {
        self.column
    }

    /// The document before the first of `block`; `None` past the last block, and for frequencies.
    pub(crate) fn base(self, block: usize) -> Option<u32> {
        match self.column {
            Column::Docs => self.words.get(block * Self::entry_words(self.column)).copied(),
            Column::Freqs => None,
        }
    }

    /// The position in the entry of `block`; `None` past the last block.
    pub(crate) fn position(self, block: usize) -> Option<usize> {
        let entry = Self::entry_words(self.column);
        self.words.get(block * entry + entry - 1).map(|&position| position as usize)
    }
}
