//! The trait of indexers of some slots.

use std::fmt;

use tandem_engine::search::device::GpuError;

use super::buffer::Buffer;
use super::dictionary::Dictionary;
use super::sections::Sections;

/// Builds the trees and lists of its slots. Every run calls [`prepare`](Self::prepare), [`index`](Self::index) and
/// [`collect`](Self::collect) in this order.
pub(crate) trait SlotIndexer: fmt::Debug + Send {
    /// Copies the slots' streams to the indexer. `first_doc` is the collection's number of the run's first document.
    /// Fails if a GPU fails.
    fn prepare(&mut self, buffer: &Buffer, slots: &[u16], first_doc: u32) -> Result<(), GpuError>;

    /// Adds the streams' terms to the trees, and their documents to lists.
    fn index(&mut self, buffer: &Buffer, slots: &[u16]) -> Result<(), GpuError>;

    /// Encodes the run's lists, and keeps its new terms.
    fn collect(&mut self, sections: &mut Sections) -> Result<(), GpuError>;

    fn finish(&mut self) -> Result<Dictionary, GpuError>;
}
