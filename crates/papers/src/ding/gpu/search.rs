//! Queries as in the paper: term by term, with a kernel for every step.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, PushKernelArg};
use tandem_engine::query::{Query, QueryTerm};
use tandem_engine::search::device::GpuError;
use tandem_engine::search::gpu::{MAX_TERMS, check};
use tandem_engine::search::{ExecError, Hit, TopK};
use tandem_model::traffic::Mode;

use super::compact::{Compaction, Matches};
use super::context::{PublishedGpu, launching};
use super::heap::{Heap, Scores};
use super::kernels::{Count, PforArgument, threads_for, warps_for};
use super::lists::{HostLists, List};
use super::merge_find::{DeviceList, MergeFinder};
use super::plan::{Decoded, Places, Plan};
use super::stages::{Stage, StageClock};
use crate::codec::PForDelta;

/// Levels of recursion of Parallel Merge Find: "three levels appear to perform best" (section 7.3).
const FIND_LEVELS: u32 = 3;

/// A term's list, and its place on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand<'l> {
    list: &'l List,
    places: Places,
    weight: f32,
}

impl<'l> Operand<'l> {
    fn docs(&self, output: Option<u64>) -> Decoded<'l> {
        Decoded { tree: &self.list.docs, places: self.places, output }
    }

    fn freqs(&self, output: Option<u64>) -> Decoded<'l> {
        Decoded { tree: &self.list.freqs, places: self.places, output }
    }
}

/// All lists of some terms in device memory, and their searcher.
#[derive(Debug)]
pub(crate) struct PublishedSearch {
    gpu: Arc<PublishedGpu>,
    lists: Arc<HostLists>,
    d_words: CudaSlice<u32>,
    buffers: Buffers,
    /// Decoded exceptions of a query's lists; grows with the largest query.
    d_scratch: CudaSlice<u32>,
    clock: StageClock,
}

#[derive(Debug)]
struct Buffers {
    d_norms: CudaSlice<f32>,
    d_accumulators: CudaSlice<f32>,
    d_arguments: CudaSlice<PforArgument>,
    d_docs: CudaSlice<u32>,
    d_freqs: CudaSlice<u32>,
    /// Block of the next list for each candidate.
    d_block_of: CudaSlice<u32>,
    /// Place of each candidate in that block.
    d_found: CudaSlice<u32>,
    /// Flag of each block of a list: whether it is needed.
    d_flags: CudaSlice<u32>,
    /// Rank of each needed block.
    d_slot_of: CudaSlice<u32>,
    d_needed: CudaSlice<u32>,
    d_num_needed: CudaSlice<u32>,
    /// Candidates, used in turn.
    candidates: [Matches; 2],
    finder: MergeFinder,
    compaction: Compaction,
    heap: Heap,
    keys: Vec<u64>,
}

impl Buffers {
    fn new(gpu: &PublishedGpu, norms: &[f32], longest: u32, most_blocks: u32) -> Result<Self, GpuError> {
        let num_docs = norms.len() as u32;
        let mut d_norms = gpu.zeros::<f32>(norms.len())?;
        let copied = gpu.stream.memcpy_htod(norms, &mut d_norms.slice_mut(..norms.len()));
        copied.map_err(|e| GpuError::of("copying to the device", &e))?;
        let (values, blocks) = (longest as usize, most_blocks as usize);
        let whole_blocks = blocks * super::kernels::PFOR_BLOCK_LEN;
        // Each term has two arrays, and each level has two for every array above it.
        let arrays = 2 * MAX_TERMS * ((2 << PForDelta::MAX_LEVELS) - 1);
        Ok(Self {
            d_norms,
            d_accumulators: gpu.zeros(norms.len())?,
            d_arguments: gpu.zeros(arrays)?,
            d_docs: gpu.zeros(whole_blocks)?,
            d_freqs: gpu.zeros(whole_blocks)?,
            d_block_of: gpu.zeros(values)?,
            d_found: gpu.zeros(values)?,
            d_flags: gpu.zeros(blocks)?,
            d_slot_of: gpu.zeros(blocks)?,
            d_needed: gpu.zeros(blocks)?,
            d_num_needed: gpu.zeros(1)?,
            candidates: [Matches::new(gpu, longest)?, Matches::new(gpu, longest)?],
            finder: MergeFinder::new(gpu, longest)?,
            compaction: Compaction::new(gpu, longest.max(most_blocks))?,
            heap: Heap::new(gpu, num_docs.max(longest))?,
            keys: Vec::new(),
        })
    }
}

