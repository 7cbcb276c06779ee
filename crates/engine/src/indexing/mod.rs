//! Making indexes of anything that [`corpus`](crate::corpus) reads: see [`Index`](crate::index::Index).
//!
//! This room connects both: `corpus` knows no index, and `index` knows no text.
//!
//! ```text
//! corpus: text ────────────────build_from_text──┐
//! corpus: CIFF, vectors ───────exchange::import─┤
//! a size and a seed ───────────synth────────────┼──▶ ListEncoder ──▶ IndexWriter ──▶ index
//! an index ──reorder, quantise──────────────────┘                                      │
//!                                                 CIFF ◀──exchange::export─────────────┘
//! ```
//!
//! Every method gives the same file, byte for byte, for any number of threads.

mod budget;
mod build;
mod documents;
mod error;
pub mod exchange;
mod indexer;
mod invert;
pub mod journal;
pub mod postings;
mod progress;
mod quantise;
pub mod ranges;
pub mod reorder;
mod segment;
pub mod synth;

pub use build::{build_by, build_from_text};
pub use error::BuildError;
pub use indexer::{BuildOptions, BuildSummary, Indexer, Inverted, Stages};
pub use progress::{MemoryNeed, Progress};
pub use quantise::quantise;
pub use segment::SegmentDocuments;
