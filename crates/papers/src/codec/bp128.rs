//! SIMD-BP128: every block has the width of its largest number.
//!
//! The simplest and fastest codec has no exceptions and no variable lengths; 16-byte loads unpack four lanes. One large
//! number costs its width 128 times.
//!
//! A full block of width `w` is `4 w` words, [packed](super::packed) in four lanes; its length gives its width. A
//! shorter last block is a word with its width and then its numbers, packed horizontally.
//!
//! Source: Lemire and Boytsov, "Decoding billions of integers per second through vectorization", 2015.

use super::frame::{BlockCodec, BlockWords};
use super::packed::{check_width, pack, unpack_group, width_of};
use super::words::Words;
use super::{CodecError, Column, simd};
use tandem_core::index::BLOCK_LEN;

#[derive(Debug)]
pub(crate) struct Bp128;

impl Bp128 {
    /// Returns the width of a full block from its length.
    #[inline]
    fn full_width(words: &[u32]) -> Result<u8, CodecError> {
        let found = words.len();
        CodecError::check(found.is_multiple_of(4) && found <= 128, "a block's words", found, "4 a bit of its width")?;
        Ok((found / 4) as u8)
    }
}

impl BlockCodec for Bp128 {
    const NAME: &'static str = "bp128";

    fn encode(numbers: &[u32], words: &mut Vec<u32>) {
        let width = width_of(numbers);
        if numbers.len() < BLOCK_LEN {
            words.push(width.into());
        }
        pack(numbers, width, words);
    }

    #[inline]
    fn decode(block: BlockWords<'_>, numbers: &mut [u32]) -> Result<(), CodecError> {
        if numbers.len() == BLOCK_LEN {
            return unpack_group(block.own(), Self::full_width(block.own())?, numbers);
        }
        let mut rest = Words(block.own());
        let width = check_width("the width of a block", rest.next("the width")?)?;
        unpack_group(rest.0, width, numbers)
    }

    #[inline]
    fn decode_docs(block: BlockWords<'_>, base: u32, docs: &mut [u32]) -> Result<(), CodecError> {
        if let Ok(full) = <&mut [u32; BLOCK_LEN]>::try_from(&mut *docs) {
            let width = Self::full_width(block.own())?;
            simd::unpack_docs(block.own(), width, base, full);
            return Ok(());
        }
        Self::decode(block, docs)?;
        Column::Docs.restore(base, docs);
        Ok(())
    }

    #[inline]
    fn decode_freqs(block: BlockWords<'_>, freqs: &mut [u32]) -> Result<(), CodecError> {
        if let Ok(full) = <&mut [u32; BLOCK_LEN]>::try_from(&mut *freqs) {
            simd::unpack_freqs(block.own(), Self::full_width(block.own())?, full);
            return Ok(());
        }
        Self::decode(block, freqs)?;
        Column::Freqs.restore(0, freqs);
        Ok(())
    }
}