impl PublishedSearch {
    pub(crate) fn upload(gpu: &Arc<PublishedGpu>, lists: &Arc<HostLists>) -> Result<Self, GpuError> {
        let longest = lists.iter().map(|list| list.docs.len).max().unwrap_or(0);
        let most_blocks = lists.iter().map(|list| list.docs.num_blocks()).max().unwrap_or(0);
        let num_docs = u64::from(lists.num_docs);
        let needed_bytes = lists.bytes() + 2 * Matches::bytes(longest) + 20 * u64::from(longest) + 9 * num_docs;
        gpu.device.check_room(needed_bytes)?;
        Ok(Self {
            buffers: Buffers::new(gpu, &lists.norms, longest, most_blocks)?,
            d_scratch: gpu.zeros(1)?,
            clock: StageClock::default(),
            d_words: gpu.upload(&lists.words)?,
            gpu: Arc::clone(gpu),
            lists: Arc::clone(lists),
        })
    }

    /// Finds the `k` best documents of a query. With `with_stages`, returns the microseconds of each stage on the
    /// device, in the order of [`Stage::ALL`]. Panics if a term has no list here.
    pub(crate) fn search(
        &mut self,
        query: &Query,
        mode: Mode,
        k: usize,
        with_stages: bool,
        hits: &mut Vec<Hit>,
    ) -> Result<[f64; Stage::ALL.len()], ExecError> {
        hits.clear();
        check(query, k)?;
        if query.terms.is_empty() {
            return Ok([0.0; Stage::ALL.len()]);
        }
        let lists = Arc::clone(&self.lists);
        let operands = self.operands(&lists, query)?;
        self.clock.restart(&self.gpu, with_stages)?;
        if mode != Mode::Or {
            self.intersect(&operands, k)?;
            self.buffers.heap.keys(&self.gpu, k, &mut self.buffers.keys)?;
        }
        if mode == Mode::Or || (mode == Mode::AndOr && self.buffers.keys.len() < k) {
            self.unite(&operands, k)?;
            self.buffers.heap.keys(&self.gpu, k, &mut self.buffers.keys)?;
        }
        hits.extend(self.buffers.keys.iter().map(|&key| TopK::hit(key)));
        Ok(self.clock.times_us()?)
    }

