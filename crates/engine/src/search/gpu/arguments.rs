//! Arguments of kernels: the structures of `kernels/tandem.cuh` and `kernels/transcode.cu`, field by field.
//!
//! [`Kernels::load`](super::kernels::Kernels::load) compares their sizes and the offsets of all fields with those of the
//! compiled kernels. It cannot check the types of fields or the meaning of flags.

use bytemuck::{Pod, Zeroable};
use cudarc::driver::DeviceRepr;

use crate::index::LongList;
use crate::search::device::offsets;

/// The most terms of a query, `MAX_TERMS` in tandem.cuh.
pub const MAX_TERMS: usize = 64;
/// The largest `k`, `MAX_K` in tandem.cuh.
pub const MAX_K: usize = 1000;
/// The most results that a warp sorts. Thread blocks sort those of larger queries.
pub(crate) const WARP_K: usize = 128;
/// The terms of nearly every query. A kernel with parameters for so few terms starts sooner.
pub(crate) const FEW_TERMS: usize = 8;
pub(crate) const SCORE_BINS: usize = 512;
/// Directory entries per block of a long list, unless a budget leaves room for fewer.
pub(crate) const DIRECTORY_STRIDE: u32 = 10;
pub(crate) const SLACK_PARTS: u32 = 65536;
/// In place of a number of results: the candidates exceeded their capacity.
pub(crate) const TOO_MANY: u64 = u64::MAX - 1;
/// In place of a number of results: not written yet.
pub(crate) const UNWRITTEN: u64 = u64::MAX;

/// A part of the index file, `FilePart` in transcode.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct PartArgument {
    pub(crate) lists: u64,
    pub(crate) last_docs: u64,
    pub(crate) entries: u64,
    pub(crate) payload: u64,
    pub(crate) slots: u64,
    pub(crate) short_lists: u64,
    pub(crate) norms: u64,
    pub(crate) num_lists: u32,
    pub(crate) num_blocks: u32,
    pub(crate) first_block: u32,
    pub(crate) num_terms: u32,
    pub(crate) num_long_blocks: u32,
    pub(crate) num_docs: u32,
    pub(crate) directory_stride: u32,
}

/// All lists in the searched form, `Lists`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ListsArgument {
    pub(crate) blocks: u64,
    pub(crate) rows: u64,
    pub(crate) directory: u64,
    pub(crate) norms: u64,
    pub(crate) host_rows: u64,
    pub(crate) num_docs: u32,
    pub(crate) num_resident: u32,
    pub(crate) directory_stride: u32,
}

/// The header of a block, `Block`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockArgument {
    pub(crate) row: u32,
    pub(crate) first_doc: u32,
    pub(crate) packing: u32,
    pub(crate) max_impact: f32,
}

/// An interval of documents in the directory of a long list, `DirectoryEntry`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C, align(8))]
pub(crate) struct DirectoryEntry {
    /// Postings before the interval.
    pub(crate) before: u32,
    /// The 32 equal parts of the interval that have postings, one bit each.
    pub(crate) parts: u32,
}

/// One term of a query, `QueryTerm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TermEntry {
    pub(crate) first_block: u32,
    pub(crate) doc_freq: u32,
    /// Directory entries per document in units of 2^-32, or 0.
    pub(crate) scale: u32,
    pub(crate) weight: f32,
    pub(crate) rest: f32,
}

/// A query, `Query`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct QueryEntry {
    pub(crate) first_term: u32,
    pub(crate) num_terms: u32,
    pub(crate) k: u32,
    pub(crate) seed: f32,
    pub(crate) bins_per_score: f32,
    pub(crate) bins_per_bound: f32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct DriverEntry {
    pub(crate) query: u32,
    pub(crate) term: u32,
    pub(crate) first_item: u32,
    pub(crate) blocks_an_item: u32,
}

/// One launch of a single query, `LoneStage`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct LoneStage {
    pub(crate) num_drivers: u32,
    pub(crate) num_items: u32,
    pub(crate) needs_all: u32,
    pub(crate) capacity: u32,
    pub(crate) is_last: u32,
}

/// A query of up to `TERMS` terms that is passed by value, `LoneQuery`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct LoneArgument<const TERMS: usize = { MAX_TERMS }> {
    pub(crate) query: QueryEntry,
    pub(crate) stage: LoneStage,
    pub(crate) terms: [TermEntry; TERMS],
    pub(crate) reserved: u32,
    pub(crate) drivers: [DriverEntry; TERMS],
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

/// A [`BatchEntry`] without an earlier stage.
pub(crate) const NO_GATE: u32 = u32::MAX;
/// Flag of [`BatchEntry`]: documents need all terms.
pub(crate) const NEEDS_ALL: u32 = 1;
/// Flag of [`BatchEntry`]: no other stage follows.
pub(crate) const IS_LAST: u32 = 2;
/// Flag of [`BatchEntry`]: `merge_topk` sorts.
pub(crate) const SORTS_LATER: u32 = 4;
/// Flag of [`BatchEntry`]: no tile is skipped.
pub(crate) const SCORES_ALL: u32 = 8;

