//! StreamVByte: lengths of four numbers in one control byte, separate from their bytes.
//!
//! Separate lengths let four numbers decode at once: the control byte selects a shuffle that spreads the next 4 to 16
//! bytes over four lanes.
//!
//! ```text
//! numbers   5   300   70000   1
//! control   00  01    10      00     bytes minus 1, the first number lowest: 0b00_10_01_00
//! data      05  2c 01 70 11 01 01
//! ```
//!
//! A block of `n` numbers is `n / 4` control bytes (rounded up; unused fields are zero), the data, and zeros up to a
//! whole word. Source: Lemire, Kurz, Rupp, "Stream VByte: faster byte-oriented integer compression", 2018.

use super::frame::{BlockCodec, BlockWords};
use super::words::push_bytes;
use super::{CodecError, simd};

#[derive(Debug)]
pub(crate) struct StreamVByte;

impl StreamVByte {
    /// Returns the block's control bytes, and its data with the rest of the list, after checking their lengths.
    #[inline]
    fn parts(block: BlockWords<'_>, len: usize) -> Result<(&[u8], &[u8]), CodecError> {
        let bytes: &[u8] = bytemuck::cast_slice(block.with_following());
        let own_bytes = block.own().len() * 4;
        let num_controls = len.div_ceil(4);
        let (controls, data) = bytes.split_at_checked(num_controls).unwrap_or((&[], &[]));
        let needed = num_controls + simd::stream_vbyte_bytes(controls, len);
        if controls.len() < num_controls || needed > own_bytes {
            return Err(CodecError::Truncated {
                what: "a block's numbers",
                needed: needed.div_ceil(4),
                found: own_bytes / 4,
            });
        }
        Ok((controls, data))
    }
}

impl BlockCodec for StreamVByte {
    const NAME: &'static str = "stream-vbyte";

    fn encode(numbers: &[u32], words: &mut Vec<u32>) {
        let mut bytes = vec![0; numbers.len().div_ceil(4)];
        for (i, &number) in numbers.iter().enumerate() {
            let len = (4 - number.leading_zeros() as usize / 8).max(1);
            bytes[i / 4] |= ((len - 1) << (i % 4 * 2)) as u8;
            bytes.extend_from_slice(&number.to_le_bytes()[..len]);
        }
        push_bytes(&bytes, words);
    }

    #[inline]
    fn decode(block: BlockWords<'_>, numbers: &mut [u32]) -> Result<(), CodecError> {
        let (controls, data) = Self::parts(block, numbers.len())?;
        simd::stream_vbyte(controls, data, numbers);
        Ok(())
    }
}
