// lone.cu: a single query, or one stage of it, from its lists to its results in one launch (drive.cuh describes the search).
// In:   the lists; the query and its drivers, as kernel parameters.
// Out:  the number of results and their keys, best first, written straight to pinned host memory.
//
// The time of a single query is that of dependent reads: block, document, norm, then four for each look-up in a list. So few
// blocks are split in quarters, 32 postings per warp, and each warp goes this way once. The last thread block sorts all
// candidates.
//
// score_lone_long is for queries of more than FEW_TERMS terms, because smaller parameters arrive sooner.
//
// Limits: those of drive.cuh; k up to LONE_THREADS. Shared memory: 17 KiB.
// Launch bounds: 128 threads, at least 8 blocks per multiprocessor; 10 would spill registers.
// Bound by latency. Submitting it as a captured graph gained nothing.

#include "drive.cuh"
#include "merge.cuh"

constexpr u32 LONE_WARPS = LONE_THREADS / WARP;

template <u32 TERMS>
__device__ __forceinline__ void score_alone(
    const Lists& lists, const LoneQuery<TERMS>& lone, State* state, State* gate, u64* candidates, u64* results
) {
    __shared__ union Shared {
        Queue queues[LONE_WARPS];
        Merge<SORT_LEN> merge;
    } shared;
    __shared__ u64 progress;
    if (lone.stage.num_items == 0) return;  // the launch only loads the kernel
    if (blockIdx.x == 0 && threadIdx.x == 0) state->started_ns = clock_ns();
    const LoneStage& stage = lone.stage;
    Query query = lone.query;
    if (stage.needs_all != 0) query.need_all();
    const u32 lane = threadIdx.x % WARP, item = blockIdx.x * LONE_WARPS + threadIdx.x / WARP;
    const bool had_all = gate != nullptr && num_found(gate) >= query.k;  // enough documents have all terms
    Queue& queue = shared.queues[threadIdx.x / WARP];
    bool is_touched = blockIdx.x == 0;  // its start of the query
    if (item < stage.num_items && !had_all) {
        const Driver driver = lone.drivers[find_driver(lone.drivers, stage.num_drivers, item, lane)];
        copy_query(lone.query, stage.needs_all != 0, lone.terms, candidates, stage.capacity, queue, lane);
        drive_item<true, false>(lists, query, driver, item, stage.needs_all != 0, queue, state, lane);
        is_touched |= lane == 0 && queue.is_touched;
    }

    // The barrier puts all of the block's writes before thread 0's sign-off, so the last block to sign off sees those of every
    // block. Most blocks have none to order.
    is_touched = __syncthreads_or(is_touched);
    if (threadIdx.x == 0) progress = is_touched ? sign_off(&state->progress) : atomicAdd(&state->progress, SIGN_OFF);
    __syncthreads();
    if (progress >> 32 != gridDim.x - 1) return;
    __threadfence();
    const u32 found = static_cast<u32>(progress);
    const Times times = {gate != nullptr ? &gate->started_ns : &state->started_ns, clock_ns()};
    // If enough documents have all terms, the stage before has written the results.
    if (!had_all && (stage.is_last != 0 || found >= query.k)) {
        merge_candidates<BlockGroup<LONE_THREADS>>(
            query, state, candidates, found, stage.capacity, results, &times, shared.merge
        );
    }
    if (stage.is_last == 0) return;
    __syncthreads();
    clear_state<BlockGroup<LONE_THREADS>>(state);
    if (gate != nullptr) clear_state<BlockGroup<LONE_THREADS>>(gate);
}

// For queries of up to FEW_TERMS terms. `gate` is null or the state of the stage before. If that has found k documents, this
// stage has no work.
extern "C" __global__ void __launch_bounds__(LONE_THREADS, 8) score_lone(
    const __grid_constant__ Lists lists, const __grid_constant__ LoneQuery<FEW_TERMS> lone, State* state, State* gate,
    u64* candidates, u64* results
) {
    score_alone(lists, lone, state, gate, candidates, results);
}

// Equals score_lone, for queries of more than FEW_TERMS terms.
extern "C" __global__ void __launch_bounds__(LONE_THREADS, 8) score_lone_long(
    const __grid_constant__ Lists lists, const __grid_constant__ LoneQuery<MAX_TERMS> lone, State* state, State* gate,
    u64* candidates, u64* results
) {
    score_alone(lists, lone, state, gate, candidates, results);
}
