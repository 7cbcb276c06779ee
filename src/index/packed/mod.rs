//! How postings are packed: gaps between documents, and frequencies.
//!
//! Documents ascend strictly, so each is stored as its gap to the one before, minus one; frequencies are at least 1 and
//! stored minus one. A [full block](FullBlock) of 128 postings is packed in vertical lanes for SIMD units and
//! GPU warps; fewer are a [run](Run), one stream of bits. [`Code`] says how each is packed, in six bits.

mod bits;
mod full;
mod patch;
mod run;

pub(super) use bits::{BitWriter, read_bits};
pub(super) use full::{FullBlock, ROW_WORDS, doc_rows, encode as encode_full};
pub(super) use patch::Code;
pub(super) use run::{PackedRun, Run};
