// batch.cu: many queries in one launch, of any mixture of modes and k (drive.cuh says how each is searched).
// In:   the lists; the batch's input, in device memory or, if small, as a kernel parameter. Out: for each query how many
//       results there are, and their keys, best first, straight into the host's pinned memory.
//
// Work is shared out by blocks of postings, not by queries: a warp finds its list by the number of its item. All queries'
// rarest lists come first, so that the others' find high thresholds. The warp that is done last with a query sorts its
// results at once, clears its state and, if it was the last query of the batch, notes how long all took: no second kernel is
// waited for. Queries of more than WARP_K results are too many to sort for a warp, and are left to merge_topk.
//
// AND+OR is two entries: documents with all terms in a first launch, those with any in a second one, whose warps do nothing
// where the first entry's state (the gate) tells that it has found enough.
//
// Limits: those of drive.cuh. Shared memory: 14 KiB. Launch bounds: 128 threads, 8 blocks a multiprocessor: 64 registers.
// Bound by instructions and latency (docs/gpu.md). Twin on the host: exec/cpu/exhaustive.rs.

#include "batch.cuh"
#include "drive.cuh"
#include "merge.cuh"

// The driver of an item, by the table that tells it for every 32nd one: each driver has an item at least, so that it is among
// the next 32.
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

// A warp's item. A small input has no hints: its few drivers are searched.
template <bool HAS_HINTS>
__device__ __forceinline__ void score_item(
    const Lists& lists, const Batch& batch, const u32* words, Run* run, State* states, u64* candidates, u64* results
) {
    __shared__ union Shared {
        Queue queue;
        Merge<WARP_SORT_LEN> merge;
    } all_shared[DRIVE_WARPS];
    __shared__ volatile u32 entry_numbers[DRIVE_WARPS];
    Shared& shared = all_shared[threadIdx.x / WARP];
    if (batch.is_first != 0 && blockIdx.x == 0 && threadIdx.x == 0) run->started_ns = clock_ns();
    const u32 lane = threadIdx.x % WARP, item = blockIdx.x * DRIVE_WARPS + threadIdx.x / WARP;
    if (item >= batch.num_items) return;

    const BatchInput input(batch, words);
    const Driver driver = HAS_HINTS ? hinted_driver(input, batch, item, lane)
                                    : input.drivers[find_driver(input.drivers, batch.num_drivers, item, lane)];
    {
        const BatchQuery& entry = input.queries[driver.query];
        Query query = entry.query;
        if (entry.needs_all()) query.need_all();
        if (entry.gate == NO_GATE || num_found(states + entry.gate) < query.k) {
            copy_terms(input.terms + query.first_term, query.num_terms, shared.queue, lane);
            drive_item(
                lists, query, driver, item, entry.needs_all(), shared.queue, states + driver.query,
                candidates + entry.candidates, entry.capacity, lane
            );
            const u64 scored = shared.queue.scored;
            if (lane == 0 && scored != 0) atomicAdd(&states[driver.query].scored, scored);
        }
    }

    // Of what came before, the compiler need keep nothing in registers but this: they are scarce in between.
    entry_numbers[threadIdx.x / WARP] = driver.query;
    __syncwarp();
    const u32 number = entry_numbers[threadIdx.x / WARP];
    const BatchQuery& entry = input.queries[number];
    if (entry.sorts_later()) return;

    // What the warp has found comes before lane 0's fence, and the fence before its sign-off: the warp that signs off last sees
    // what all have found.
    __syncwarp();
    State* state = states + number;
    u64 progress = 0;
    if (lane == 0) {
        __threadfence();
        progress = atomicAdd(&state->progress, SIGN_OFF);
        __threadfence();
    }
    progress = __shfl_sync(FULL_WARP, progress, 0);
    if (progress >> 32 != entry.num_items - 1) return;
    const u32 found = static_cast<u32>(progress);
    Query query = entry.query;
    if (entry.needs_all()) query.need_all();
    State* gate = entry.gate == NO_GATE ? nullptr : states + entry.gate;
    // With enough documents that have all terms, the stage before has written the results.
    const bool had_all = gate != nullptr && num_found(gate) >= query.k;
    if (!had_all && (entry.is_last() || found >= query.k)) {
        __syncwarp();
        merge_candidates<WarpGroup, 4>(
            query, state, candidates + entry.candidates, found, entry.capacity, results + entry.result, nullptr, shared.merge
        );
        if (lane == 0) finish_query(batch, run, state, gate, results);
    }
    if (!entry.is_last()) return;
    __syncwarp();
    clear_state<WarpGroup>(state);
    if (gate != nullptr) clear_state<WarpGroup>(gate);
}

// A batch whose input lies in device memory.
extern "C" __global__ void __launch_bounds__(DRIVE_THREADS, 8) score_batch(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch, Run* run, State* states, u64* candidates,
    u64* results
) {
    score_item<true>(lists, batch, batch.input, run, states, candidates, results);
}

// A batch whose input is small enough to come with the launch: no copy need arrive before it.
extern "C" __global__ void __launch_bounds__(DRIVE_THREADS, 8) score_small_batch(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch, const __grid_constant__ SmallInput small,
    Run* run, State* states, u64* candidates, u64* results
) {
    score_item<false>(lists, batch, small.words, run, states, candidates, results);
}
