//! A position in a posting list that moves forward, block by block.
//!
//! The cursor holds one decoded block. To reach a far document it searches the blocks' last documents, and decodes
//! only the block where it lands; that block's frequencies wait until somebody asks for one:
//!
//! ```text
//! next_geq(900)      headers  | ..127 | ..300 | ..655 | ..1203 | ..2001 |
//!                                 ^ here            gallop  ^ last_doc >= 900: decode, search inside
//! ```

use crate::ids::DocId;
use crate::index::{BlockBuffer, PostingList};

use super::block_search::{find_block, first_geq};

/// A forward cursor over a [`PostingList`], decoding into a buffer that outlives it.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    list: PostingList<'a>,
    buffer: &'a mut BlockBuffer,
    /// The decoded block.
    block: usize,
    /// Its postings.
    len: usize,
    /// The posting in it at which the cursor stands.
    position: usize,
    /// That posting's document, [`DocId::END`] past the last.
    doc: DocId,
    /// Whether the block's frequencies are decoded, too.
    has_freqs: bool,
}

impl<'a> Cursor<'a> {
    /// A cursor at the first posting of `list` with a document of at least `start`; at [`DocId::END`] if there is none.
    pub(super) fn new(list: PostingList<'a>, start: DocId, buffer: &'a mut BlockBuffer) -> Self {
        let mut cursor = Self { list, buffer, block: 0, len: 0, position: 0, doc: DocId::END, has_freqs: false };
        // A cursor far inside the list decodes the block it starts in, and no other.
        cursor.open_block(list.last_docs().partition_point(|&last| last < start.0));
        cursor.next_geq(start);
        cursor
    }

    /// The document at which the cursor stands, [`DocId::END`] past the last posting.
    #[inline]
    pub(super) fn doc(&self) -> DocId {
        self.doc
    }

    /// How often the term occurs in [`doc`](Self::doc). The first call in a block decodes all its frequencies.
    ///
    /// # Panics
    /// In debug builds, past the last posting.
    #[inline]
    pub(super) fn freq(&mut self) -> u32 {
        debug_assert!(self.doc < DocId::END, "no posting here");
        self.decode_freqs();
        self.buffer.freqs[self.position]
    }

    /// Moves to the next posting and returns its document.
    ///
    /// Returns [`DocId::END`] past the last posting, and may be called again there.
    #[inline]
    pub(super) fn next(&mut self) -> DocId {
        self.stand_at(self.position + 1)
    }

    /// Moves to the first posting with a document of at least `target` and returns that document.
    ///
    /// Never moves backwards; returns [`DocId::END`] past the last posting, and may be called again there. Equals calling
    /// [`next`](Self::next) while `doc() < target`, in O(log blocks passed) and the decoding of at most one block.
    #[inline]
    pub(super) fn next_geq(&mut self, target: DocId) -> DocId {
        if self.doc >= target {
            return self.doc;
        }
        if self.list.last_doc(self.block) < target.0 {
            let block = find_block(self.list.last_docs(), self.block + 1, target.0);
            if self.open_block(block) >= target {
                return self.doc;
            }
        }
        self.stand_at(first_geq(&self.buffer.docs, target.0))
    }

    /// Stands at a posting of the decoded block, or at the next block's first where the block ends.
    #[inline]
    fn stand_at(&mut self, position: usize) -> DocId {
        if position < self.len {
            self.position = position;
            self.doc = DocId(self.buffer.docs[position]);
            return self.doc;
        }
        self.open_block(self.block + 1)
    }

    /// Decodes the documents of a block and stands at its first; past the last block, at the end.
    fn open_block(&mut self, block: usize) -> DocId {
        self.position = 0;
        self.has_freqs = false;
        if block >= self.list.num_blocks() {
            // Nothing is left to step over: `next` comes back here, and `next_geq` returns at once.
            self.block = self.list.num_blocks();
            self.len = 0;
            self.doc = DocId::END;
            return self.doc;
        }
        self.block = block;
        self.len = self.list.decode_docs(block, &mut self.buffer.docs);
        // Searching takes all 128 places in order; a tail's free places count as past the end.
        self.buffer.docs[self.len..].fill(DocId::END.0);
        self.doc = DocId(self.buffer.docs[0]);
        self.doc
    }

    fn decode_freqs(&mut self) {
        if !self.has_freqs {
            self.list.decode_freqs(self.block, &mut self.buffer.freqs);
            self.has_freqs = true;
        }
    }
}
