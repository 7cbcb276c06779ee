//! The inverted index: block-compressed posting lists, used as they lie on disk.
//!
//! A **posting** is a document and the frequency of a term in it. A term's postings form a list, sorted by
//! [`DocId`](tandem_base::base::ids::DocId) and cut into **blocks** of [`BLOCK_LEN`]. Metadata of blocks is stored in
//! separate arrays, so that skipping reads no packed bits. Most terms are rare, and most postings are in long lists, so
//! there are three kinds of lists:
//!
//! ```text
//! slots       | apple | apply | pear |           4 bytes per term, which are the list of one document themselves,
//!                 |       |  (17)               point to a short list,
//! short lists     |   |len, codes, bound|gaps|tfs|          bits
//!                 v                             or to a long one: 40 bytes, with its bounds,
//! long lists  | apple |
//!                 |
//! last docs   |  407  |  911  |  998  |          4 bytes per block: what is searched
//! blocks      |   *   |   *   |   *   |          8 bytes per block: where its bits are, how they are packed, its bound
//!                 |
//! payload     |gaps|tfs|gaps|tfs|gaps|tfs|probe form|
//! ```
//!
//! A full block is packed in groups of eight values, each as narrow as its largest value allows, and decoded by vector
//! units without a branch. A block whose bitset is shorter is stored as a bitset. Partial blocks are packed value after
//! value, so that a list of two postings takes some forty bits. The densest lists also have a [probe form](Probe).
//! `layout.rs` describes the file byte by byte. GPUs receive [its sections](ListSections) unchanged.

mod best;
mod bm25;
mod check;
mod column;
mod device;
mod dictionary;
mod directory;
mod encode;
mod error;
mod file;
mod layout;
mod list;
mod packed;
mod pieces;
mod probe;
mod sections;
mod sizes;
mod writer;

pub use bm25::{Bm25, Idf, MAX_IMPACT};
pub use device::ListSections;
#[cfg(test)]
pub(crate) use device::tests::OwnedSections;
pub use directory::{BlockEntry, LongList};
pub(crate) use encode::BlockPostings;
pub use encode::{EncodedLists, ListEncoder};
pub use error::IndexError;
pub use file::Index;
pub use layout::{FILE_NAME, Section};
pub use list::{BlockBuffer, ListBits, PostingList};
pub use packed::gaps::sum_gaps;
pub use probe::Probe;
pub use sizes::{PartSize, index_sizes};
pub use writer::{DocumentSource, IndexBuilder, IndexFolder, IndexWriter, VisitDocument};

pub use tandem_base::base::ids::BLOCK_LEN;
