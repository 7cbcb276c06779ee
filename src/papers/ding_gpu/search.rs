//! Queries as the paper runs them on the GPU: a term at a time, every step a kernel.

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, PushKernelArg};
use rayon::prelude::*;

use super::arena::{Arena, Tree};
use super::compact::{Compaction, Matches};
use super::context::{PublishedGpu, launching};
use super::heap::{Heap, Scores};
use super::kernels::{Count, PforArgument, threads_for, warps_for};
use super::merge_find::{DeviceList, MergeFinder};
use super::plan::{Places, Plan};
use super::stages::{Stage, StageClock};
use crate::exec::gpu::{MAX_TERMS, check};
use crate::exec::{ExecError, Hit, TopK};
use crate::gpu::GpuError;
use crate::ids::TermId;
use crate::index::{BLOCK_LEN, Bm25, Index};
use crate::papers::codec::{Codec, Column, PForDelta};
use crate::query::{Mode, Query, QueryTerm};

/// Levels of recursion of Parallel Merge Find: "three levels appear to perform best" (section 7.3).
const FIND_LEVELS: u32 = 3;
/// Lists that are encoded at once, in parallel, before they are copied to the device's arena.
const ENCODED_AT_ONCE: usize = 256;

/// A term's list in device memory.
#[derive(Debug)]
struct List {
    docs: Tree,
    freqs: Tree,
}

/// The lists of some terms in device memory, coded by PForDelta, and buffers to search them.
#[derive(Debug)]
pub(crate) struct PublishedSearch {
    gpu: Arc<PublishedGpu>,
    bm25: Bm25,
    num_docs: u32,
    lists: HashMap<TermId, List>,
    places: Places,
    list_bytes: u64,
    buffers: Buffers,
    clock: StageClock,
    _d_words: CudaSlice<u32>,
    _d_scratch: CudaSlice<u32>,
}

/// What the steps of a query leave for each other.
#[derive(Debug)]
struct Buffers {
    d_norms: CudaSlice<f32>,
    d_accumulators: CudaSlice<f32>,
    d_arguments: CudaSlice<PforArgument>,
    d_docs: CudaSlice<u32>,
    d_freqs: CudaSlice<u32>,
    /// Of each candidate: the block of the next list that it falls into, and its place there.
    d_block_of: CudaSlice<u32>,
    d_found: CudaSlice<u32>,
    /// Of each block of a list: whether it is needed, its rank among those that are; which these are, and how many.
    d_flags: CudaSlice<u32>,
    d_slot_of: CudaSlice<u32>,
    d_needed: CudaSlice<u32>,
    d_num_needed: CudaSlice<u32>,
    /// Candidates, in turn.
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
        // Each term has two arrays, and each level two for every one above it.
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
    /// Encodes the lists of `terms` by `codec` and copies them to the device.
    ///
    /// # Errors
    /// If device memory is too small, or a call fails.
    pub(crate) fn upload(
        gpu: &Arc<PublishedGpu>,
        index: &Index,
        terms: &[TermId],
        bm25: Bm25,
        codec: PForDelta,
    ) -> Result<Self, GpuError> {
        let mut arena = Arena::default();
        let mut lists = HashMap::new();
        for terms in terms.chunks(ENCODED_AT_ONCE) {
            let encoded: Result<Vec<_>, _> = terms.par_iter().map(|&term| encode(index, term, codec)).collect();
            let encoded = encoded
                .map_err(|e| GpuError::Failed { doing: "encoding a list".to_owned(), message: e.to_string() })?;
            for (&term, [docs, freqs]) in terms.iter().zip(&encoded) {
                let docs = arena.push_list(Column::Docs, docs);
                lists.insert(term, List { docs, freqs: arena.push_list(Column::Freqs, freqs) });
            }
        }
        let longest = lists.values().map(|list| list.docs.len).max().unwrap_or(0);
        let most_blocks = lists.values().map(|list| list.docs.num_blocks()).max().unwrap_or(0);
        let norms = bm25.norms(index.doc_lengths(), index.average_length());
        let list_bytes = 4 * (arena.words.len() + arena.scratch_len) as u64;
        let needed_bytes = list_bytes + 2 * Matches::bytes(longest) + 20 * u64::from(longest) + 9 * norms.len() as u64;
        let free_bytes = gpu.device.free_bytes()?;
        if needed_bytes > free_bytes {
            return Err(GpuError::DoesNotFit { needed_bytes, free_bytes });
        }
        let d_words = gpu.upload(&arena.words)?;
        let d_scratch = gpu.zeros(arena.scratch_len)?;
        Ok(Self {
            bm25,
            num_docs: index.num_docs(),
            lists,
            places: Places { words: gpu.address(&d_words), scratch: gpu.address(&d_scratch) },
            list_bytes,
            buffers: Buffers::new(gpu, &norms, longest, most_blocks)?,
            clock: StageClock::default(),
            gpu: Arc::clone(gpu),
            _d_words: d_words,
            _d_scratch: d_scratch,
        })
    }

