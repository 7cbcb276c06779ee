// batch.cu: many queries in one launch, of any mixture of modes and k (drive.cuh describes the search).
// In:   the lists; the batch's input, in device memory or, if small, as a kernel parameter.
// Out:  the number of results and their keys, best first, of each query, written straight to pinned host memory.
//
// Work is assigned by blocks of postings instead of queries: a warp finds its list by the number of its item. All queries'
// rarest lists come first, so that later lists find high thresholds. The last warp of a query sorts its results, clears its
// state and, if it was the batch's last query, writes the times. So no second kernel is needed. Queries with more than WARP_K
// results are left to merge_topk.
//
// AND+OR is two entries: documents with all terms in a first launch, and with any term in a second one, whose warps end at once
// if the first entry's state (the gate) has enough documents.
//
// A grid has as many warps as are resident at once, and each takes one item after another. So a warp never waits for the other
// one of its thread block, and the last items begin as soon as any warp is free. A thread block has two warps, because a
// multiprocessor holds more of them in this way than in thread blocks of one.
//
// Limits: those of drive.cuh. Shared memory: 7 KiB. Launch bounds: 64 threads, at least 20 blocks per multiprocessor, or 18 in
// small batches.
// Large batches are bound by instructions, small ones by latency of reads. Twin on the host: search/cpu/or/exhaustive.rs.

#include "batch.cuh"
#include "drive.cuh"
#include "merge.cuh"

constexpr u32 BATCH_WARPS = BATCH_THREADS / WARP;

// Thread blocks per multiprocessor that registers must suffice for, in large batches and in small ones. Multiprocessors of
// compute capability 7.5 and 8.6 hold 16, and on 8.9 registers would spill.
#if __CUDA_ARCH__ >= 900
constexpr u32 LARGE_RESIDENT = 20, SMALL_RESIDENT = 18;
#else
constexpr u32 LARGE_RESIDENT = 16, SMALL_RESIDENT = 16;
#endif

// The driver of an item, by the hint of every 32nd item. Each driver has at least one item, so it is among the next 32.
__device__ __forceinline__ Driver hinted_driver(const BatchInput& input, const Batch& batch, u32 item, u32 lane) {
    const u32 first = input.hints[item / WARP];
    const u32 mine = min(first + lane, batch.num_drivers - 1);
    const uint4 words = *reinterpret_cast<const uint4*>(input.drivers + mine);
    const u32 source = __popc(__ballot_sync(FULL_WARP, first + lane < batch.num_drivers && words.z <= item)) - 1;
    Driver driver;
    driver.query = __shfl_sync(FULL_WARP, words.x, source);
    driver.term = __shfl_sync(FULL_WARP, words.y, source);
    driver.first_item = __shfl_sync(FULL_WARP, words.z, source);
    driver.blocks_an_item = __shfl_sync(FULL_WARP, words.w, source);
    return driver;
}

// The item of a warp, or batch.num_items for none. First terms' items come first. With several rows, neighbouring warps take
// distant items of different queries, so that their counters and thresholds have different addresses. In large batches looking
// up the same lists gains more.
__device__ __forceinline__ u32 item_of(const Batch& batch, u32 warp) {
    const u32 rows = max(batch.item_rows, 1u);
    u32 columns = (batch.num_first_items + rows - 1) / rows;
    u32 start = 0, len = batch.num_first_items;
    if (warp >= columns * rows) {
        warp -= columns * rows;
        start = batch.num_first_items;
        len = batch.num_items - start;
        columns = (len + rows - 1) / rows;
    }
    const u32 place = warp % rows * columns + warp / rows;
    return warp / rows < columns && place < len ? start + place : batch.num_items;
}

// A warp's shared memory.
struct BatchShared {
    union {
        Queue queue;
        Merge<WARP_SORT_LEN> merge;
    };
    // Read when it is needed, because registers are scarce.
    const u32* volatile words;  // the batch's input
    volatile u32 entry;         // the item's entry
    volatile u32 taken;         // the next place, see take_place

    template <bool HAS_HINTS>
    __device__ __forceinline__ BatchInput input(const Batch& batch) const {
        const u32* at;
        if (HAS_HINTS) at = batch.input;
        else at = words;
        asm volatile("" : "+l"(at));
        return BatchInput(batch, at);
    }
};

// Takes a place for the lane's warp, and returns the number of those taken before. Each warp takes one after each place that it
// had, so the host knows the number before every launch.
__device__ __forceinline__ u32 take_place(const Batch& batch, Run* run) { return atomicAdd(&run->taken, 1) - batch.taken_before; }

