//! What kernels are passed: the structures of `kernels/tandem.cuh` and `kernels/transcode.cu`, field by field.
//!
//! [`Kernels::load`](super::kernels::Kernels::load) compares their sizes with those that the kernels were compiled
//! with. It can't see the order of fields, nor what flags mean.

use bytemuck::{Pod, Zeroable};
use cudarc::driver::DeviceRepr;

use super::accepted::MAX_TERMS;

/// Results that a warp sorts at most: those of queries that ask for more are sorted by thread blocks.
pub(super) const WARP_K: usize = 128;
/// Terms of nearly every query: parameters of a kernel for no more than these arrive sooner.
pub(super) const FEW_TERMS: usize = 8;
/// Bins of the histogram of candidates' scores.
pub(super) const SCORE_BINS: usize = 512;
/// Words of the directory for each block of a long list.
pub(super) const DIRECTORY_STRIDE: u64 = 18;
/// The shift of a short list, of fewer postings than a block has: it has no directory.
pub(super) const NO_DIRECTORY: u32 = 32;
/// A bound may be exceeded by one in so many for roundings: tandem.cuh says why.
pub(super) const SLACK_PARTS: u32 = 65536;
/// In place of a number of results: there were more candidates than there was room for.
pub(super) const TOO_MANY: u64 = u64::MAX - 1;
/// In place of a number of results: no kernel has written one.
pub(super) const UNWRITTEN: u64 = u64::MAX;

/// Sections of the index file: `FilePart` in transcode.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct PartArgument {
    pub(super) lists: u64,
    pub(super) last_docs: u64,
    pub(super) entries: u64,
    pub(super) payload: u64,
    pub(super) slots: u64,
    pub(super) short_lists: u64,
    pub(super) norms: u64,
    pub(super) num_lists: u32,
    pub(super) num_blocks: u32,
    pub(super) first_block: u32,
    pub(super) num_terms: u32,
    pub(super) num_long_blocks: u32,
    pub(super) num_docs: u32,
}

/// All lists as searches read them: `Lists`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct ListsArgument {
    pub(super) blocks: u64,
    pub(super) rows: u64,
    pub(super) directory: u64,
    pub(super) norms: u64,
    pub(super) host_rows: u64,
    pub(super) num_docs: u32,
    pub(super) num_resident: u32,
}

/// The header of a block of a list: `Block`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct BlockArgument {
    pub(super) row: u32,
    pub(super) first_doc: u32,
    pub(super) packing: u32,
    pub(super) max_impact: f32,
}

/// One term of a query: `QueryTerm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct TermEntry {
    pub(super) first_block: u32,
    pub(super) doc_freq: u32,
    pub(super) shift: u32,
    pub(super) weight: f32,
    pub(super) rest: f32,
}

/// A query: `Query`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct QueryEntry {
    pub(super) first_term: u32,
    pub(super) num_terms: u32,
    pub(super) k: u32,
    pub(super) seed: f32,
    pub(super) bins_per_score: f32,
    pub(super) bins_per_bound: f32,
}

/// Warps that go through one list: `Driver`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub(super) struct DriverEntry {
    pub(super) query: u32,
    pub(super) term: u32,
    pub(super) first_item: u32,
    pub(super) blocks_an_item: u32,
}

/// What is done for a lone query by one launch: `LoneStage`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct LoneStage {
    pub(super) num_drivers: u32,
    pub(super) num_items: u32,
    pub(super) needs_all: u32,
    pub(super) capacity: u32,
    pub(super) is_last: u32,
}

/// A query of up to `TERMS` terms that is passed by value: `LoneQuery`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct LoneArgument<const TERMS: usize = { MAX_TERMS }> {
    pub(super) query: QueryEntry,
    pub(super) stage: LoneStage,
    pub(super) terms: [TermEntry; TERMS],
    pub(super) reserved: u32,
    pub(super) drivers: [DriverEntry; TERMS],
}

impl<const TERMS: usize> Default for LoneArgument<TERMS> {
    fn default() -> Self {
        Self {
            query: QueryEntry::default(),
            stage: LoneStage::default(),
            terms: [TermEntry::default(); TERMS],
            reserved: 0,
            drivers: [DriverEntry::default(); TERMS],
        }
    }
}

/// No stage comes before.
pub(super) const NO_GATE: u32 = u32::MAX;
/// Flags of [`BatchEntry`]: documents with all terms are looked for; no other stage follows; `merge_topk` sorts; no tile is
/// passed over.
pub(super) const NEEDS_ALL: u32 = 1;
pub(super) const IS_LAST: u32 = 2;
pub(super) const SORTS_LATER: u32 = 4;
pub(super) const SCORES_ALL: u32 = 8;

/// A query of a batch, or a stage of one: `BatchQuery`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub(super) struct BatchEntry {
    pub(super) query: QueryEntry,
    pub(super) num_items: u32,
    pub(super) result: u32,
    pub(super) candidates: u32,
    pub(super) capacity: u32,
    pub(super) gate: u32,
    pub(super) flags: u32,
}

/// A query of a batch that goes by tiles: `TileQuery`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct TileEntry {
    pub(super) query: u32,
    pub(super) first_item: u32,
    pub(super) sample_stride: u32,
}

/// One launch for a batch: `Batch`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct BatchArgument {
    pub(super) input: u64,
    pub(super) queries_at: u32,
    pub(super) terms_at: u32,
    pub(super) drivers_at: u32,
    pub(super) hints_at: u32,
    pub(super) tiles_at: u32,
    pub(super) later_at: u32,
    pub(super) num_drivers: u32,
    pub(super) num_tiled: u32,
    pub(super) num_items: u32,
    pub(super) num_queries: u32,
    pub(super) end_at: u32,
    pub(super) is_first: u32,
    pub(super) num_first_items: u32,
    pub(super) item_rows: u32,
}

/// Words of a batch's input that may come as a kernel parameter.
pub(super) const SMALL_INPUT_WORDS: usize = 960;

/// The input of a small batch: `SmallInput`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(super) struct SmallInput {
    pub(super) words: [u32; SMALL_INPUT_WORDS],
}

/// What the launches of a batch tell each other: `Run`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct RunArgument {
    started_ns: u64,
    finished: u64,
}

/// What the kernels of one query tell each other: `State`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct StateArgument {
    threshold: u64,
    progress: u64,
    started_ns: u64,
    done: u64,
    bins: [u32; SCORE_BINS],
}

// SAFETY: plain words in C layout, of the sizes that the kernels have; that holds for each of the following.
unsafe impl DeviceRepr for PartArgument {}
// SAFETY: as above.
unsafe impl DeviceRepr for ListsArgument {}
// SAFETY: as above.
unsafe impl DeviceRepr for BlockArgument {}
// SAFETY: as above.
unsafe impl<const TERMS: usize> DeviceRepr for LoneArgument<TERMS> {}
// SAFETY: as above.
unsafe impl DeviceRepr for BatchArgument {}
// SAFETY: as above.
unsafe impl DeviceRepr for SmallInput {}
// SAFETY: as above.
unsafe impl DeviceRepr for RunArgument {}
// SAFETY: as above.
unsafe impl DeviceRepr for StateArgument {}
// SAFETY: zeros are a state: that of a query that has not begun.
unsafe impl cudarc::driver::ValidAsZeroBits for StateArgument {}
// SAFETY: as above: a run that has not begun.
unsafe impl cudarc::driver::ValidAsZeroBits for RunArgument {}
