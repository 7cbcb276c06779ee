//! Many queries in one launch.
//!
//! Queries go to the device in chunks, by two slots in turn: while one chunk runs, the next one is prepared and the
//! one before is read. A chunk is one copy to the device, one launch that scores (two for AND+OR) and one that sorts;
//! results arrive in page-locked memory. Work is shared out by blocks of postings, not by queries: a warp finds its
//! list by the number of its item. All queries' rarest lists come first, so that the others' find high thresholds.

use bytemuck::{Pod, cast_slice};
use cudarc::driver::{CudaEvent, DevicePtr, DevicePtrMut, DriverError};

use super::accepted::{MAX_TERMS, check};
use super::arguments::{
    BatchArgument, DriverEntry, LoneArgument, QueryEntry, StateArgument, TOO_MANY, TermEntry, UNWRITTEN,
};
use super::executor::GpuExecutor;
use super::kernels::QueryMemory;
use super::plan::{ItemSizes, Plan, num_items_of};
use super::results::{poison, read_results};
use super::slot::{BatchSlot, CHUNK_QUERIES, INPUT_WORDS};
use crate::exec::{ExecError, Execution, Executor, Hit, check_k};
use crate::gpu::{GpuError, Pinned};
use crate::query::{Mode, Query};

/// Chunks that queries are cut into at least, so that the next is prepared while one runs, ...
const CHUNKS: usize = 4;
/// ... unless they would be smaller than this.
const SMALL_CHUNK: usize = 128;
/// Candidates that a query of a batch must have room for: with seeds there are seldom more; those with more run alone.
const CANDIDATES: usize = 4096;
const CANDIDATES_A_RESULT: usize = 16;
/// Blocks that the lists of a chunk have at most, unless it is of one query: a launch's items are fewer, and counted in
/// 32 bits.
const CHUNK_BLOCKS: u64 = 1 << 30;

/// The queries of a chunk, as the device will read them.
#[derive(Debug, Default)]
struct Chunk {
    queries: Vec<QueryEntry>,
    terms: Vec<TermEntry>,
    plans: Vec<Plan>,
    /// Of all lists that may drive.
    num_blocks: u64,
}

/// Drivers of some queries, all first terms before all second ones, and the items of all of them, for a machine that
/// holds `warps` at once.
fn share_out(plans: &[Plan], needs_all: bool, warps: u32) -> (Vec<DriverEntry>, u32) {
    let sizes = ItemSizes::new(plans, needs_all, warps);
    let mut drivers = Vec::new();
    let mut num_items = 0;
    for t in 0..plans.iter().map(|plan| plan.num_drivers(needs_all)).max().unwrap_or(0) {
        for (query, plan) in plans.iter().enumerate().filter(|(_, plan)| t < plan.num_drivers(needs_all)) {
            let blocks_an_item = sizes.of(plan, t, needs_all);
            drivers.push(DriverEntry { query: query as u32, term: t as u32, first_item: num_items, blocks_an_item });
            num_items += num_items_of(plan.num_blocks(t), blocks_an_item);
        }
    }
    (drivers, num_items)
}

/// Appends items to the words that travel to the device; returns where they begin there, in bytes.
fn append<T: Pod>(input: &mut [u32], len: &mut usize, items: &[T]) -> u64 {
    let words: &[u32] = cast_slice(items);
    let start = *len;
    input[start..start + words.len()].copy_from_slice(words);
    // Everything begins at a multiple of 16 bytes.
    *len = (start + words.len()).next_multiple_of(4);
    4 * start as u64
}

impl GpuExecutor {
    /// Searches many queries at once: `hits[i]` becomes what [`search`](Executor::search) finds for `queries[i]`.
    ///
    /// The device's time is that of all of them together.
    ///
    /// # Errors
    /// As [`search`](Executor::search); then `hits` holds nothing that is worth reading.
    pub fn search_batch(
        &mut self,
        queries: &[Query],
        mode: Mode,
        k: usize,
        hits: &mut Vec<Vec<Hit>>,
    ) -> Result<Execution, ExecError> {
        check_k(k)?;
        queries.iter().try_for_each(|query| check(query, k))?;
        hits.resize_with(queries.len(), Vec::new);
        if let [query] = queries {
            return self.search(query, mode, k, &mut hits[0]);
        }
        self.check(|| doing(queries.len(), 0))?;
        if self.slots.is_empty() {
            let needed_bytes = 2 * BatchSlot::bytes(self.lists.host.num_docs());
            self.device.check_room(needed_bytes)?;
            let new_slot = || BatchSlot::new(&self.device, self.lists.host.num_docs());
            let slots = new_slot().and_then(|first| Ok(vec![first, new_slot()?]));
            self.slots = slots.map_err(|error| self.failed("allocating buffers for batches".to_owned(), &error))?;
        }
        let mut slots = std::mem::take(&mut self.slots);
        let outcome = self.run_chunks(&mut slots, queries, mode, k, hits);
        for slot in &mut slots {
            // After an error a chunk may still be under way.
            if let Err(error) = slot.stream.synchronize()
                && self.broken.is_none()
            {
                self.broken =
                    Some(format!("the GPU stopped at an earlier error: {}: {error}", doing(queries.len(), 0)));
            }
            slot.queries.clear();
            slot.alone.clear();
        }
        self.slots = slots;
        outcome.map(|device_us| Execution { device_us: Some(device_us) })
    }

