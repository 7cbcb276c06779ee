//! One division of the memory: batches through the device.

use std::time::Instant;

use cudarc::driver::{CudaEvent, CudaSlice, PushKernelArg, result};

use super::kernels::{BatchArgument, QueryArgument, THREADS, TermArgument};
use super::memory::CachedGpu;
use super::resident::{Resident, term_at};
use super::transfer::Transfer;
use crate::ExperimentError;
use crate::wang::cache::{Batch, CacheError, MeasuredBatch, Prefixes, Sizes};
use crate::wang::data::MAX_BATCH;
use crate::wang::ranker::{Best, MAX_K};
use crate::wang::train_test_split::RankedQuery;
use tandem_core::search::device::{GpuError, Pinned, shape};

/// A cache, a buffer, and room for results.
#[derive(Debug)]
pub(crate) struct Session<'g, 'w> {
    pub(super) gpu: &'g CachedGpu<'w>,
    pub(super) prefixes: Prefixes,
    pub(super) buffer_bytes: u64,
    resident: Resident,
    transfer: Transfer,
    d_results: CudaSlice<u64>,
    results: Pinned<u64>,
    events: [CudaEvent; 3],
    /// By list: where the batch at hand has it.
    brought: Vec<TermArgument>,
    queries: Vec<QueryArgument>,
    terms: Vec<TermArgument>,
    /// By query of the batch: where the CPU goes on in the shortest list, if it must.
    behind: Vec<u32>,
}

/// An answer, or as much of it as the device has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Which query.
    pub(super) query: u32,
    /// What was found.
    pub(super) best: Best,
    /// Where to go on in the shortest list; `None` if the answer is complete.
    pub(super) from: Option<u32>,
}

impl<'g, 'w> Session<'g, 'w> {
    /// Uploads what the cache holds and makes room for batches of `buffer_bytes`.
    ///
    /// # Errors
    /// [`CacheError::MoreThanFree`] if the device has not so much memory.
    pub(crate) fn new(
        gpu: &'g CachedGpu<'w>,
        prefixes: Prefixes,
        cache_bytes: u64,
        buffer_bytes: u64,
    ) -> Result<Self, ExperimentError> {
        let free_bytes = gpu.device.free_bytes()?;
        let wanted_bytes = cache_bytes.saturating_add(buffer_bytes);
        if wanted_bytes > free_bytes {
            return Err(CacheError::MoreThanFree { wanted_bytes, cache_bytes, buffer_bytes, free_bytes }.into());
        }
        let event = || gpu.device.new_event().map_err(|e| GpuError::of("making an event", &e));
        let most_results = MAX_BATCH * (MAX_K + 1);
        let results = Pinned::for_results(&gpu.device, most_results, 0);
        Ok(Self {
            resident: Resident::upload(gpu, &prefixes, cache_bytes)?,
            transfer: Transfer::new(gpu, buffer_bytes)?,
            d_results: gpu.alloc(most_results)?,
            results: results.map_err(|e| GpuError::of("page-locking room for results", &e))?,
            events: [event()?, event()?, event()?],
            brought: vec![TermArgument::default(); gpu.world.lists.num_lists()],
            queries: Vec::new(),
            terms: Vec::new(),
            behind: Vec::new(),
            gpu,
            prefixes,
            buffer_bytes,
        })
    }

