//! Integer codecs.
//!
//! [`block`] packs the blocks of the index.

mod block;

pub(super) use block::{pack_docs, pack_freqs, packed_words, unpack_docs, unpack_freqs};