    fn run_chunks(
        &mut self,
        slots: &mut [BatchSlot],
        queries: &[Query],
        mode: Mode,
        k: usize,
        hits: &mut [Vec<Hit>],
    ) -> Result<f64, ExecError> {
        let room = CANDIDATES + CANDIDATES_A_RESULT * k;
        let most = CHUNK_QUERIES.min(slots[0].d_candidates.len() / room).max(1);
        let chunk_len = queries.len().div_ceil(CHUNKS).max(SMALL_CHUNK).min(most);
        let mut device_us = 0.0;
        let mut next = 0;
        let mut turn = 0;
        while next < queries.len() || slots.iter().any(|slot| !slot.queries.is_empty() || !slot.alone.is_empty()) {
            let slot = &mut slots[turn];
            turn = 1 - turn;
            device_us += self.finish(slot, queries, mode, k, hits)?;
            if next < queries.len() {
                next = self.start(slot, queries, next, chunk_len, mode, k)?;
            }
        }
        Ok(device_us)
    }

    /// Starts a chunk of the queries from `first` on; returns where the next chunk begins.
    fn start(
        &mut self,
        slot: &mut BatchSlot,
        queries: &[Query],
        first: usize,
        chunk_len: usize,
        mode: Mode,
        k: usize,
    ) -> Result<usize, ExecError> {
        let mut chunk = Chunk::default();
        let mut next = first;
        while next < queries.len() && chunk.plans.len() < chunk_len {
            let query = &queries[next];
            // A term takes at most a term and two drivers, each less than 6 words.
            if (chunk.terms.len() + MAX_TERMS) * 16 + chunk.queries.len() * 8 > INPUT_WORDS - 64 {
                break;
            }
            let plan = Plan::new(&self.lists, query, mode, k)?;
            let num_blocks = plan.driven_blocks();
            if !chunk.plans.is_empty() && chunk.num_blocks + num_blocks > CHUNK_BLOCKS {
                break;
            }
            if plan.by_tiles || plan.terms.is_empty() {
                slot.alone.push(next);
            } else {
                chunk.queries.push(QueryEntry { first_term: chunk.terms.len() as u32, ..plan.query });
                chunk.terms.extend(&plan.terms);
                chunk.plans.push(plan);
                chunk.num_blocks += num_blocks;
                slot.queries.push(next);
            }
            next += 1;
        }
        if !chunk.plans.is_empty() {
            let launched = self.launch(slot, &chunk, mode, k);
            launched.map_err(|error| self.failed(doing(chunk.plans.len(), first), &error))?;
        }
        Ok(next)
    }

    fn launch(&self, slot: &mut BatchSlot, chunk: &Chunk, mode: Mode, k: usize) -> Result<(), DriverError> {
        let stream = &slot.stream;
        let num_queries = chunk.plans.len();
        let stride = 1 + k;
        if slot.results.len() < num_queries * stride {
            let len = CHUNK_QUERIES.min(num_queries.next_power_of_two()) * stride;
            slot.results = Pinned::for_results(&self.device, len, UNWRITTEN)?;
        }
        if cfg!(debug_assertions) {
            poison(stream, &mut slot.d_candidates)?;
            // SAFETY: the slot's chunk before has ended.
            unsafe { slot.results.as_mut_slice() }.fill(UNWRITTEN);
        }
        // SAFETY: as above.
        let input = unsafe { slot.input.as_mut_slice() };
        let mut len = 0;
        let queries_at = append(input, &mut len, &chunk.queries);
        let terms_at = append(input, &mut len, &chunk.terms);
        let stages: &[bool] = match mode {
            Mode::And => &[true],
            Mode::Or => &[false],
            Mode::AndOr => &[true, false],
        };
        let mut launches = Vec::new();
        for &needs_all in stages {
            let (drivers, num_items) = share_out(&chunk.plans, needs_all, self.kernels.resident_warps());
            launches.push((needs_all, append(input, &mut len, &drivers), drivers.len() as u32, num_items));
        }
        slot.started.record(stream)?;
        stream.memcpy_htod(&input[..len], &mut slot.d_input.slice_mut(..len))?;
        stream.memset_zeros(&mut slot.d_states.slice_mut(..stages.len() * num_queries))?;
        let input_at = slot.d_input.device_ptr(stream).0;
        let states = slot.d_states.device_ptr_mut(stream).0;
        let candidates = slot.d_candidates.device_ptr_mut(stream).0;
        let capacity = slot.d_candidates.len() / num_queries;
        let lists = self.lists.argument(stream);
        let lone = LoneArgument::default();
        let mut memory = QueryMemory { states, gates: 0, candidates };
        let mut batch = BatchArgument {
            queries: input_at + queries_at,
            terms: input_at + terms_at,
            capacity: u32::try_from(capacity).unwrap_or(u32::MAX),
            ..BatchArgument::default()
        };
        for (stage, &(needs_all, drivers_at, num_drivers, num_items)) in launches.iter().enumerate() {
            if stage > 0 {
                let gates = memory.states;
                memory = QueryMemory {
                    states: gates + (num_queries * size_of::<StateArgument>()) as u64,
                    gates,
                    candidates,
                };
            }
            batch.drivers = input_at + drivers_at;
            batch.num_drivers = num_drivers;
            batch.num_items = num_items;
            batch.needs_all = u32::from(needs_all);
            // SAFETY: the input stays as it is until the stream has been synchronised; there is a state for each
            // query and stage, and room for `capacity` keys of each; drivers and items were counted together.
            unsafe { self.kernels.score_drivers(stream, &lists, &batch, &lone, &memory) }?;
        }
        let results_at = slot.results.address();
        slot.scored.record(stream)?;
        // SAFETY: as above; the results have room for `stride` words of each query.
        unsafe {
            self.kernels.merge_topk(stream, &batch, &lone, &memory, results_at, stride as u32, num_queries as u32)
        }?;
        slot.finished.record(stream)
    }