// Sorts the results of the warp's entry, whose items are all done, and clears its state. The number of the entry is read from
// shared memory after the sort, because registers are scarce in it.
__device__ __forceinline__ void finish_entry(
    const Batch& batch, const BatchInput& input, Run* run, State* states, u64* candidates, u64* results, BatchShared& shared
) {
    const u32 lane = threadIdx.x % WARP;
    const BatchQuery& entry = input.queries[shared.entry];
    State* state = states + shared.entry;
    const u32 found = num_found(state);
    Query query = entry.query;
    if (entry.needs_all()) query.need_all();
    // If enough documents have all terms, the stage before has written the results.
    const State* gate = gate_of(entry, states);
    const bool had_all = gate != nullptr && num_found(gate) >= query.k;
    if (!had_all && (entry.is_last() || found >= query.k)) {
        __syncwarp();
        merge_candidates<WarpGroup, 2>(
            query, state, candidates + entry.candidates, found, entry.capacity, results + entry.result, nullptr, shared.merge
        );
        const u32 sorted = shared.entry;
        if (lane == 0) finish_query(batch, run, states + sorted, gate_of(input.queries[sorted], states), results);
    }
    __syncwarp();
    const u32 sorted = shared.entry;
    if (!input.queries[sorted].is_last()) return;
    clear_state<WarpGroup>(states + sorted);
    State* before = gate_of(input.queries[sorted], states);
    if (before != nullptr) clear_state<WarpGroup>(before);
}

// An item, by one warp, which then takes the next place. A small input has no hints, so its few drivers are searched. With hints
// there are many queries.
template <bool HAS_HINTS>
__device__ __forceinline__ void score_item(
    const Lists& lists, const Batch& batch, u32 item, Run* run, State* states, u64* candidates, u64* results,
    BatchShared& shared
) {
    const u32 lane = threadIdx.x % WARP;
    const BatchInput input = shared.input<HAS_HINTS>(batch);
    const Driver driver = HAS_HINTS ? hinted_driver(input, batch, item, lane)
                                    : input.drivers[find_driver(input.drivers, batch.num_drivers, item, lane)];
    // What is needed after the search; registers are scarce in between.
    if (lane == 0) {
        shared.entry = driver.query;
        shared.queue.scored = 0;
        shared.queue.is_touched = false;
    }
    {
        const BatchQuery& entry = input.queries[driver.query];
        if (entry.gate == NO_GATE || num_found(states + entry.gate) < entry.query.k) {
            copy_query(
                entry.query, entry.needs_all(), input.terms + entry.query.first_term, candidates + entry.candidates,
                entry.capacity, shared.queue, lane
            );
            drive_item<false, HAS_HINTS>(
                lists, shared.queue.query, driver, item, entry.needs_all(), shared.queue, states + driver.query,
                lane
            );
        }
    }

    __syncwarp();
    const u32 number = shared.entry;
    const BatchInput same_input = shared.input<HAS_HINTS>(batch);
    const BatchQuery& entry = same_input.queries[number];
    u32 taken = 0;
    if (lane == 0) taken = take_place(batch, run);
    if (entry.sorts_later()) {
        if (lane == 0) shared.taken = taken;
        return;
    }

    // Writes of the warp precede lane 0's sign-off, so the last warp to sign off sees all of them. Most warps find no candidate
    // and have nothing to order, which saves a memory barrier.
    State* state = states + number;
    u32 items_before = 0;
    if (lane == 0) {
        const u64 more = (1ull << DONE_BIT) + shared.queue.scored;
        // The first block also wrote the start of the batch.
        const bool is_touched = shared.queue.is_touched || blockIdx.x == 0;
        items_before = (is_touched ? sign_off(&state->done, more) : atomicAdd(&state->done, more)) >> DONE_BIT;
        shared.taken = taken;
    }
    items_before = __shfl_sync(FULL_WARP, items_before, 0);
    if (items_before != entry.num_items - 1) return;
    __threadfence();
    finish_entry(batch, same_input, run, states, candidates, results, shared);
}

// Scores items one after another. A grid has at most as many warps as are resident at once. Each begins with the place of its
// number and then takes the next one that nobody has taken, so that no warp waits for a slower one.
template <bool HAS_HINTS>
__device__ __forceinline__ void score_items(
    const Lists& lists, const Batch& batch, const u32* words, Run* run, State* states, u64* candidates, u64* results
) {
    __shared__ BatchShared shared[BATCH_WARPS];
    if (batch.is_first != 0 && blockIdx.x == 0 && threadIdx.x == 0) run->started_ns = clock_ns();
    if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP].words = words;
    __syncwarp();
    for (u32 place = blockIdx.x * BATCH_WARPS + threadIdx.x / WARP; place < batch.num_places;) {
        const u32 item = item_of(batch, place);
        u32 warp = threadIdx.x / WARP;
        asm volatile("" : "+r"(warp));
        if (item < batch.num_items) {
            score_item<HAS_HINTS>(lists, batch, item, run, states, candidates, results, shared[warp]);
        } else if (threadIdx.x % WARP == 0) {
            shared[warp].taken = take_place(batch, run);
        }
        __syncwarp();
        place = gridDim.x * BATCH_WARPS + shared[warp].taken;
        __syncwarp();
    }
}

// A batch with its input in device memory.
extern "C" __global__ void __launch_bounds__(BATCH_THREADS, LARGE_RESIDENT) score_batch(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch, Run* run, State* states, u64* candidates,
    u64* results
) {
    score_items<true>(lists, batch, batch.input, run, states, candidates, results);
}

// A batch with its input as a parameter, which saves a copy before the launch.
extern "C" __global__ void __launch_bounds__(BATCH_THREADS, SMALL_RESIDENT) score_small_batch(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch, const __grid_constant__ SmallInput small,
    Run* run, State* states, u64* candidates, u64* results
) {
    score_items<false>(lists, batch, small.words, run, states, candidates, results);
}
