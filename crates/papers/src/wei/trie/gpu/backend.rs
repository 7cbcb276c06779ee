//! The interface of a GPU indexer to its device, with the structures of `kernels/wei/wei.cuh`.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use tandem_engine::search::device::GpuError;

use crate::wei::trie::dictionary::{Dictionary, Term};
use crate::wei::trie::node::DEGREE;
use crate::wei::trie::slots::NUM_SLOTS;

/// Readable bytes behind the input: a window of a stream.
pub(crate) const WINDOW_BYTES: usize = 512;
pub(crate) const STREAM_ALIGNMENT: usize = 16;

/// A posting. Postings are in the order in which they began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Posting {
    pub(crate) term: u32,
    pub(crate) doc: u32,
    pub(crate) freq: u32,
}

/// A slot with terms in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Task {
    pub(crate) slot: u32,
    /// Place of its first posting. There is room for one posting per token.
    pub(crate) first_posting: u32,
    pub(crate) bytes: u32,
    /// Place of its stream in the input, in [`STREAM_ALIGNMENT`].
    pub(crate) start: u32,
}

/// Numbers of used nodes, bytes of strings, and terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Counters {
    pub(crate) nodes: u32,
    pub(crate) strings: u32,
    pub(crate) terms: u32,
    pub(crate) next_task: u32,
}

/// Input of a run: consecutive streams, and their slots.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub(crate) bytes: Vec<u8>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) num_tokens: usize,
    pub(crate) first_doc: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Output {
    /// One posting per token, of which the first `task_postings` of each task are valid.
    pub(crate) postings: Vec<Posting>,
    pub(crate) task_postings: Vec<u32>,
    pub(crate) terms: Vec<Term>,
    pub(crate) strings: Vec<u8>,
}

/// A device with trees in its memory.
pub(crate) trait Backend: fmt::Debug + Send {
    /// Copies a run's input to the device, and makes room for its largest possible output.
    fn prepare(&mut self, input: &Input) -> Result<(), GpuError>;

    /// Indexes the input and waits for the end.
    fn index(&mut self) -> Result<(), GpuError>;

    fn collect(&mut self, output: &mut Output) -> Result<(), GpuError>;

    /// Fetches the trees. `terms` and `strings` are the output of all runs.
    fn dictionary(&mut self, terms: Vec<Term>, strings: Vec<u8>) -> Result<Dictionary, GpuError>;
}

/// Returns the maximum numbers of nodes, bytes of strings and terms after an input. Nodes other than roots have at
/// least fifteen keys, so that terms bound nodes.
pub(crate) fn worst_case(before: Counters, input: &Input) -> [u64; 3] {
    let terms = u64::from(before.terms) + input.num_tokens as u64;
    let strings = u64::from(before.strings) + input.bytes.len() as u64;
    [terms / (DEGREE as u64 - 1) + NUM_SLOTS as u64, strings, terms]
}
