//! What a GPU indexer asks of its device; the structures that both sides know are those of `kernels/wei/trie.cuh`.

use std::fmt;

use bytemuck::{Pod, Zeroable};

use crate::wei::trie::dictionary::{Dictionary, Term};
use crate::wei::trie::node::DEGREE;
use crate::wei::trie::slots::NUM_SLOTS;
use tandem_core::search::device::GpuError;

/// Bytes behind the input that may be read: a window of a stream.
pub(crate) const WINDOW_BYTES: usize = 512;
/// A stream begins at a multiple of this.
pub(crate) const STREAM_ALIGNMENT: usize = 16;

/// A posting, in the order in which they began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Posting {
    pub(crate) term: u32,
    /// In the collection.
    pub(crate) doc: u32,
    pub(crate) freq: u32,
}

/// A slot that has terms in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Task {
    pub(crate) slot: u32,
    /// There is room for a posting a token.
    pub(crate) first_posting: u32,
    /// Bytes of its stream.
    pub(crate) bytes: u32,
    /// Where its stream begins in the input, in [`STREAM_ALIGNMENT`].
    pub(crate) start: u32,
}

/// What has been given out: nodes, bytes of strings, terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Counters {
    pub(crate) nodes: u32,
    pub(crate) strings: u32,
    pub(crate) terms: u32,
    pub(crate) next_task: u32,
}

/// A run's input: streams one after another, and the slots.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub(crate) bytes: Vec<u8>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) num_tokens: usize,
    /// The number of the run's first document.
    pub(crate) first_doc: u32,
}

/// What a run made.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// As many as there were tokens; of each task the first `task_postings` are postings.
    pub(crate) postings: Vec<Posting>,
    pub(crate) task_postings: Vec<u32>,
    /// Terms from the one after the last run's on.
    pub(crate) terms: Vec<Term>,
    /// Strings likewise.
    pub(crate) strings: Vec<u8>,
}

/// A device with trees in its memory.
pub(crate) trait Backend: fmt::Debug + Send {
    /// Copies a run's input to the device, and makes room for what it can add at most.
    fn prepare(&mut self, input: &Input) -> Result<(), GpuError>;

    /// Indexes it, and waits until that is done.
    fn index(&mut self) -> Result<(), GpuError>;

    /// Fetches what the run made.
    fn collect(&mut self, output: &mut Output) -> Result<(), GpuError>;

    /// Fetches the trees. `terms` and `strings` are what all runs made.
    fn dictionary(&mut self, terms: Vec<Term>, strings: Vec<u8>) -> Result<Dictionary, GpuError>;
}

/// What there may be after an input, where `before` was there: nodes, bytes of strings, terms. A node but a root has at
/// least fifteen keys, so that terms bound nodes, whatever is split on the way.
pub(crate) fn worst_case(before: Counters, input: &Input) -> [u64; 3] {
    let terms = u64::from(before.terms) + input.num_tokens as u64;
    let strings = u64::from(before.strings) + input.bytes.len() as u64;
    [terms / (DEGREE as u64 - 1) + NUM_SLOTS as u64, strings, terms]
}
