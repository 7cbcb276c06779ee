// lone.cu: a single query, or a stage of one, from its lists to its results in one launch (drive.cuh says how).
// In:   the lists; the query and what drives it, as kernel parameters. Out: how many results there are, and their keys, best
//       first, straight into the host's pinned memory.
//
// A lone query's time is that of reads that wait for each other: block, document, norm, then four for each list it is looked
// up in. So few blocks are shared out by quarters, 32 postings a warp, that no warp goes this way twice. The thread block that
// is done last sorts what all have found.
//
// score_lone_long is for queries of more than FEW_TERMS terms: parameters that are no larger arrive sooner.
//
// Limits: those of drive.cuh; k up to LONE_THREADS. Shared memory: 17 KiB.
// Launch bounds: 128 threads, 8 blocks a multiprocessor: 64 registers; 10 blocks would spill some.
// Bound by latency (docs/results/gpu.md). Submitting it as a captured graph gained nothing (docs/tried.md).

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
    if (lone.stage.num_items == 0) return;  // only to be loaded
    if (blockIdx.x == 0 && threadIdx.x == 0) state->started_ns = clock_ns();
    const LoneStage& stage = lone.stage;
    Query query = lone.query;
    if (stage.needs_all != 0) query.need_all();
    const u32 lane = threadIdx.x % WARP, item = blockIdx.x * LONE_WARPS + threadIdx.x / WARP;
    const bool had_all = gate != nullptr && num_found(gate) >= query.k;  // documents with all terms were enough
    if (item < stage.num_items && !had_all) {
        Queue& queue = shared.queues[threadIdx.x / WARP];
        const Driver driver = lone.drivers[find_driver(lone.drivers, stage.num_drivers, item, lane)];
        copy_query(lone.query, stage.needs_all != 0, lone.terms, candidates, stage.capacity, queue, lane);
        drive_item<true>(lists, query, driver, item, stage.needs_all != 0, queue, state, lane);
    }

    // The barrier puts all of the block's candidates and counts before thread 0's sign-off: the block that signs off last sees
    // those of every block.
    __syncthreads();
    if (threadIdx.x == 0) progress = sign_off(&state->progress);
    __syncthreads();
    if (progress >> 32 != gridDim.x - 1) return;
    __threadfence();
    const u32 found = static_cast<u32>(progress);
    const Times times = {gate != nullptr ? &gate->started_ns : &state->started_ns, clock_ns()};
    // With enough documents that have all terms, the stage before has written the results.
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

// For queries of up to FEW_TERMS terms. `gate` is null, or the state of the stage before: where that has found k documents,
// this one has nothing to do.
extern "C" __global__ void __launch_bounds__(LONE_THREADS, 8) score_lone(
    const __grid_constant__ Lists lists, const __grid_constant__ LoneQuery<FEW_TERMS> lone, State* state, State* gate,
    u64* candidates, u64* results
) {
    score_alone(lists, lone, state, gate, candidates, results);
}

// The same for queries of more than FEW_TERMS terms.
extern "C" __global__ void __launch_bounds__(LONE_THREADS, 8) score_lone_long(
    const __grid_constant__ Lists lists, const __grid_constant__ LoneQuery<MAX_TERMS> lone, State* state, State* gate,
    u64* candidates, u64* results
) {
    score_alone(lists, lone, state, gate, candidates, results);
}
