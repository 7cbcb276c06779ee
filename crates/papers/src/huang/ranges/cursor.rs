//! A cursor: a place in a list, within a range of documents.
//!
//! A cursor stands on a document in a block that it has decoded. Block-Max WAND also looks ahead: [`Cursor::shallow`] finds
//! the block that a document would be in, by the blocks' greatest documents, and decodes nothing.
//!
//! ```text
//! blocks      0 |### # ## | 1 |## # ####| 2 | ### ####|          opened: 0, at its third document
//!                    ^ doc                  ^ ahead              ahead: 2, whose best score may exclude it
//! ```

use std::ops::Range;

use super::list::{Decoded, RangeBlock, RangeList};
use crate::codec::CodecError;
use tandem_core::index::Bm25;

/// Stands for the document of a cursor that has left its range.
pub(crate) const END: u32 = u32::MAX;

/// A place in a list.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    list: &'a RangeList,
    weight: f32,
    /// The document after its range.
    end: u32,
    doc: u32,
    /// The block that is looked at; never before the one that is decoded.
    ahead: usize,
    opened: usize,
    place: usize,
    decoded: Decoded,
    has_freqs: bool,
    blocks_decoded: u64,
}

impl<'a> Cursor<'a> {
    /// A cursor on the first document of `range` that the list has, or at the end. `weight` is the term's.
    pub(crate) fn new(list: &'a RangeList, weight: f32, range: &Range<u32>) -> Result<Self, CodecError> {
        let mut cursor = Self {
            list,
            weight,
            end: range.end,
            doc: END,
            ahead: 0,
            opened: usize::MAX,
            place: 0,
            decoded: Decoded::default(),
            has_freqs: false,
            blocks_decoded: 0,
        };
        if !range.is_empty() {
            cursor.ahead = cursor.list.blocks.partition_point(|block| block.greatest < range.start);
            cursor.open(range.start)?;
        }
        Ok(cursor)
    }

    /// The document that it stands on, or [`END`].
    #[inline]
    pub(crate) fn doc(&self) -> u32 {
        self.doc
    }

    /// An upper bound of what the term adds to any document.
    #[inline]
    pub(crate) fn max_score(&self) -> f32 {
        self.weight * self.list.max_impact
    }

    /// The list's blocks that this cursor has decoded so far.
    #[inline]
    pub(crate) fn blocks_decoded(&self) -> u64 {
        self.blocks_decoded
    }

    /// What the term adds to the document that it stands on, whose norm is `norm`.
    #[inline]
    pub(crate) fn score(&mut self, norm: f32) -> Result<f32, CodecError> {
        if !self.has_freqs {
            self.list.decode_freqs(self.opened, &mut self.decoded)?;
            self.has_freqs = true;
        }
        Ok(Bm25::score(self.weight, self.decoded.freqs[self.place], norm))
    }

    /// Goes on to the next document.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<(), CodecError> {
        self.place += 1;
        if self.place < self.decoded.len {
            self.stand();
            return Ok(());
        }
        // The block that was looked at last may be a later one.
        self.ahead = self.opened + 1;
        self.open(0)
    }

    /// Goes on to the first document from `target` on; stays where it is if that is not ahead.
    #[inline]
    pub(crate) fn next_geq(&mut self, target: u32) -> Result<(), CodecError> {
        if target <= self.doc {
            return Ok(());
        }
        if target <= self.list.blocks[self.opened].greatest {
            self.scan(target);
            return Ok(());
        }
        self.look(target);
        self.open(target)
    }

    /// Looks at the block that `target`, which is not behind the cursor, would be in: the first whose greatest document
    /// reaches it. Returns the upper bound of what the term adds there, and the block's greatest document: nothing and
    /// [`END`] past the last block.
    #[inline]
    pub(crate) fn shallow(&mut self, target: u32) -> (f32, u32) {
        self.look(target);
        match self.list.blocks.get(self.ahead) {
            Some(block) => (self.weight * block.max_impact, block.greatest),
            None => (0.0, END),
        }
    }

    /// Moves `ahead` to the first block whose greatest document is at least `target`: in steps that double, then by
    /// halves.
    #[inline]
    fn look(&mut self, target: u32) {
        let blocks = &self.list.blocks;
        let (mut low, mut step) = (self.ahead, 1);
        // Whatever is before `low` ends before the target.
        while low + step <= blocks.len() && blocks[low + step - 1].greatest < target {
            low += step;
            step *= 2;
        }
        let high = (low + step).min(blocks.len());
        self.ahead = low + blocks[low..high].partition_point(|block| block.greatest < target);
    }

    /// Decodes the block that is looked at, and stands on its first document from `target` on.
    #[inline]
    fn open(&mut self, target: u32) -> Result<(), CodecError> {
        let block: Option<&RangeBlock> = self.list.blocks.get(self.ahead);
        if block.is_none_or(|block| block.least >= self.end) {
            self.doc = END;
            return Ok(());
        }
        self.opened = self.ahead;
        self.list.decode_docs(self.opened, &mut self.decoded)?;
        self.has_freqs = false;
        self.blocks_decoded += 1;
        self.place = 0;
        self.scan(target);
        Ok(())
    }

    /// Stands on the first document of the decoded block from `target` on; the block has one.
    #[inline]
    fn scan(&mut self, target: u32) {
        while self.decoded.docs[self.place] < target {
            self.place += 1;
        }
        self.stand();
    }

    /// Stands on the document at `place`, unless it is past the range.
    #[inline]
    fn stand(&mut self) {
        let doc = self.decoded.docs[self.place];
        self.doc = if doc < self.end { doc } else { END };
    }
}