    /// Bytes of device memory that the lists take, with room for their decoded exceptions.
    pub(crate) fn list_bytes(&self) -> u64 {
        self.list_bytes
    }

    /// Finds the `k` best documents of a query all of whose terms were uploaded. With `with_stages`, returns the
    /// microseconds of each stage on the device, in the order of [`Stage::ALL`].
    ///
    /// # Errors
    /// If `k` is out of range or a call fails.
    ///
    /// # Panics
    /// If a term was not uploaded.
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
        self.clock.restart(&self.gpu, with_stages)?;
        if mode != Mode::Or {
            self.intersect(query, k)?;
            self.buffers.heap.keys(&self.gpu, k, &mut self.buffers.keys)?;
        }
        if mode == Mode::Or || (mode == Mode::AndOr && self.buffers.keys.len() < k) {
            self.unite(query, k)?;
            self.buffers.heap.keys(&self.gpu, k, &mut self.buffers.keys)?;
        }
        hits.extend(self.buffers.keys.iter().map(|&key| TopK::hit(key)));
        Ok(self.clock.times_us()?)
    }

    /// Fills all that a query writes with ones, so that what is not written shows.
    #[cfg(test)]
    pub(super) fn poison(&mut self) -> Result<(), GpuError> {
        use super::tests::poison;
        let (gpu, buffers) = (&*self.gpu, &mut self.buffers);
        poison(gpu, &mut self._d_scratch)?;
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

    fn weight(&self, term: &QueryTerm) -> f32 {
        self.bm25.weight(self.num_docs, term.doc_freq, term.qtf)
    }

    /// Enqueues AND: the best `k` documents that all lists have.
    fn intersect(&mut self, query: &Query, k: usize) -> Result<(), GpuError> {
        let gpu = Arc::clone(&self.gpu);
        let terms = &query.terms;
        let lists: Vec<&List> = terms.iter().map(|term| &self.lists[&term.term]).collect();
        // The exceptions of all lists, and the shortest list whole.
        let docs = gpu.address(&self.buffers.d_docs);
        let mut trees: Vec<(&Tree, Option<u64>)> =
            lists.iter().flat_map(|list| [(&list.docs, None), (&list.freqs, None)]).collect();
        trees[0].1 = Some(docs);
        decode(&gpu, self.places, &mut self.buffers.d_arguments, &trees)?;
        self.clock.end(&gpu, Stage::Decompression)?;

        let places = self.places;
        let weights: Vec<f32> = terms.iter().map(|term| self.weight(term)).collect();
        let buffers = &mut self.buffers;
        let norms = gpu.address(&buffers.d_norms);
        let mut count = Count::known(lists[0].docs.len);
        let mut current_docs = docs;
        let mut scores = gpu.address(&buffers.candidates[0].d_scores);
        let first = Scoring { freqs: places.argument(&lists[0].freqs, 0), weight: weights[0], is_first: true };
        first.run(&gpu, current_docs, 0, count, norms, scores)?;
        self.clock.end(&gpu, Stage::Scoring)?;

        for (turn, (list, &weight)) in lists.iter().zip(&weights).enumerate().skip(1) {
            let tree = &list.docs;
            let num_blocks = tree.num_blocks();
            let [block_of, found, flags, slot_of, needed, num_needed] = [
                &buffers.d_block_of,
                &buffers.d_found,
                &buffers.d_flags,
                &buffers.d_slot_of,
                &buffers.d_needed,
                &buffers.d_num_needed,
            ]
            .map(|buffer| gpu.address(buffer));
            // 1. Which blocks: those before which as many bases, but for the first block's, lie below a candidate.
            let argument = places.argument(tree, 0);
            let bases = DeviceList { address: argument.bases + 4, count: Count::known(num_blocks - 1) };
            let candidates = DeviceList { address: current_docs, count };
            buffers.finder.find(&gpu, candidates, bases, FIND_LEVELS, false, block_of)?;
            let clear = gpu.stream.memset_zeros(&mut buffers.d_flags.slice_mut(..num_blocks as usize));
            clear.map_err(|e| GpuError::of("clearing flags", &e))?;
            let mut launch = gpu.stream.launch_builder(&gpu.kernels.mark_blocks);
            launch.arg(&block_of).arg(&count).arg(&flags);
            // SAFETY: the arguments are those of `mark_blocks` in kernels/published/intersect.cu; what was found are
            // blocks of the list, which has no more than there are flags.
            unsafe { launch.launch(threads_for(count.at_most())) }.map_err(launching("mark_blocks"))?;
            buffers.compaction.gather_blocks(&gpu, flags, num_blocks, needed, slot_of, num_needed)?;
            self.clock.end(&gpu, Stage::Intersection)?;

            // 2. Decode these, side by side. Not more are needed than there are candidates.
            let decoded = gpu.address(&buffers.d_freqs);
            let argument = places.argument(tree, decoded);
            let most_needed = num_blocks.min(count.at_most());
            let num_needed = Count::counted(num_needed, most_needed);
            let mut launch = gpu.stream.launch_builder(&gpu.kernels.pfor_decode_needed);
            launch.arg(&argument).arg(&needed).arg(&num_needed);
            // SAFETY: the arguments are those of `pfor_decode_needed` in kernels/published/pfor.cu; exceptions are
            // decoded, and the output has room for all blocks of the longest list.
            unsafe { launch.launch(warps_for(most_needed)) }.map_err(launching("pfor_decode_needed"))?;
            self.clock.end(&gpu, Stage::Decompression)?;

            // 3. Intersect within the blocks.
            let list_len = tree.len;
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

            let scoring = Scoring { freqs: places.argument(&list.freqs, 0), weight, is_first: false };
            scoring.run(&gpu, current_docs, matched_places, count, norms, scores)?;
            self.clock.end(&gpu, Stage::Scoring)?;
        }
        let built = buffers.heap.build(&gpu, Scores { scores, docs: current_docs, count })?;
        self.clock.end(&gpu, Stage::HeapBuilding)?;
        buffers.heap.take_best(&gpu, built, k as u32)?;
        self.clock.end(&gpu, Stage::TakingOut)
    }

    /// Enqueues OR: the best `k` documents that any list has.
    fn unite(&mut self, query: &Query, k: usize) -> Result<(), GpuError> {
        let gpu = Arc::clone(&self.gpu);
        let num_docs = self.num_docs;
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.clear_accumulators);
        launch.arg(&mut self.buffers.d_accumulators).arg(&num_docs);
        // SAFETY: the arguments are those of `clear_accumulators` in kernels/published/score.cu; there is one
        // accumulator a document.
        unsafe { launch.launch(threads_for(num_docs.div_ceil(4))) }.map_err(launching("clear_accumulators"))?;
        self.clock.end(&gpu, Stage::Initialization)?;
        let (docs, freqs) = (gpu.address(&self.buffers.d_docs), gpu.address(&self.buffers.d_freqs));
        for term in &query.terms {
            let weight = self.weight(term);
            let list = &self.lists[&term.term];
            let len = list.docs.len;
            let trees = [(&list.docs, Some(docs)), (&list.freqs, Some(freqs))];
            decode(&gpu, self.places, &mut self.buffers.d_arguments, &trees)?;
            self.clock.end(&gpu, Stage::Decompression)?;
            let buffers = &mut self.buffers;
            let mut launch = gpu.stream.launch_builder(&gpu.kernels.accumulate);
            launch.arg(&docs).arg(&freqs).arg(&len).arg(&buffers.d_norms).arg(&weight).arg(&mut buffers.d_accumulators);
            // SAFETY: the arguments are those of `accumulate`; as many documents and frequencies have been decoded, and
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

/// One term of the candidates' scores.
struct Scoring {
    freqs: PforArgument,
    weight: f32,
    is_first: bool,
}

impl Scoring {
    /// Enqueues it. `places` are the candidates' in the term's list; 0 if candidate i is posting i.
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
        // SAFETY: the arguments are those of `score_candidates` in kernels/published/score.cu; the frequencies'
        // exceptions are decoded, places are inside the list, and there are norms for all documents and scores for
        // all candidates.
        unsafe { launch.launch(threads_for(count.at_most())) }.map(drop).map_err(launching("score_candidates"))
    }
}

/// Decodes the exceptions of these trees, and those with an output whole.
fn decode(
    gpu: &PublishedGpu,
    places: Places,
    d_arguments: &mut CudaSlice<PforArgument>,
    trees: &[(&Tree, Option<u64>)],
) -> Result<(), GpuError> {
    let plan = Plan::new(places, trees);
    plan.upload(gpu, d_arguments)?;
    plan.run(gpu, d_arguments, true)
}

/// A term's documents and frequencies, encoded.
fn encode(index: &Index, term: TermId, codec: PForDelta) -> Result<[Vec<u32>; 2], crate::papers::codec::CodecError> {
    let list = index.list(term);
    let len = list.doc_freq() as usize;
    let (mut docs, mut freqs) = (Vec::with_capacity(len), Vec::with_capacity(len));
    let (mut block_docs, mut block_freqs) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
    for block in 0..list.num_blocks() {
        let block_len = list.decode_docs(block, &mut block_docs);
        list.decode_freqs(block, &mut block_freqs);
        docs.extend_from_slice(&block_docs[..block_len]);
        freqs.extend_from_slice(&block_freqs[..block_len]);
    }
    let (mut doc_words, mut freq_words) = (Vec::new(), Vec::new());
    codec.encode(Column::Docs, &docs, &mut doc_words)?;
    codec.encode(Column::Freqs, &freqs, &mut freq_words)?;
    Ok([doc_words, freq_words])
}