    /// Answers the queries of a batch that a [`BatchMaker`](crate::wang::cache::BatchMaker) made of `log` for this cache and
    /// buffer; what the batch took, from `began` on, and where its answers are.
    pub(super) fn run_batch<Q: std::borrow::Borrow<RankedQuery>>(
        &mut self,
        log: &[Q],
        batch: &Batch,
        k: usize,
        began: Instant,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<MeasuredBatch, ExperimentError> {
        let doing = |e| GpuError::of(format!("a batch of {} queries", batch.queries.len()), &e);
        let gpu = self.gpu;
        self.plan(log, batch);
        self.events[0].record(&gpu.stream).map_err(doing)?;
        self.transfer.begin();
        let queries_at = self.transfer.push(gpu, bytemuck::cast_slice(&self.queries), false)?;
        let terms_at = self.transfer.push(gpu, bytemuck::cast_slice(&self.terms), false)?;
        for &list in &batch.lists {
            self.transfer.push(gpu, gpu.world.lists.words(list), true)?;
        }
        self.transfer.flush(gpu)?;
        self.events[1].record(&gpu.stream).map_err(doing)?;
        let base = self.transfer.address(gpu);
        let argument = BatchArgument {
            queries: base + 4 * queries_at as u64,
            terms: base + 4 * terms_at as u64,
            priors: gpu.address(&gpu.d_priors),
            norms: gpu.address(&gpu.d_norms),
            global_scores: gpu.address(&gpu.d_global_scores),
            results: gpu.address(&self.d_results),
            k: k as u32,
            ceiling: gpu.world.ranking.ceiling(),
        };
        let mut launch = gpu.stream.launch_builder(&gpu.rank);
        launch.arg(&argument);
        // SAFETY: the argument is that of `rank_cached` in kernels/wang/rank.cu; its queries and terms are the batch's,
        // with lists that lie in the cache or in the buffer, and there is room for k + 1 results a query.
        unsafe { launch.launch(shape(batch.queries.len() as u32, THREADS)) }.map_err(doing)?;
        let num_results = batch.queries.len() * (k + 1);
        // SAFETY: nothing else reads or writes the results before the stream has been waited for.
        let results = &mut unsafe { self.results.as_mut_slice() }[..num_results];
        // SAFETY: both have room for so many.
        unsafe { result::memcpy_dtoh_async(results, argument.results, gpu.stream.cu_stream()) }.map_err(doing)?;
        self.events[2].record(&gpu.stream).map_err(doing)?;
        gpu.wait("waiting for a batch")?;
        for ((&query, keys), &behind) in batch.queries.iter().zip(results.chunks(k + 1)).zip(&self.behind) {
            let from = (keys[k] == 0).then_some(behind);
            outcomes.push(Outcome { query, best: Best::from_keys(&keys[..k], k), from });
        }
        let transfer_us = f64::from(self.events[0].elapsed_ms(&self.events[1]).map_err(doing)?) * 1e3;
        Ok(MeasuredBatch {
            queries: batch.queries.len() as f64,
            calculation_us: (began.elapsed().as_secs_f64() * 1e6 - transfer_us).max(0.0),
            mb: batch.bytes as f64 / 1e6,
            transfer_us,
        })
    }

    /// Works out descriptors: where each list will be, and how far the shortest may be gone through.
    fn plan<Q: std::borrow::Borrow<RankedQuery>>(&mut self, log: &[Q], batch: &Batch) {
        let lists = &self.gpu.world.lists;
        let descriptors =
            size_of::<QueryArgument>() * batch.queries.len() + size_of::<TermArgument>() * batch.num_terms;
        let mut address = self.transfer.address(self.gpu) + descriptors as u64;
        for &list in &batch.lists {
            let len = lists.len(list);
            let table_len = lists.table_len(list, len);
            self.brought[list as usize] = term_at(address, len, table_len, lists.list(list).shift);
            address += lists.whole_bytes(list);
        }
        self.queries.clear();
        self.terms.clear();
        self.behind.clear();
        for query in batch.queries.iter().map(|&query| log[query as usize].borrow()) {
            let first_term = self.terms.len() as u32;
            let mut last_cached = u32::MAX;
            for (&list, &weight) in query.lists.iter().zip(&query.weights) {
                let held = self.prefixes.postings(list);
                let term = if held > 0 { self.resident.term(list) } else { self.brought[list as usize] };
                self.terms.push(TermArgument { weight, ..term });
                if held > 0 && held < lists.len(list) {
                    last_cached = last_cached.min(lists.list(list).docs[held as usize - 1]);
                }
            }
            let shortest = lists.list(query.lists[0]).docs;
            // Behind m: the first document of the shortest list that some beginning may lack.
            let len = match last_cached {
                u32::MAX => shortest.len(),
                m => shortest.partition_point(|&doc| doc <= m),
            };
            let scores = &self.gpu.world.documents.global_scores;
            let behind = shortest.get(len).map_or(-1.0, |&doc| scores[doc as usize]);
            let num_terms = query.lists.len() as u32;
            self.queries.push(QueryArgument { first_term, num_terms, len: len as u32, behind });
            self.behind.push(len as u32);
        }
    }
}
