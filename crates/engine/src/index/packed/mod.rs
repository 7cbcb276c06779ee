//! Packing of postings: gaps between documents, and frequencies.
//!
//! Documents ascend strictly, so each is stored as its gap to the previous one, minus one. Frequencies are at least 1
//! and stored minus one. A [full block](full) of 128 postings is two columns of narrow [groups](column), which vector
//! units decode without a branch. Fewer postings are a [run], one compact stream of bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
pub(crate) mod bits;
pub(crate) mod column;
pub(crate) mod full;
pub(crate) mod gaps;
pub(crate) mod patch;
pub(crate) mod run;

/// Bytes after the last block in a file. Wide loads stay inside them, since no decoder reads further ahead.
pub(crate) const SLACK_BYTES: usize = 448;
#[cfg(target_arch = "x86_64")]
const _: () = assert!(SLACK_BYTES >= avx2::READ_AHEAD && SLACK_BYTES.is_multiple_of(16));
