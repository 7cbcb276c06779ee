//! Parts of encoded lists: words and skip tables.
//!
//! A skip table has an entry per block, so that a block is found without decoding others. An entry for documents is the
//! document before the block (-1 as `u32::MAX`) and a position; one for frequencies is a position. Positions count words,
//! bits or exceptions, as the codec needs.

use super::CodecError;
use super::column::Column;

/// The unread words of an encoded list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a>(pub(crate) &'a [u32]);

impl<'a> Words<'a> {
    /// Takes the next `len` words; `what` names them in the error.
    pub(crate) fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u32], CodecError> {
        let (taken, rest) =
            self.0.split_at_checked(len).ok_or(CodecError::Truncated { what, needed: len, found: self.0.len() })?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn next(&mut self, what: &'static str) -> Result<u32, CodecError> {
        Ok(self.take(1, what)?[0])
    }
}

/// Appends bytes, zero-padded to a whole word.
pub(crate) fn push_bytes(bytes: &[u8], words: &mut Vec<u32>) {
    let section = super::packed::grow(words, bytes.len().div_ceil(4));
    bytemuck::cast_slice_mut(section)[..bytes.len()].copy_from_slice(bytes);
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SkipTable<'a> {
    column: Column,
    words: &'a [u32],
}

impl<'a> SkipTable<'a> {
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

    pub(crate) fn column(self) -> Column {
        self.column
    }

    /// Returns the document before `block`; `None` past the last block, and for frequencies.
    pub(crate) fn base(self, block: usize) -> Option<u32> {
        match self.column {
            Column::Docs => self.words.get(block * Self::entry_words(self.column)).copied(),
            Column::Freqs => None,
        }
    }

    /// Returns the position in the entry of `block`; `None` past the last block.
    pub(crate) fn position(self, block: usize) -> Option<usize> {
        let entry = Self::entry_words(self.column);
        self.words.get(block * entry + entry - 1).map(|&position| position as usize)
    }
}