    /// Waits for the slot's chunk and reads its results. Returns the device's time in microseconds.
    fn finish(
        &mut self,
        slot: &mut BatchSlot,
        queries: &[Query],
        mode: Mode,
        k: usize,
        hits: &mut [Vec<Hit>],
    ) -> Result<f64, ExecError> {
        let mut device_us = 0.0;
        if let Some(&first) = slot.queries.first() {
            let wait = || {
                slot.finished.synchronize()?;
                let us_since = |event: &CudaEvent| Ok(f64::from(event.elapsed_ms(&slot.finished)?) * 1e3);
                Ok((us_since(&slot.started)?, us_since(&slot.scored)?))
            };
            let doing = || doing(slot.queries.len(), first);
            (device_us, self.topk_us) = wait().map_err(|error: DriverError| self.failed(doing(), &error))?;
            // SAFETY: the chunk has ended.
            let results = unsafe { slot.results.as_slice() };
            for (result, &query) in results.chunks(1 + k).zip(&slot.queries) {
                if result[0] == TOO_MANY {
                    slot.alone.push(query);
                    continue;
                }
                read_results(result, k, &mut hits[query])
                    .map_err(|message| GpuError::Failed { doing: format!("{}, query {query}", doing()), message })?;
            }
            slot.queries.clear();
        }
        for query in std::mem::take(&mut slot.alone) {
            device_us += self.search(&queries[query], mode, k, &mut hits[query])?.device_us.unwrap_or(0.0);
        }
        Ok(device_us)
    }
}

/// What was being done, for an error.
fn doing(num_queries: usize, first: usize) -> String {
    format!("kernels `score_drivers`, `merge_topk` for a batch of {num_queries} queries from number {first} on")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::gpu::plan::tests::plan;

    #[test]
    fn gpu_batches_put_first_terms_first_and_leave_no_block_out() {
        let plans = [
            plan(&[(200, 5.0), (90_000, 1.0)], 0.0, Mode::Or),
            plan(&[(5000, 5.0)], 0.0, Mode::Or),
            plan(&[(129, 5.0), (1300, 4.0), (700_000, 1.0)], 2.0, Mode::Or),
        ];
        for warps in [4, 1000, 1_000_000] {
            let (drivers, num_items) = share_out(&plans, false, warps);
            let order: Vec<_> = drivers.iter().map(|driver| (driver.query, driver.term)).collect();
            assert_eq!(order, [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1)]);
            let ends = drivers.iter().skip(1).map(|driver| driver.first_item).chain([num_items]);
            for (driver, end) in drivers.iter().zip(ends) {
                let blocks = plans[driver.query as usize].num_blocks(driver.term as usize);
                assert_eq!(end - driver.first_item, num_items_of(blocks, driver.blocks_an_item));
            }
        }
        let (drivers, _) = share_out(&plans, true, 1000);
        assert_eq!(drivers.len(), 3);
    }

    #[test]
    fn gpu_items_of_the_largest_chunk_fit_32_bits() {
        let largest = plan(&[((1 << 31) - 1, 1.0)], 0.0, Mode::Or);
        let plans: Vec<_> =
            (0..CHUNK_BLOCKS / largest.driven_blocks()).map(|_| plan(&[((1 << 31) - 1, 1.0)], 0.0, Mode::Or)).collect();
        assert_eq!(plans.len(), 64);
        for warps in [1, 4000, u32::MAX / 8] {
            let (drivers, num_items) = share_out(&plans, false, warps);
            assert!(drivers.is_sorted_by_key(|driver| driver.first_item));
            assert!(u64::from(num_items) <= CHUNK_BLOCKS + u64::from(warps), "{num_items}");
        }
    }
}
