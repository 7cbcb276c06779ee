//! An indexer: some slots, and whoever builds their trees and lists, run after run.

use std::fmt;

use super::buffer::Buffer;
use super::dictionary::{Dictionary, Term};
use super::sections::Sections;
use super::slots::NUM_SLOTS;
use super::stream::Stream;
use crate::gpu::GpuError;

/// What a slot took in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotWork {
    /// The slot.
    pub slot: u16,
    /// Its tokens.
    pub tokens: u32,
    /// Bytes of its stream.
    pub stream_bytes: u64,
    /// Terms of its tree after the run, which say how deep it is.
    pub terms: u32,
    /// Time of the thread, or of the GPU's warp, that indexed it.
    pub ns: u64,
}

impl SlotWork {
    /// What is known of it before it is indexed.
    pub(super) fn of(slot: u16, stream: &Stream) -> Self {
        let (tokens, stream_bytes) = (stream.tokens(), stream.bytes().len() as u64);
        Self { slot, tokens, stream_bytes, ..Self::default() }
    }
}

/// How many terms each slot's tree has.
#[derive(Debug)]
pub(super) struct TermCounts {
    counts: Vec<u32>,
    /// Terms that are counted.
    counted: usize,
}

impl Default for TermCounts {
    fn default() -> Self {
        Self { counts: vec![0; NUM_SLOTS], counted: 0 }
    }
}

impl TermCounts {
    /// Counts those of `terms` that have come since.
    pub(super) fn update(&mut self, terms: &[Term]) {
        for term in &terms[self.counted..] {
            self.counts[term.slot as usize] += 1;
        }
        self.counted = terms.len();
    }

    pub(super) fn of(&self, slot: u16) -> u32 {
        self.counts[usize::from(slot)]
    }
}

/// Builds the trees and lists of its slots. Every run goes through [`prepare`](Self::prepare), [`index`](Self::index) and
/// [`collect`](Self::collect), in this order.
pub(super) trait SlotIndexer: fmt::Debug + Send {
    /// Takes the slots' streams to where they are indexed. The run's documents have `first_doc` added to their numbers in the
    /// collection.
    ///
    /// # Errors
    /// If a GPU fails: then this indexer does no more.
    fn prepare(&mut self, buffer: &Buffer, slots: &[u16], first_doc: u32) -> Result<(), GpuError>;

    /// Puts the streams' terms into the trees, and their documents into lists.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    fn index(&mut self, buffer: &Buffer, slots: &[u16]) -> Result<(), GpuError>;

    /// Encodes the run's lists, and keeps what new terms the run had.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare); `sections` are of no use then.
    fn collect(&mut self, sections: &mut Sections) -> Result<(), GpuError>;

    /// Appends what the run's slots took: while it is not followed by another one.
    fn append_work(&self, buffer: &Buffer, work: &mut Vec<SlotWork>);

    /// The dictionary as of the last run that was collected, without asking a GPU.
    fn salvage(&mut self) -> Dictionary;

    /// The dictionary, at the end.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    fn finish(&mut self) -> Result<Dictionary, GpuError>;
}
