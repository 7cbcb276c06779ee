//! The traits of codecs: encoding a list, and reading it by blocks.

use std::fmt::Debug;

use super::{CodecError, Column};

/// Maximum number of values of a block of any codec.
pub const MAX_BLOCK_LEN: usize = 512;

/// An encoding of lists of integers.
pub trait Codec: Debug + Send + Sync {
    /// Returns the name in tables and options.
    fn name(&self) -> &'static str;

    /// Appends the encoded list, which [`open`](Self::open) reads. Fails if documents do not ascend strictly, a
    /// frequency is 0, or the list is too long. Nothing is appended then.
    fn encode(&self, column: Column, values: &[u32], words: &mut Vec<u32>) -> Result<(), CodecError>;

    /// Returns the encoded list. Fails like [`encode`](Self::encode).
    fn encode_list(&self, column: Column, values: &[u32]) -> Result<Vec<u32>, CodecError> {
        let mut words = Vec::new();
        self.encode(column, values, &mut words)?;
        Ok(words)
    }

    /// Opens a list that [`encode`](Self::encode) wrote for the same `column`.
    ///
    /// It reads the header, and data that cannot be decoded by blocks, such as PForDelta's exceptions. Fails if the
    /// words are not such a list. Arbitrary words are safe, but some damage is not detected.
    fn open<'a>(&self, column: Column, words: &'a [u32]) -> Result<Box<dyn ListReader + 'a>, CodecError>;
}

/// An encoded list, opened for reading.
pub trait ListReader: Debug {
    /// Returns the number of values.
    fn len(&self) -> usize;

    /// Returns whether the list is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of values of a block, at most [`MAX_BLOCK_LEN`]. The last block may be shorter.
    fn block_len(&self) -> usize;

    /// Returns the number of blocks.
    fn num_blocks(&self) -> usize {
        self.len().div_ceil(self.block_len())
    }

    /// Returns the document before `block`: -1, as `u32::MAX`, before block 0. `None` past the last block, and for
    /// frequencies.
    fn base(&self, block: usize) -> Option<u32>;

    /// Returns the block of the first document from `target` on in O(log blocks) without decoding: the last block whose
    /// base is less than `target`. Returns block 0 for frequencies.
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

    /// Decodes `block` to the beginning of `out` and returns the number of its values. Fails if the block does not
    /// exist, `out` is too short, or the list is damaged; `out` is then unspecified.
    fn decode_block(&self, block: usize, out: &mut [u32]) -> Result<usize, CodecError>;

    /// Appends the decoded list to `out`. Fails if the list is damaged; the appended values are then unspecified.
    fn decode_all(&self, out: &mut Vec<u32>) -> Result<(), CodecError> {
        let start = out.len();
        out.resize(start + self.len(), 0);
        for (block, values) in out[start..].chunks_mut(self.block_len()).enumerate() {
            self.decode_block(block, values)?;
        }
        Ok(())
    }
}

/// Returns the length of `block` if it exists and fits `out`.
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
