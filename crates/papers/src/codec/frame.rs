//! Lists of independently packed blocks.
//!
//! Most codecs differ only in the packing of the numbers of a block, and share the rest of the format. A list in 32-bit
//! words:
//!
//! | word | meaning |
//! | --- | --- |
//! | 0 | values `n` |
//! | 1 .. | skip table, an entry per block. Documents: the document before the block (-1 as `u32::MAX`), where the block's words end. Frequencies: the latter alone |
//! | then | the blocks' words; a block begins where the one before ends, and ends count from here |

use std::fmt::Debug;
use std::marker::PhantomData;

use tandem_engine::index::BLOCK_LEN;

use super::words::{SkipTable, Words};
use super::{Codec, CodecError, Column, ListReader, check_block};

/// The packing of the numbers of one block: gaps minus one, or frequencies minus one.
pub(crate) trait BlockCodec: Debug + Send + Sync + 'static {
    const NAME: &'static str;
    /// Values per block, at most [`MAX_BLOCK_LEN`](super::MAX_BLOCK_LEN).
    const LEN: usize = BLOCK_LEN;

    /// Appends a block of 1 to [`LEN`](Self::LEN) numbers.
    fn encode(numbers: &[u32], words: &mut Vec<u32>);

    /// Decodes a block of `numbers.len()` numbers, 1 to [`LEN`](Self::LEN).
    fn decode(block: BlockWords<'_>, numbers: &mut [u32]) -> Result<(), CodecError>;

    /// Decodes a block of documents after `base`. Codecs override it if that is faster.
    #[inline]
    fn decode_docs(block: BlockWords<'_>, base: u32, docs: &mut [u32]) -> Result<(), CodecError> {
        Self::decode(block, docs)?;
        Column::Docs.restore(base, docs);
        Ok(())
    }

    /// Decodes a block of frequencies. Codecs override it if that is faster.
    #[inline]
    fn decode_freqs(block: BlockWords<'_>, freqs: &mut [u32]) -> Result<(), CodecError> {
        Self::decode(block, freqs)?;
        Column::Freqs.restore(0, freqs);
        Ok(())
    }
}

/// The words of a block and of the rest of the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockWords<'a> {
    from_start: &'a [u32],
    len: usize,
}

impl<'a> BlockWords<'a> {
    #[inline]
    pub(crate) fn own(self) -> &'a [u32] {
        &self.from_start[..self.len]
    }
}

/// The codec of lists with blocks packed by `B`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framed<B>(PhantomData<B>);

impl<B> Framed<B> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<B: BlockCodec> Codec for Framed<B> {
    fn name(&self) -> &'static str {
        B::NAME
    }

    fn encode(&self, column: Column, values: &[u32], words: &mut Vec<u32>) -> Result<(), CodecError> {
        let numbers = column.reduce(values)?;
        words.push(values.len() as u32);
        let entry = SkipTable::entry_words(column);
        let mut skip = words.len();
        let payload = skip + values.len().div_ceil(B::LEN) * entry;
        words.resize(payload, 0);
        for (start, block) in (0..).step_by(B::LEN).zip(numbers.chunks(B::LEN)) {
            B::encode(block, words);
            if column == Column::Docs {
                words[skip] = values[..start].last().copied().unwrap_or(u32::MAX);
            }
            // A block takes less than three words per value, so that ends fit 32 bits in lists of MAX_LIST_LEN.
            words[skip + entry - 1] = (words.len() - payload) as u32;
            skip += entry;
        }
        Ok(())
    }

    fn open<'a>(&self, column: Column, words: &'a [u32]) -> Result<Box<dyn ListReader + 'a>, CodecError> {
        let mut rest = Words(words);
        let len = rest.next("the number of values")? as usize;
        let skips = SkipTable::take(&mut rest, column, len.div_ceil(B::LEN))?;
        Ok(Box::new(FramedList::<B> { len, skips, payload: rest.0, codec: PhantomData }))
    }
}

#[derive(Debug)]
struct FramedList<'a, B> {
    len: usize,
    /// Skip table whose positions are the ends of blocks, in words of the payload.
    skips: SkipTable<'a>,
    payload: &'a [u32],
    codec: PhantomData<B>,
}

impl<'a, B> FramedList<'a, B> {
    /// Returns the end of `block` in the payload; 0 for `None`, the block before the first.
    fn end(&self, block: Option<usize>) -> usize {
        block.and_then(|block| self.skips.position(block)).unwrap_or(0)
    }

    fn block(&self, block: usize) -> Result<BlockWords<'a>, CodecError> {
        let (start, end) = (self.end(block.checked_sub(1)), self.end(Some(block)));
        let in_list = start <= end && end <= self.payload.len();
        CodecError::check(in_list, "the end of a block", end, "in the list, not before its start")?;
        Ok(BlockWords { from_start: &self.payload[start..], len: end - start })
    }
}

impl<B: BlockCodec> ListReader for FramedList<'_, B> {
    fn len(&self) -> usize {
        self.len
    }

    fn block_len(&self) -> usize {
        B::LEN
    }

    fn base(&self, block: usize) -> Option<u32> {
        self.skips.base(block)
    }

    #[inline]
    fn decode_block(&self, block: usize, out: &mut [u32]) -> Result<usize, CodecError> {
        let len = check_block(self, block, out)?;
        let out = &mut out[..len];
        let words = self.block(block)?;
        match self.skips.column() {
            Column::Docs => B::decode_docs(words, self.base(block).unwrap_or(u32::MAX), out)?,
            Column::Freqs => B::decode_freqs(words, out)?,
        }
        Ok(len)
    }
}
