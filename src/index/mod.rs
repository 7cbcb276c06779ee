//! The inverted index: block-compressed posting lists that CPU and GPU read as the same bytes.
//!
//! A **posting** is a document and how often the term occurs in it. A term's postings form a list,
//! sorted by [`DocId`](crate::ids::DocId), cut into **blocks** of [`BLOCK_LEN`]. What a search must know of a block before
//! it decodes it stands in a [`BlockHeader`], in an array of its own, so that skipping touches headers alone:
//!
//! ```text
//! terms     | apple          | pear | ...     24 bytes each: where its headers and its payload begin
//!             |                                16 bytes each: last document, offset, widths, best impact
//! headers   | block | block | tail | ...
//!             |       |       |
//! payload   |gaps|tfs|gaps|tfs|gaps|tfs|       bits
//! ```
//!
//! A full block is packed in the four-lane vertical layout of SIMD-BP128 (value *i* in lane *i* mod 4), which
//! AVX2 and a GPU warp both unpack with 16-byte loads; the last, partial block of a list (its **tail**) is packed
//! horizontally, so that a list of one posting costs two words and not thirty-two bytes a bit.

mod bm25;
mod builder;
mod check;
pub mod codec;
mod encode;
mod error;
pub mod exchange;
mod file;
mod invert;
mod layout;
mod list;
mod probe;
mod writer;

pub use bm25::{Bm25, Idf};
pub use builder::IndexBuilder;
pub use encode::{EncodedLists, ListEncoder};
pub use error::IndexError;
pub use file::Index;
pub use invert::{BuildError, BuildOptions, BuildSummary, Progress, build_from_text};
pub use layout::{FILE_NAME, Section};
pub use list::{BlockBuffer, BlockHeader, PostingList, TermEntry};
pub use probe::Probe;
pub use writer::IndexWriter;

/// Postings in a full block.
pub const BLOCK_LEN: usize = 128;
