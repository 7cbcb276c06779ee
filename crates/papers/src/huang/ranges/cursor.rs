//! Cursors over lists within a range of documents.
//!
//! A cursor is at a document of a decoded block. Block-Max WAND also looks ahead: [`Cursor::shallow`] finds the block
//! of a document by the blocks' greatest documents, without decoding.
//!
//! ```text
//! blocks      0 |### # ## | 1 |## # ####| 2 | ### ####|          opened: 0, at its third document
//!                    ^ doc                  ^ ahead              ahead: 2, whose best score may exclude it
//! ```

use std::ops::Range;

use tandem_engine::index::Bm25;

use super::list::{Decoded, RangeBlock, RangeList};
use crate::codec::CodecError;

/// Document of a cursor that has left its range.
pub(crate) const END: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    list: &'a RangeList,
    weight: f32,
    end: u32,
    doc: u32,
    /// The block that is looked at, never before the decoded one.
    ahead: usize,
    opened: usize,
    place: usize,
    decoded: Decoded,
    has_freqs: bool,
    blocks_decoded: u64,
}

impl<'a> Cursor<'a> {
    /// Makes a cursor at the first document of `range` in the list, or at the end. `weight` is the term's.
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

    /// Returns the current document, or [`END`].
    #[inline]
    pub(crate) fn doc(&self) -> u32 {
        self.doc
    }

    /// Returns an upper bound of the term's score for any document.
    #[inline]
    pub(crate) fn max_score(&self) -> f32 {
        self.weight * self.list.max_impact
    }

    /// Returns the number of blocks decoded so far.
    #[inline]
    pub(crate) fn blocks_decoded(&self) -> u64 {
        self.blocks_decoded
    }

    /// Returns the term's score for the current document, whose norm is `norm`.
    #[inline]
    pub(crate) fn score(&mut self, norm: f32) -> Result<f32, CodecError> {
        if !self.has_freqs {
            self.list.decode_freqs(self.opened, &mut self.decoded)?;
            self.has_freqs = true;
        }
        Ok(Bm25::score(self.weight, self.decoded.freqs[self.place], norm))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<(), CodecError> {
        self.place += 1;
        if self.place < self.decoded.len {
            self.stand();
            return Ok(());
        }
        // The block that was looked at may be a later one.
        self.ahead = self.opened + 1;
        self.open(0)
    }

    /// Moves forward to the first document from `target` on.
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

    /// Looks at the block of `target`, the first one whose greatest document reaches it; `target` is not behind the
    /// cursor. Returns the upper bound of the term's score there and the block's greatest document, or 0 and [`END`]
    /// past the last block.
    #[inline]
    pub(crate) fn shallow(&mut self, target: u32) -> (f32, u32) {
        self.look(target);
        match self.list.blocks.get(self.ahead) {
            Some(block) => (self.weight * block.max_impact, block.greatest),
            None => (0.0, END),
        }
    }

    /// Moves `ahead` to the first block whose greatest document is at least `target`, by doubling steps and then
    /// bisection.
    #[inline]
    fn look(&mut self, target: u32) {
        let blocks = &self.list.blocks;
        let (mut low, mut step) = (self.ahead, 1);
        // All blocks before `low` end before the target.
        while low + step <= blocks.len() && blocks[low + step - 1].greatest < target {
            low += step;
            step *= 2;
        }
        let high = (low + step).min(blocks.len());
        self.ahead = low + blocks[low..high].partition_point(|block| block.greatest < target);
    }

    /// Decodes the block that is looked at, and moves to its first document from `target` on.
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

    /// Moves to the first document from `target` on in the decoded block, which has one.
    #[inline]
    fn scan(&mut self, target: u32) {
        while self.decoded.docs[self.place] < target {
            self.place += 1;
        }
        self.stand();
    }

    /// Sets the current document from `place`, unless it is past the range.
    #[inline]
    fn stand(&mut self) {
        let doc = self.decoded.docs[self.place];
        self.doc = if doc < self.end { doc } else { END };
    }
}
