//! A session: batches under one division of the memory.

use std::time::Instant;

use cudarc::driver::{CudaEvent, CudaSlice, PushKernelArg, result};
use tandem_engine::search::device::{GpuError, Pinned, shape};

use super::kernels::{BatchArgument, QueryArgument, THREADS, TermArgument};
use super::memory::CachedGpu;
use super::resident::{Resident, term_at};
use super::transfer::Transfer;
use crate::Result;
use crate::error::CacheError;
use crate::wang::cache::batches::Batch;
use crate::wang::cache::model::MeasuredBatch;
use crate::wang::cache::prefixes::Prefixes;
use crate::wang::cache::sizes::Sizes;
use crate::wang::data::MAX_BATCH;
use crate::wang::ranker::{Best, MAX_K};
use crate::wang::train_test_split::RankedQuery;

/// A cache, a buffer, and room for results.
#[derive(Debug)]
pub(crate) struct Session<'g, 'd> {
    pub(crate) gpu: &'g CachedGpu<'d>,
    pub(crate) prefixes: Prefixes,
    pub(crate) buffer_bytes: u64,
    resident: Resident,
    transfer: Transfer,
    d_results: CudaSlice<u64>,
    results: Pinned<u64>,
    events: [CudaEvent; 3],
    /// Argument of each list that the current batch copies.
    brought: Vec<TermArgument>,
    queries: Vec<QueryArgument>,
    terms: Vec<TermArgument>,
    /// Posting of the shortest list at which the CPU resumes, for each query of the batch.
    behind: Vec<u32>,
}

/// An answer, or the part of it that the device found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Place of the query in the log.
    pub(crate) query: u32,
    pub(crate) best: Best,
    /// Posting of the shortest list at which to resume; `None` if the answer is complete.
    pub(crate) from: Option<u32>,
}

impl<'g, 'd> Session<'g, 'd> {
    /// Uploads the cache and allocates a buffer of `buffer_bytes`. Returns [`CacheError::MoreThanFree`] if the device
    /// has too little free memory.
    pub(crate) fn new(gpu: &'g CachedGpu<'d>, prefixes: Prefixes, cache_bytes: u64, buffer_bytes: u64) -> Result<Self> {
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
            brought: vec![TermArgument::default(); gpu.data.lists.num_lists()],
            queries: Vec::new(),
            terms: Vec::new(),
            behind: Vec::new(),
            gpu,
            prefixes,
            buffer_bytes,
        })
    }

    /// Answers a batch that a [`BatchMaker`](crate::wang::cache::batches::BatchMaker) made of `log` for this cache and
    /// buffer. Returns the times of the batch since `began`, and adds its outcomes.
    pub(crate) fn run_batch<Q: std::borrow::Borrow<RankedQuery>>(
        &mut self,
        log: &[Q],
        batch: &Batch,
        k: usize,
        began: Instant,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<MeasuredBatch> {
        let doing = |e| GpuError::of(format!("a batch of {} queries", batch.queries.len()), &e);
        let gpu = self.gpu;
        self.plan(log, batch);
        self.events[0].record(&gpu.stream).map_err(doing)?;
        self.transfer.begin();
        let queries_at = self.transfer.push(gpu, bytemuck::cast_slice(&self.queries), false)?;
        let terms_at = self.transfer.push(gpu, bytemuck::cast_slice(&self.terms), false)?;
        for &list in &batch.lists {
            self.transfer.push(gpu, gpu.data.lists.words(list), true)?;
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
            ceiling: gpu.data.ranking.ceiling(),
        };
        let mut launch = gpu.stream.launch_builder(&gpu.rank);
        launch.arg(&argument);
        // SAFETY: the argument is that of `rank_cached` in kernels/wang/rank.cu; its queries and terms are the batch's,
        // with lists that lie in the cache or in the buffer, and there is room for k + 1 results a query.
        unsafe { launch.launch(shape(batch.queries.len() as u32, THREADS)) }.map_err(doing)?;
        let num_results = batch.queries.len() * (k + 1);
        // SAFETY: nothing else reads or writes the results before the stream has been waited for.
        let results = &mut unsafe { self.results.as_mut_slice() }[..num_results];
        // SAFETY: both have room for `num_results` items.
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

    /// Computes the descriptors: the places of lists, and how far the shortest list is processed.
    fn plan<Q: std::borrow::Borrow<RankedQuery>>(&mut self, log: &[Q], batch: &Batch) {
        let lists = &self.gpu.data.lists;
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
            // The first document behind m, the last one that every cached beginning covers.
            let len = match last_cached {
                u32::MAX => shortest.len(),
                m => shortest.partition_point(|&doc| doc <= m),
            };
            let scores = &self.gpu.data.documents.global_scores;
            let behind = shortest.get(len).map_or(-1.0, |&doc| scores[doc as usize]);
            let num_terms = query.lists.len() as u32;
            self.queries.push(QueryArgument { first_term, num_terms, len: len as u32, behind });
            self.behind.push(len as u32);
        }
    }
}
