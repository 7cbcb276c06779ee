//! Variable byte: seven bits per byte, lowest first; the highest bit announces another byte.
//!
//! ```text
//! 5 -> 05        300 -> ac 02        numbers below 2^7, 2^14, 2^21, 2^28, 2^32 take 1 to 5 bytes
//! ```
//!
//! A block is the bytes of its numbers, zero-padded to a whole word. The codec is small and simple, but decodes slowly,
//! because each byte decides about the next. Source: Thiel and Heaps, "Program design for retrospective searches on
//! large data bases", 1972.

use super::CodecError;
use super::frame::{BlockCodec, BlockWords};
use super::words::push_bytes;

#[derive(Debug)]
pub(crate) struct VByte;

impl BlockCodec for VByte {
    const NAME: &'static str = "vbyte";

    fn encode(numbers: &[u32], words: &mut Vec<u32>) {
        let mut bytes = Vec::with_capacity(numbers.len() * 2);
        for &number in numbers {
            let mut rest = number;
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
        push_bytes(&bytes, words);
    }

    #[inline]
    fn decode(block: BlockWords<'_>, numbers: &mut [u32]) -> Result<(), CodecError> {
        let bytes: &[u8] = bytemuck::cast_slice(block.own());
        let mut at = 0;
        for number in numbers {
            let Some(&first) = bytes.get(at) else {
                return Err(short(bytes));
            };
            at += 1;
            *number = u32::from(first);
            if first < 0x80 {
                continue;
            }
            *number &= 0x7f;
            for shift in [7, 14, 21, 28] {
                let Some(&byte) = bytes.get(at) else {
                    return Err(short(bytes));
                };
                at += 1;
                *number |= u32::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
        }
        Ok(())
    }
}

#[cold]
fn short(bytes: &[u8]) -> CodecError {
    CodecError::Truncated { what: "a block's numbers", needed: bytes.len() / 4 + 1, found: bytes.len() / 4 }
}
