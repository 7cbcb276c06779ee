/// The consecutive documents of one batch in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// The batch's position in the collection.
    pub(super) number: u64,
    /// Digest that tells whether the batch has changed.
    pub(super) digest: u64,
    /// Bytes of the collection in the batch.
    pub(super) text_bytes: u64,
    pub(super) skipped_files: u64,
    /// The first document's number in the run.
    pub(super) first_doc: u32,
    pub(super) num_docs: u32,
    /// Encoded [`SegmentDocuments`](crate::indexing::SegmentDocuments), or empty while they are on disk.
    pub(super) documents: Vec<u8>,
}
