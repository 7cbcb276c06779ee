//! Integer codecs: ways to store the documents and frequencies of a list in few bits that decode fast.
//!
//! No search reads them: the index packs its lists in a layout of its own. They are what the papers used and were
//! compared with, and stand behind one trait, [`Codec`], so that they can be compared on the same lists: a whole list
//! goes in, 32-bit words come out, and a [`ListReader`] decodes it block by block, in any order.
//!
//! | name | idea | where |
//! | --- | --- | --- |
//! | `bp128` | each block at the width of its largest number | `bp128.rs` |
//! | `vbyte` | seven bits a byte | `vbyte.rs` |
//! | `stream-vbyte` | whole bytes, their counts apart | `stream_vbyte.rs` |
//! | `new-pfd`, `opt-pfd` | slots of one width a block, exceptions in Simple16 | `patched.rs` |
//! | `pfor`, `pfor-512` | slots of one width a block of 128 or 512, exceptions chained through them | `pfor.rs`: [`Pfor`] |
//! | `elias-fano` | sums: low bits plain, high bits in unary | `elias_fano.rs` |
//! | `rice` | quotients in unary, remainders in binary, one width a list | `rice.rs`: [`Rice`] |
//! | `pfor-delta-0` to `-4` | slots of one width a list, exceptions packed recursively | `pfor_delta.rs`: [`PForDelta`] |
//!
//! Codecs share framing (`frame.rs`: lists in blocks behind a skip table, `skips.rs`), packing (`packed.rs`, with
//! vectors in `simd/`) and unary codes (`unary.rs`). Each file describes what its codec writes, word by word. Encoded
//! lists are words of the machine that wrote them (little-endian on all we run on). Decoders take arbitrary words: they
//! return values or a [`CodecError`], and never panic or read elsewhere.
//!
//! ```
//! use tandem_papers::codec::{Column, codec_by_name};
//!
//! let codec = codec_by_name("rice").expect("all_codecs names it");
//! let words = codec.encode_list(Column::Docs, &[3, 4, 7, 12])?;
//! let list = codec.open(Column::Docs, &words)?;
//! let mut docs = Vec::new();
//! list.decode_all(&mut docs)?;
//! assert_eq!(docs, [3, 4, 7, 12]);
//! # Ok::<(), tandem_papers::codec::CodecError>(())
//! ```

mod bits;
mod bp128;
mod column;
mod elias_fano;
mod error;
mod frame;
mod packed;
mod patched;
mod pfor;
mod pfor_delta;
mod reader;
mod registry;
mod rice;
mod simd;
mod simple16;
mod skips;
mod stream_vbyte;
#[cfg(test)]
mod tests;
mod times;
mod unary;
mod vbyte;
mod words;

pub use column::Column;
pub use error::{CodecError, MAX_LIST_LEN};
#[cfg(feature = "gpu")]
pub(crate) use packed::packed_words;
#[cfg(feature = "gpu")]
pub(crate) use patched::{decode_new_pfd, encode_new_pfd};
pub use pfor::Pfor;
pub use pfor_delta::{PForDelta, PForDeltaList};
use reader::check_block;
pub use reader::{Codec, ListReader, MAX_BLOCK_LEN};
pub use registry::{all_codecs, codec_by_name};
pub use rice::{Rice, RiceList};
pub use times::{CodecTimes, ListColumns, sample_lists, time_codecs};