    /// Returns the query's lists with room for their decoded exceptions.
    fn operands<'l>(&mut self, lists: &'l HostLists, query: &Query) -> Result<Vec<Operand<'l>>, GpuError> {
        let of_query = || query.terms.iter().map(|term| (term, lists.list(term.term)));
        let needed: usize = of_query().map(|(_, list)| list.scratch.len()).sum();
        if needed > self.d_scratch.len() {
            // The previous query has finished, so that the memory is unused.
            self.d_scratch = self.gpu.zeros(needed)?;
        }
        let words = self.gpu.address(&self.d_words);
        let mut scratch_at = self.gpu.address(&self.d_scratch);
        let operand = |(term, list): (&QueryTerm, &'l List)| {
            // The address that the first word of all scratch memory would have.
            let places = Places { words, scratch: scratch_at.wrapping_sub(4 * list.scratch.start as u64) };
            scratch_at += 4 * list.scratch.len() as u64;
            Operand { list, places, weight: lists.bm25.weight(lists.num_docs, term.doc_freq, term.qtf) }
        };
        Ok(of_query().map(operand).collect())
    }

    /// Fills all buffers with ones, which exposes reads of unwritten memory.
    #[cfg(test)]
    pub(crate) fn poison(&mut self) -> Result<(), GpuError> {
        use super::tests::poison;
        let (gpu, buffers) = (&*self.gpu, &mut self.buffers);
        poison(gpu, &mut self.d_scratch)?;
        poison(gpu, &mut buffers.d_accumulators)?;
        for buffer in [
            &mut buffers.d_docs,
            &mut buffers.d_freqs,
            &mut buffers.d_block_of,
            &mut buffers.d_found,
            &mut buffers.d_flags,
            &mut buffers.d_slot_of,
            &mut buffers.d_needed,
            &mut buffers.d_num_needed,
        ] {
            poison(gpu, buffer)?;
        }
        for candidates in &mut buffers.candidates {
            candidates.poison(gpu)?;
        }
        buffers.finder.poison(gpu)?;
        buffers.compaction.poison(gpu)?;
        buffers.heap.poison(gpu)
    }

    /// Enqueues AND: the best `k` documents that all lists have.
    fn intersect(&mut self, operands: &[Operand<'_>], k: usize) -> Result<(), GpuError> {
        let gpu = Arc::clone(&self.gpu);
        // Decode the exceptions of all lists, and the shortest list.
        let docs = gpu.address(&self.buffers.d_docs);
        let mut decoded: Vec<Decoded<'_>> =
            operands.iter().flat_map(|operand| [operand.docs(None), operand.freqs(None)]).collect();
        decoded[0].output = Some(docs);
        decode(&gpu, &mut self.buffers.d_arguments, &decoded)?;
        self.clock.end(&gpu, Stage::Decompression)?;

        let buffers = &self.buffers;
        let norms = gpu.address(&buffers.d_norms);
        let mut count = Count::known(operands[0].list.docs.len);
        let mut scores = gpu.address(&buffers.candidates[0].d_scores);
        let first = Scoring::of(&operands[0], true);
        first.run(&gpu, docs, 0, count, norms, scores)?;
        self.clock.end(&gpu, Stage::Scoring)?;

        let mut current_docs = docs;
        for (turn, operand) in operands.iter().enumerate().skip(1) {
            let candidates = DeviceList { address: current_docs, count };
            self.decode_needed(operand, candidates)?;
            // Intersect within the blocks.
            let buffers = &mut self.buffers;
            let [block_of, slot_of, decoded, found] =
                [&buffers.d_block_of, &buffers.d_slot_of, &buffers.d_freqs, &buffers.d_found]
                    .map(|buffer| gpu.address(buffer));
            let list_len = operand.list.docs.len;
            let mut launch = gpu.stream.launch_builder(&gpu.kernels.match_in_blocks);
            launch.arg(&current_docs).arg(&block_of).arg(&count).arg(&slot_of).arg(&decoded).arg(&list_len).arg(&found);
            // SAFETY: the arguments are those of `match_in_blocks`; every candidate's block is among the decoded ones.
            unsafe { launch.launch(threads_for(count.at_most())) }.map_err(launching("match_in_blocks"))?;
            let target = &mut buffers.candidates[turn % 2];
            buffers.compaction.gather_matches(&gpu, found, count, current_docs, Some(scores), target)?;
            current_docs = gpu.address(&target.d_docs);
            scores = gpu.address(&target.d_scores);
            count = Count::counted(gpu.address(&target.d_count), count.at_most());
            let matched_places = gpu.address(&target.d_places);
            self.clock.end(&gpu, Stage::Intersection)?;

            Scoring::of(operand, false).run(&gpu, current_docs, matched_places, count, norms, scores)?;
            self.clock.end(&gpu, Stage::Scoring)?;
        }
        let heap = &mut self.buffers.heap;
        let built = heap.build(&gpu, Scores { scores, docs: current_docs, count })?;
        self.clock.end(&gpu, Stage::HeapBuilding)?;
        heap.take_best(&gpu, built, k as u32)?;
        self.clock.end(&gpu, Stage::TakingOut)
    }

    /// Enqueues the search for the blocks of a list that candidates fall into, and their decoding.
    fn decode_needed(&mut self, operand: &Operand<'_>, candidates: DeviceList) -> Result<(), GpuError> {
        let gpu = Arc::clone(&self.gpu);
        let buffers = &mut self.buffers;
        let count = candidates.count;
        let Operand { list, places, .. } = *operand;
        let tree = &list.docs;
        let num_blocks = tree.num_blocks();
        let [block_of, flags, slot_of, needed, num_needed] =
            [&buffers.d_block_of, &buffers.d_flags, &buffers.d_slot_of, &buffers.d_needed, &buffers.d_num_needed]
                .map(|buffer| gpu.address(buffer));
        // The block of a candidate is the number of bases below it, without the first block's.
        let bases = DeviceList { address: places.argument(tree, 0).bases + 4, count: Count::known(num_blocks - 1) };
        buffers.finder.find(&gpu, candidates, bases, FIND_LEVELS, false, block_of)?;
        let clear = gpu.stream.memset_zeros(&mut buffers.d_flags.slice_mut(..num_blocks as usize));
        clear.map_err(|e| GpuError::of("clearing flags", &e))?;
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.mark_blocks);
        launch.arg(&block_of).arg(&count).arg(&flags);
        // SAFETY: the arguments are those of `mark_blocks` in kernels/ding/intersect.cu; the found blocks are in the
        // list, which has no more blocks than there are flags.
        unsafe { launch.launch(threads_for(count.at_most())) }.map_err(launching("mark_blocks"))?;
        buffers.compaction.gather_blocks(&gpu, flags, num_blocks, needed, slot_of, num_needed)?;
        self.clock.end(&gpu, Stage::Intersection)?;

        // At most one block per candidate is needed.
        let argument = places.argument(tree, gpu.address(&buffers.d_freqs));
        let most_needed = num_blocks.min(count.at_most());
        let num_needed = Count::counted(num_needed, most_needed);
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.pfor_decode_needed);
        launch.arg(&argument).arg(&needed).arg(&num_needed);
        // SAFETY: the arguments are those of `pfor_decode_needed` in kernels/ding/pfor.cu; exceptions are
        // decoded, and the output has room for all blocks of the longest list.
        unsafe { launch.launch(warps_for(most_needed)) }.map_err(launching("pfor_decode_needed"))?;
        self.clock.end(&gpu, Stage::Decompression)
    }

    /// Enqueues OR: the best `k` documents that any list has.
    fn unite(&mut self, operands: &[Operand<'_>], k: usize) -> Result<(), GpuError> {
        let gpu = Arc::clone(&self.gpu);
        let num_docs = self.lists.num_docs;
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.clear_accumulators);
        launch.arg(&mut self.buffers.d_accumulators).arg(&num_docs);
        // SAFETY: the arguments are those of `clear_accumulators` in kernels/ding/score.cu; there is one accumulator
        // per document.
        unsafe { launch.launch(threads_for(num_docs.div_ceil(4))) }.map_err(launching("clear_accumulators"))?;
        self.clock.end(&gpu, Stage::Initialization)?;
        let (docs, freqs) = (gpu.address(&self.buffers.d_docs), gpu.address(&self.buffers.d_freqs));
        for operand in operands {
            let (len, weight) = (operand.list.docs.len, operand.weight);
            let decoded = [operand.docs(Some(docs)), operand.freqs(Some(freqs))];
            decode(&gpu, &mut self.buffers.d_arguments, &decoded)?;
            self.clock.end(&gpu, Stage::Decompression)?;
            let buffers = &mut self.buffers;
            let mut launch = gpu.stream.launch_builder(&gpu.kernels.accumulate);
            launch.arg(&docs).arg(&freqs).arg(&len).arg(&buffers.d_norms).arg(&weight).arg(&mut buffers.d_accumulators);
            // SAFETY: the arguments are those of `accumulate`; `len` documents and frequencies have been decoded, and
            // every document has a norm and an accumulator.
            unsafe { launch.launch(threads_for(len)) }.map_err(launching("accumulate"))?;
            self.clock.end(&gpu, Stage::Scoring)?;
        }
        let scores = gpu.address(&self.buffers.d_accumulators);
        let scores = Scores { scores, docs: 0, count: Count::known(num_docs) };
        let built = self.buffers.heap.build(&gpu, scores)?;
        self.clock.end(&gpu, Stage::HeapBuilding)?;
        self.buffers.heap.take_best(&gpu, built, k as u32)?;
        self.clock.end(&gpu, Stage::TakingOut)
    }
}

