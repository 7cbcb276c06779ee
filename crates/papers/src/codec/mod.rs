//! Integer codecs of the papers, which store the documents and frequencies of a list in few bits.
//!
//! Searches do not use them; the index has its own layout. All codecs implement [`Codec`], so that they can be
//! compared on the same lists. A codec turns a list into 32-bit words, and a [`ListReader`] decodes them block by block
//! in any order.
//!
//! | name | idea | where |
//! | --- | --- | --- |
//! | `new-pfd`, `opt-pfd` | slots of one width per block, exceptions in Simple16 | `patched.rs` |
//! | `pfor`, `pfor-512` | slots of one width per block of 128 or 512, exceptions chained through them | `pfor.rs`: [`Pfor`] |
//! | `rice` | quotients in unary, remainders in binary, one width per list | `rice.rs`: [`Rice`] |
//! | `pfor-delta-0` to `-4` | slots of one width per list, exceptions packed recursively | `pfor_delta.rs`: [`PForDelta`] |
//!
//! Codecs share framing (`frame.rs`: lists in blocks behind a skip table, `words.rs`), packing (`packed.rs`, with
//! vectors in `simd/`) and unary codes (`unary.rs`). Each file describes the words that its codec writes. Words have
//! the byte order of the machine that wrote them. Decoders take arbitrary words: they return values or a
//! [`CodecError`], and never panic or read elsewhere.
//!
//! ```
//! use tandem_papers::codec::{Codec, Column, Rice};
//!
//! let words = Rice.encode_list(Column::Docs, &[3, 4, 7, 12])?;
//! let list = Rice.open(Column::Docs, &words)?;
//! let mut docs = Vec::new();
//! list.decode_all(&mut docs)?;
//! assert_eq!(docs, [3, 4, 7, 12]);
//! # Ok::<(), tandem_papers::codec::CodecError>(())
//! ```

mod column;
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
#[cfg(test)]
mod tests;
mod unary;
mod words;

pub use column::Column;
pub use error::CodecError;
#[cfg(feature = "gpu")]
pub(crate) use packed::packed_words;
#[cfg(feature = "gpu")]
pub(crate) use patched::{decode_new_pfd, encode_new_pfd};
pub use pfor::Pfor;
pub use pfor_delta::PForDelta;
use reader::check_block;
pub use reader::{Codec, ListReader, MAX_BLOCK_LEN};
pub use registry::all_codecs;
pub use rice::Rice;
