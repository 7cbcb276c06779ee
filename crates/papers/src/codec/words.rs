//! Cutting an encoded list into its parts.

use super::CodecError;

/// The words of an encoded list that have not been read yet.
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

    /// Takes the next word.
    pub(crate) fn next(&mut self, what: &'static str) -> Result<u32, CodecError> {
        Ok(self.take(1, what)?[0])
    }
}

/// Appends bytes, zero-padded to a whole word.
pub(crate) fn push_bytes(bytes: &[u8], words: &mut Vec<u32>) {
    let section = super::packed::grow(words, bytes.len().div_ceil(4));
    bytemuck::cast_slice_mut(section)[..bytes.len()].copy_from_slice(bytes);
}
