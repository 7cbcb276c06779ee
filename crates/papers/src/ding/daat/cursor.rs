//! Cursors over coded lists.

use tandem_model::base::ids::DocId;

use crate::codec::{Codec, Column, ListReader, MAX_BLOCK_LEN};

#[derive(Debug)]
pub(crate) struct CodedList {
    pub(crate) docs: Vec<u32>,
    pub(crate) freqs: Vec<u32>,
    /// Last document; 0 for an empty list.
    pub(crate) last_doc: u32,
}

/// Method of reaching a document beyond the current block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// Use skips; blocks in between are not decoded.
    BySkips,
    /// Decode every block on the way.
    BlockByBlock,
}

/// A position in a coded list: before the first posting, at a posting, or past the end.
pub(crate) struct Cursor<'a> {
    docs: Box<dyn ListReader + 'a>,
    codec: &'a dyn Codec,
    freq_words: &'a [u32],
    last_doc: u32,
    /// Opened at the first use of a frequency.
    freqs: Option<Box<dyn ListReader + 'a>>,
    /// The decoded block; the number of blocks before the first one and past the end.
    block: usize,
    len: usize,
    place: usize,
    block_docs: [u32; MAX_BLOCK_LEN],
    freq_block: usize,
    block_freqs: [u32; MAX_BLOCK_LEN],
    /// Number of decoded blocks of documents.
    decoded: usize,
}

const END: u32 = DocId::END.0;
const NO_BLOCK: usize = usize::MAX;
const CODED_HERE: &str = "the list was coded by the same codec";

impl<'a> Cursor<'a> {
    pub(crate) fn open(codec: &'a dyn Codec, list: &'a CodedList) -> Self {
        Self {
            docs: codec.open(Column::Docs, &list.docs).expect(CODED_HERE),
            codec,
            freq_words: &list.freqs,
            last_doc: list.last_doc,
            freqs: None,
            block: NO_BLOCK,
            len: 0,
            place: 0,
            block_docs: [0; MAX_BLOCK_LEN],
            freq_block: NO_BLOCK,
            block_freqs: [0; MAX_BLOCK_LEN],
            decoded: 0,
        }
    }

    /// Returns how many blocks of documents were decoded so far.
    pub(crate) fn decoded(&self) -> usize {
        self.decoded
    }

    pub(crate) fn num_blocks(&self) -> usize {
        self.docs.num_blocks()
    }

    /// Returns the values of a block other than the last.
    pub(crate) fn block_len(&self) -> usize {
        self.docs.block_len()
    }

    /// Returns the document before `block`, -1 as `u32::MAX` before block 0, and the end past the last block. These are
    /// the skips; no block is decoded.
    pub(crate) fn skip(&self, block: usize) -> u32 {
        self.docs.base(block).unwrap_or(END)
    }

    /// Returns the last document, which is stored uncompressed; 0 for an empty list.
    pub(crate) fn last_doc(&self) -> u32 {
        self.last_doc
    }

    /// Returns the block of the first document from `target` on, if any has one.
    pub(crate) fn find_block(&self, target: u32) -> usize {
        self.docs.find_block(target)
    }

    /// Moves forward to the first document from `target` on and returns it; [`DocId::END`] if there is none.
    pub(crate) fn seek(&mut self, target: u32, advance: Advance) -> u32 {
        if self.block == NO_BLOCK {
            let block = if advance == Advance::BySkips { self.docs.find_block(target) } else { 0 };
            self.decode(block);
        }
        while self.len > 0 && self.block_docs[self.len - 1] < target {
            let next = match advance {
                Advance::BySkips => self.block_from(target),
                Advance::BlockByBlock => self.block + 1,
            };
            self.decode(next);
        }
        // Most steps are short, so that the search doubles its step until it is too long.
        let docs = &self.block_docs[self.place..self.len];
        let mut reach = 1;
        while reach < docs.len() && docs[reach] < target {
            reach *= 2;
        }
        let from = reach / 2;
        let until = (reach + 1).min(docs.len());
        self.place +=
            from.min(docs.len()) + docs.get(from..until).unwrap_or_default().partition_point(|&doc| doc < target);
        self.doc()
    }

    /// Moves to the beginning of `block`, the first one of a task.
    pub(crate) fn start_at(&mut self, block: usize) {
        self.decode(block);
    }

    /// Returns the document at the cursor; [`DocId::END`] past the end.
    pub(crate) fn doc(&self) -> u32 {
        if self.place < self.len { self.block_docs[self.place] } else { END }
    }

    /// Returns the place of the current posting in the list.
    pub(crate) fn place(&self) -> usize {
        self.block * self.block_len() + self.place
    }

    /// Returns the frequency of the posting at `place`, which must exist.
    pub(crate) fn freq(&mut self, place: usize) -> u32 {
        let block = place / self.block_len();
        if block != self.freq_block {
            let freqs =
                self.freqs.get_or_insert_with(|| self.codec.open(Column::Freqs, self.freq_words).expect(CODED_HERE));
            freqs.decode_block(block, &mut self.block_freqs).expect(CODED_HERE);
            self.freq_block = block;
        }
        self.block_freqs[place % self.block_len()]
    }

    /// Finds the first later block that may have `target`, by doubling steps and then bisection.
    fn block_from(&self, target: u32) -> usize {
        let is_before = |block: usize| block < self.num_blocks() && self.skip(block) < target;
        let (mut low, mut step) = (self.block + 1, 1);
        while is_before(low + step) {
            low += step;
            step *= 2;
        }
        while step > 0 {
            if is_before(low + step) {
                low += step;
            }
            step /= 2;
        }
        low
    }

    fn decode(&mut self, block: usize) {
        self.block = block;
        self.place = 0;
        self.len = if block < self.num_blocks() {
            self.decoded += 1;
            self.docs.decode_block(block, &mut self.block_docs).expect(CODED_HERE)
        } else {
            0
        };
    }
}
