//! Integer codecs: ways to store the documents and frequencies of a list in few bits that decode fast.
//!
//! The index itself keeps its lists in [`block`]'s packing. The codecs here stand behind one trait, [`Codec`], so that the
//! lab can compare them on the same lists: a whole list goes in, 32-bit words come out, and a [`ListReader`] decodes it
//! block by block, in any order.
//!
//! | name | idea | source |
//! | --- | --- | --- |
//! | `rice` | quotient in unary, remainder in binary, one width a list | [`Rice`] |
//! | `pfor-delta-0` to `-4` | slots of one width a list; exceptions packed recursively | [`PForDelta`] |
//!
//! Encoded lists are words of the machine that wrote them (little-endian on all we run on). Decoders take arbitrary words:
//! they return values or a [`CodecError`], and never panic or read elsewhere.

mod block;
mod column;
mod error;
mod packed;
mod pfor_delta;
mod reader;
mod registry;
mod rice;
mod simd;
#[cfg(test)]
mod tests;
mod words;

pub use column::Column;
pub use error::{CodecError, MAX_LIST_LEN};
pub use pfor_delta::{PForDelta, PForDeltaList};
use reader::check_block;
pub use reader::{Codec, ListReader, MAX_BLOCK_LEN};
pub use registry::{all_codecs, codec_by_name};
pub use rice::{Rice, RiceList};
