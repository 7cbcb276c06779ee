//! Batches in a run.

use crate::corpus::Skipped;

/// Where one batch of the collection went: consecutive documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// The batch's place in the collection.
    pub(super) number: u64,
    /// Says whether the batch is still the same.
    pub(super) digest: u64,
    /// Bytes of the collection that it stands for.
    pub(super) text_bytes: u64,
    pub(super) skipped: Skipped,
    /// Its first document's number in the run.
    pub(super) first_doc: u32,
    pub(super) num_docs: u32,
    /// [`SegmentDocuments`](crate::indexing::SegmentDocuments), encoded; empty while they are on disk.
    pub(super) documents: Vec<u8>,
}