/// The scoring of candidates by one term.
struct Scoring {
    freqs: PforArgument,
    weight: f32,
    is_first: bool,
}

impl Scoring {
    fn of(operand: &Operand<'_>, is_first: bool) -> Self {
        let freqs = operand.places.argument(&operand.list.freqs, 0);
        Self { freqs, weight: operand.weight, is_first }
    }

    /// Enqueues the scoring. `places` are those of the candidates in the term's list; 0 if candidate i is posting i.
    fn run(
        &self,
        gpu: &PublishedGpu,
        docs: u64,
        places: u64,
        count: Count,
        norms: u64,
        scores: u64,
    ) -> Result<(), GpuError> {
        let is_first = u32::from(self.is_first);
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.score_candidates);
        launch.arg(&self.freqs).arg(&docs).arg(&places).arg(&count).arg(&norms);
        launch.arg(&self.weight).arg(&is_first).arg(&scores);
        // SAFETY: the arguments are those of `score_candidates` in kernels/ding/score.cu; the frequencies'
        // exceptions are decoded, places are inside the list, and there are norms for all documents and scores for
        // all candidates.
        unsafe { launch.launch(threads_for(count.at_most())) }.map(drop).map_err(launching("score_candidates"))
    }
}

/// Decodes the exceptions of these lists, and the whole lists with an output.
fn decode(
    gpu: &PublishedGpu,
    d_arguments: &mut CudaSlice<PforArgument>,
    lists: &[Decoded<'_>],
) -> Result<(), GpuError> {
    let plan = Plan::new(lists);
    plan.upload(gpu, d_arguments)?;
    plan.run(gpu, d_arguments, true)
}
