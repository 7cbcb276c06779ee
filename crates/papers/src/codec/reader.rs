//! The two traits of a codec: encoding a list, and reading it by blocks.

use std::fmt::Debug;

use super::{CodecError, Column};

/// Values in the longest block of any codec.
pub const MAX_BLOCK_LEN: usize = 512;

/// A way to store a list of integers.
pub trait Codec: Debug + Send + Sync {
    /// What the codec is called in tables and options.
    fn name(&self) -> &'static str;

    /// Appends the encoded list; the words it appends are what [`open`](Self::open) takes.
    ///
    /// # Errors
    /// If documents do not ascend strictly, a frequency is 0, or the list is longer than
    /// [`MAX_LIST_LEN`](super::MAX_LIST_LEN). Nothing is appended then.
    fn encode(&self, column: Column, values: &[u32], words: &mut Vec<u32>) -> Result<(), CodecError>;

    /// Encodes a list by itself; otherwise as [`encode`](Self::encode).
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    fn encode_list(&self, column: Column, values: &[u32]) -> Result<Vec<u32>, CodecError> {
        let mut words = Vec::new();
        self.encode(column, values, &mut words)?;
        Ok(words)
    }

    /// Opens a list that [`encode`](Self::encode) wrote for the same `column`.
    ///
    /// Cost: the header, and whatever the codec can't decode by blocks (PForDelta's exceptions).
    ///
    /// # Errors
    /// If the words are not such a list. Arbitrary words are fine; not every damage is found.
    fn open<'a>(&self, column: Column, words: &'a [u32]) -> Result<Box<dyn ListReader + 'a>, CodecError>;
}

/// An encoded list, open for reading.
pub trait ListReader: Debug {
    /// Values in the list.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values in a block but the last, which may be shorter: at most [`MAX_BLOCK_LEN`].
    fn block_len(&self) -> usize;

    /// Blocks in the list.
    fn num_blocks(&self) -> usize {
        self.len().div_ceil(self.block_len())
    }

    /// The document before the first of `block`: -1, as `u32::MAX`, before block 0. `None` past the last block, and
    /// where the list holds frequencies.
    fn base(&self, block: usize) -> Option<u32>;

    /// The block that holds the first document from `target` on, in O(log blocks) and without decoding: the last one
    /// whose base is less than `target`. Block 0 for frequencies.
    fn find_block(&self, target: u32) -> usize {
        let (mut first, mut end) = (0, self.num_blocks());
        while first + 1 < end {
            let middle = first.midpoint(end);
            if self.base(middle).is_some_and(|base| base < target) {
                first = middle;
            } else {
                end = middle;
            }
        }
        first
    }

    /// Decodes `block` to the start of `out` and returns how many values that are.
    ///
    /// # Errors
    /// If there is no such block, `out` is shorter than it, or the list is damaged; `out` is then unspecified.
    fn decode_block(&self, block: usize, out: &mut [u32]) -> Result<usize, CodecError>;

    /// Decodes the whole list, appending to `out`.
    ///
    /// # Errors
    /// If the list is damaged; what was appended is then unspecified.
    fn decode_all(&self, out: &mut Vec<u32>) -> Result<(), CodecError> {
        let start = out.len();
        out.resize(start + self.len(), 0);
        for (block, values) in out[start..].chunks_mut(self.block_len()).enumerate() {
            self.decode_block(block, values)?;
        }
        Ok(())
    }
}

/// The length of `block`, if there is one and it fits `out`.
#[inline]
pub(crate) fn check_block<L: ListReader + ?Sized>(list: &L, block: usize, out: &[u32]) -> Result<usize, CodecError> {
    let start = block.saturating_mul(list.block_len());
    if start >= list.len() {
        return Err(CodecError::NoBlock { block, num_blocks: list.num_blocks() });
    }
    let needed = (list.len() - start).min(list.block_len());
    if out.len() < needed {
        return Err(CodecError::ShortBuffer { needed, found: out.len() });
    }
    Ok(needed)
}
