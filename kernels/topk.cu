// topk.cu: the best k of the candidates that score_union or score_intersect emitted, sorted.
// In:   candidates and their histogram by score. Out: results[0] how many, results[1 ...] their keys, best first, written
//       straight into the host's pinned memory.
// Few candidates (the usual case) are left to the first thread block, which selects and sorts. Many are filtered first, by all blocks: the
// histogram tells the bin that the k-th best is in, and only what is in it or above goes on, to the block that ends last.
// That is right for any number of candidates: should too many share the bin, the last block selects exactly among them.
// Limits: k up to MAX_K. Shared memory: 18 KiB. Launch bounds: 512 threads, 2 blocks a multiprocessor.

#include "histogram.cuh"
#include "select.cuh"

constexpr u32 SORT_LEN = 2048;  // keys that one thread block sorts
constexpr u32 SMALL_SORT = 128; // so few keys are sorted whatever k is
static_assert(2 * MAX_K <= SORT_LEN, "what is sorted must fit the sort");

// Keys that other thread blocks of this grid wrote: read past the L1 cache, which does not see them.
struct GlobalKeys {
    const u64* keys;
    __device__ __forceinline__ u64 operator()(u32 i) const { return __ldcg(keys + i); }
};

// Sorts `len` (a power of two) keys, best first: a bitonic network.
__device__ __forceinline__ void sort_descending(u64* keys, u32 len) {
    for (u32 size = 2; size <= len; size *= 2) {
        for (u32 stride = size / 2; stride > 0; stride /= 2) {
            for (u32 i = threadIdx.x; i < len / 2; i += MERGE_THREADS) {
                const u32 left = 2 * i - (i & (stride - 1));
                const u64 a = keys[left], b = keys[left + stride];
                const bool descending = (left & size) == 0;
                if ((a < b) == descending) {
                    keys[left] = b;
                    keys[left + stride] = a;
                }
            }
            __syncthreads();
        }
    }
}

extern "C" __global__ void __launch_bounds__(MERGE_THREADS, 2) merge_topk(
    const __grid_constant__ Query query, State* state, const u64* candidates, u64* survivors, u64* results
) {
    __shared__ u64 sorted[SORT_LEN];
    __shared__ Selection selection;
    __shared__ BinSearch<MERGE_THREADS> bin_search;
    __shared__ u32 filled;
    __shared__ bool is_last;

    const bool is_union = query.mode == MODE_OR || (query.mode == MODE_AND_OR && state->matches < query.k);
    const Channel& channel = is_union ? state->union_ : state->intersection;
    GlobalKeys keys = {candidates};
    u32 n = channel.count;
    const u64 floor = read_threshold(state);

    if (n <= SORT_LEN) {
        if (blockIdx.x != 0) return;
    } else {
        const u32 num_blocks = min((n - 1) / (4 * MERGE_THREADS) + 1, gridDim.x);
        if (blockIdx.x >= num_blocks) return;
        const u32 cut_bin = find_cut_bin<MERGE_THREADS>(channel.bins, query.k, bin_search);
#pragma unroll 4
        for (u32 i = blockIdx.x * MERGE_THREADS + threadIdx.x; i < n; i += num_blocks * MERGE_THREADS) {
            const u64 key = candidates[i];
            if (key >= floor && score_bin(key, query.bins_per_score) >= cut_bin) {
                survivors[atomicAdd(&state->num_survivors, 1)] = key;
            }
        }
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) is_last = atomicAdd(&state->tickets, 1) == num_blocks - 1;
        __syncthreads();
        if (!is_last) return;
        __threadfence();
        keys.keys = survivors;
        n = __ldcg(&state->num_survivors);
    }

    // Selecting first is cheaper than sorting what is not wanted, and the only way if it exceeds the sort's memory.
    u64 cut = floor;
    if (n > max(2 * query.k, SMALL_SORT)) cut = select_cut(Dealt<MERGE_THREADS, GlobalKeys>{keys, n}, query.k, floor, selection);
    if (threadIdx.x == 0) filled = 0;
    __syncthreads();
    for (u32 i = threadIdx.x; i < n; i += MERGE_THREADS) {
        const u64 key = keys(i);
        if (key >= cut) sorted[atomicAdd(&filled, 1)] = key;
    }
    __syncthreads();
    const u32 count = filled;
    u32 len = 2;
    while (len < count) len *= 2;
    for (u32 i = count + threadIdx.x; i < len; i += MERGE_THREADS) sorted[i] = 0;
    __syncthreads();
    sort_descending(sorted, len);

    const u32 num_results = min(count, query.k);
    for (u32 i = threadIdx.x; i < num_results; i += MERGE_THREADS) results[1 + i] = sorted[i];
    if (threadIdx.x == 0) results[0] = num_results;
}
