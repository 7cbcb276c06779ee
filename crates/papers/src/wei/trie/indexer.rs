//! An indexer: some slots, and whoever builds their trees and lists, run after run.

use std::fmt;

use super::buffer::Buffer;
use super::dictionary::Dictionary;
use super::sections::Sections;
use tandem_core::search::device::GpuError;

/// Builds the trees and lists of its slots. Every run goes through [`prepare`](Self::prepare), [`index`](Self::index) and
/// [`collect`](Self::collect), in this order.
pub(crate) trait SlotIndexer: fmt::Debug + Send {
    /// Takes the slots' streams to where they are indexed. The run's documents have `first_doc` added to their numbers in the
    /// collection.
    ///
    /// # Errors
    /// If a GPU fails: then this indexer does no more.
    fn prepare(&mut self, buffer: &Buffer, slots: &[u16], first_doc: u32) -> Result<(), GpuError>;

    /// Puts the streams' terms into the trees, and their documents into lists.
    fn index(&mut self, buffer: &Buffer, slots: &[u16]) -> Result<(), GpuError>;

    /// Encodes the run's lists, and keeps what new terms the run had.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare); `sections` are of no use then.
    fn collect(&mut self, sections: &mut Sections) -> Result<(), GpuError>;

    /// The dictionary as of the last run that was collected, without asking a GPU.
    fn salvage(&mut self) -> Dictionary;

    /// The dictionary, at the end.
    fn finish(&mut self) -> Result<Dictionary, GpuError>;
}
