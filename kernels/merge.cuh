// merge.cuh: the best k of a query's candidates, sorted, by one thread block. Called once all of them are written.
//
// The final histogram tells a threshold that leaves little more than k candidates; those are gathered in shared memory and
// sorted, few by counting for each how many are better, many by a bitonic network. Should more pass than there is room for,
// because they tie, the cut is selected exactly first.
#pragma once

#include "histogram.cuh"
#include "select.cuh"

constexpr u32 SORT_LEN = 2048;           // keys that one thread block sorts
static_assert(2 * MAX_K <= SORT_LEN, "what is sorted must fit the sort");
constexpr u32 AT_ONCE = 8;               // keys that a thread awaits together
constexpr u64 TOO_MANY = ~0ull - 1;      // in place of the number of results: there were more candidates than room

// Shared memory of a merge.
struct Merge {
    u64 sorted[SORT_LEN];
    Selection selection;
    u64 floor;
    u32 filled;
};

// Keys that others of this grid may have written: read past the L1 cache, which does not see them.
struct GlobalKeys {
    const u64* keys;
    __device__ __forceinline__ u64 operator()(u32 i) const { return __ldcg(keys + i); }
};

// Writes a word of the host's memory at once: the host may be looking at it.
__device__ __forceinline__ void write_result(u64* word, u64 value) { *static_cast<volatile u64*>(word) = value; }

// Sorts `len` (a power of two) keys, best first: a bitonic network.
template <u32 THREADS>
__device__ __forceinline__ void sort_descending(u64* keys, u32 len) {
    for (u32 size = 2; size <= len; size *= 2) {
        for (u32 stride = size / 2; stride > 0; stride /= 2) {
            for (u32 i = threadIdx.x; i < len / 2; i += THREADS) {
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

// When a lone query began and when all its documents had been scored, by the device's clock.
struct Times {
    const u64* started_ns;
    u64 scored_ns;
};

// Writes how many results there are, of `n` candidates, to result[0] (TOO_MANY if `n` exceeds `capacity`) and their keys, best
// first, behind it: into the host's memory, in any order; the host looks at each word until it is there. With `times`, the
// nanoseconds since each are written to result[1 + MAX_K] and the word behind it. All threads of the block call it.
template <u32 THREADS>
__device__ __forceinline__ void merge_candidates(
    const Query& query, State* state, const u64* candidates, u32 n, u32 capacity, u64* result, const Times* times,
    Merge& shared
) {
    const u32 lane = threadIdx.x % WARP;
    if (threadIdx.x < WARP) {
        // A key a thread is sorted at once: nothing need be dropped before.
        if (n > THREADS) raise_threshold(state, query, lane);
        __syncwarp();
        if (lane == 0) {
            shared.floor = n > THREADS ? read_threshold(state, query.seed) : 1;
            shared.filled = 0;
        }
    }
    __syncthreads();
    u32 num_results = 0;
    if (n <= capacity) {
        const GlobalKeys keys = {candidates};
        u64 cut = shared.floor;
        for (;;) {
            for (u32 first = threadIdx.x; first < n; first += AT_ONCE * THREADS) {
                u64 read[AT_ONCE];
#pragma unroll
                for (u32 j = 0; j < AT_ONCE; ++j) read[j] = first + j * THREADS < n ? keys(first + j * THREADS) : 0;
#pragma unroll
                for (u32 j = 0; j < AT_ONCE; ++j) {
                    if (read[j] >= cut) {  // `cut` is at least 1, and 0 no key
                        const u32 slot = atomicAdd(&shared.filled, 1);
                        if (slot < SORT_LEN) shared.sorted[slot] = read[j];
                    }
                }
            }
            __syncthreads();
            if (shared.filled <= SORT_LEN) break;
            cut = select_cut(StripedKeys<THREADS, GlobalKeys>{keys, n}, query.k, cut, shared.selection);
            if (threadIdx.x == 0) shared.filled = 0;
            __syncthreads();
        }
        const u32 count = shared.filled;
        num_results = min(count, query.k);
        if (count <= THREADS) {
            const u64 key = threadIdx.x < count ? shared.sorted[threadIdx.x] : 0;
            u32 better = 0;
            for (u32 i = 0; i < count; ++i) better += shared.sorted[i] > key;
            if (threadIdx.x < count && better < num_results) write_result(result + 1 + better, key);
        } else {
            u32 len = THREADS;
            while (len < count) len *= 2;
            for (u32 i = count + threadIdx.x; i < len; i += THREADS) shared.sorted[i] = 0;
            __syncthreads();
            sort_descending<THREADS>(shared.sorted, len);
            for (u32 i = threadIdx.x; i < num_results; i += THREADS) write_result(result + 1 + i, shared.sorted[i]);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (times != nullptr) {
            const u64 now_ns = clock_ns();
            write_result(result + 1 + MAX_K, now_ns - __ldcg(times->started_ns));
            write_result(result + 2 + MAX_K, now_ns - times->scored_ns);
        }
        write_result(result, n <= capacity ? num_results : TOO_MANY);
    }
}