/// A query of a batch or one stage of it, `BatchQuery`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct BatchEntry {
    pub(crate) query: QueryEntry,
    pub(crate) num_items: u32,
    pub(crate) result: u32,
    pub(crate) candidates: u32,
    pub(crate) capacity: u32,
    pub(crate) gate: u32,
    pub(crate) flags: u32,
}

/// A query of a batch that is scored by tiles, `TileQuery`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TileEntry {
    pub(crate) query: u32,
    pub(crate) sample_stride: u32,
}

/// One launch for a batch, `Batch`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct BatchArgument {
    pub(crate) input: u64,
    pub(crate) queries_at: u32,
    pub(crate) terms_at: u32,
    pub(crate) drivers_at: u32,
    pub(crate) hints_at: u32,
    pub(crate) tiles_at: u32,
    pub(crate) later_at: u32,
    pub(crate) num_drivers: u32,
    pub(crate) num_tiled: u32,
    pub(crate) num_items: u32,
    pub(crate) num_queries: u32,
    pub(crate) end_at: u32,
    pub(crate) is_first: u32,
    pub(crate) num_first_items: u32,
    pub(crate) item_rows: u32,
    pub(crate) tiles_a_block: u32,
    pub(crate) num_places: u32,
    pub(crate) taken_before: u32,
}

/// The most input words of a batch that is passed as a kernel parameter.
pub(crate) const SMALL_INPUT_WORDS: usize = 960;

/// The input of a small batch, `SmallInput`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(crate) struct SmallInput {
    pub(crate) words: [u32; SMALL_INPUT_WORDS],
}

/// State shared by the launches of a batch, `Run`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct RunArgument {
    started_ns: u64,
    finished: u64,
    taken: u32,
}

/// State shared by the kernels of a query, `State`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct StateArgument {
    threshold: u64,
    progress: u64,
    started_ns: u64,
    done: u64,
    is_raised: u32,
    reserved: [u32; 3],
    bins: [u32; SCORE_BINS],
}

/// Offsets of all fields, `tandem_offsets` in tandem.cuh.
pub(crate) fn field_offsets() -> Vec<usize> {
    let lone_query = offsets!(LoneArgument: query, stage, terms, reserved, drivers);
    let short_lone_query = offsets!(LoneArgument<FEW_TERMS>: query, stage, terms, reserved, drivers);
    [
        offsets!(ListsArgument: blocks, rows, directory, norms, host_rows, num_docs, num_resident, directory_stride),
        offsets!(BlockArgument: row, first_doc, packing, max_impact),
        offsets!(DirectoryEntry: before, parts),
        offsets!(TermEntry: first_block, doc_freq, scale, weight, rest),
        offsets!(QueryEntry: first_term, num_terms, k, seed, bins_per_score, bins_per_bound),
        offsets!(DriverEntry: query, term, first_item, blocks_an_item),
        offsets!(LoneStage: num_drivers, num_items, needs_all, capacity, is_last),
        lone_query,
        short_lone_query,
        offsets!(BatchEntry: query, num_items, result, candidates, capacity, gate, flags),
        offsets!(TileEntry: query, sample_stride),
        offsets!(BatchArgument: input, queries_at, terms_at, drivers_at, hints_at, tiles_at, later_at),
        offsets!(BatchArgument: num_drivers, num_tiled, num_items, num_queries, end_at, is_first),
        offsets!(BatchArgument: num_first_items, item_rows, tiles_a_block, num_places, taken_before),
        offsets!(RunArgument: started_ns, finished, taken),
        offsets!(StateArgument: threshold, progress, started_ns, done, is_raised, bins),
    ]
    .concat()
}

/// Offsets of all fields, `transcode_offsets` in tandem.cu.
pub(crate) fn transcode_field_offsets() -> Vec<usize> {
    [
        offsets!(PartArgument: lists, last_docs, entries, payload, slots, short_lists, norms),
        offsets!(PartArgument: num_lists, num_blocks, first_block, num_terms, num_long_blocks, num_docs,
            directory_stride),
        offsets!(LongList: payload_word, first_block, doc_freq, max_impact, kth_impacts, probe_row, rows),
    ]
    .concat()
}

/// Passes plain words in C layout, with the sizes of the kernels' types, to kernels.
macro_rules! device_repr {
    ($($t:ty),*) => {
        // SAFETY: the types below meet this condition.
        $(unsafe impl DeviceRepr for $t {})*
    };
}
device_repr!(
    PartArgument,
    ListsArgument,
    BlockArgument,
    DirectoryEntry,
    BatchArgument,
    SmallInput,
    RunArgument,
    StateArgument
);

// SAFETY: it consists of plain words in C layout, with the size of the kernels' type.
unsafe impl<const TERMS: usize> DeviceRepr for LoneArgument<TERMS> {}
// SAFETY: zeros are the entry of an interval without postings before or in it.
unsafe impl cudarc::driver::ValidAsZeroBits for DirectoryEntry {}
// SAFETY: zeros are the state of a query that has not begun.
unsafe impl cudarc::driver::ValidAsZeroBits for StateArgument {}
// SAFETY: zeros are the state of a batch that has not begun.
unsafe impl cudarc::driver::ValidAsZeroBits for RunArgument {}
