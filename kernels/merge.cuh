// merge.cuh: the best k of a query's candidates, sorted by a thread block or a warp, after all of them were written.
//
// The final histogram gives a threshold that leaves little more than k candidates. They are gathered in shared memory and
// sorted: few by counting the better ones of each, many by a bitonic network. If ties leave more than there is room for, an
// exact selection comes first.
#pragma once

#include "histogram.cuh"
#include "select.cuh"

constexpr u32 SORT_LEN = 2048;           // keys that a thread block sorts
constexpr u32 WARP_SORT_LEN = 256;       // keys that a warp sorts
static_assert(2 * MAX_K <= SORT_LEN && 2 * WARP_K <= WARP_SORT_LEN, "what is sorted must fit the sort");

// Shared memory of a merge by a group that sorts LEN keys.
template <u32 LEN>
struct Merge {
    u64 sorted[LEN];
    Selection selection;
    u64 floor;
    u32 filled;
};

// Keys that other warps of this grid may have written, read past the L1 cache, which is not coherent with them.
struct GlobalKeys {
    const u64* keys;
    __device__ __forceinline__ u64 operator()(u32 i) const { return __ldcg(keys + i); }
};

// Writes a word of host memory with one store, because the host may be polling it.
__device__ __forceinline__ void write_result(u64* word, u64 value) { *static_cast<volatile u64*>(word) = value; }

// Sorts `len` keys (a power of two), best first, by a bitonic network.
template <class Group>
__device__ __forceinline__ void sort_descending(u64* keys, u32 len) {
    for (u32 size = 2; size <= len; size *= 2) {
        for (u32 stride = size / 2; stride > 0; stride /= 2) {
            for (u32 i = Group::rank(); i < len / 2; i += Group::SIZE) {
                const u32 left = 2 * i - (i & (stride - 1));
                const u64 a = keys[left], b = keys[left + stride];
                const bool descending = (left & size) == 0;
                if ((a < b) == descending) {
                    keys[left] = b;
                    keys[left + stride] = a;
                }
            }
            Group::sync();
        }
    }
}

// Start of a single query, and end of its scoring, on the device's clock.
struct Times {
    const u64* started_ns;
    u64 scored_ns;
};

// Writes the number of results, of `n` candidates, to result[0] (TOO_MANY if `n` exceeds `capacity`), and their keys, best
// first, behind it. The words go to host memory in any order, and the host polls each one. With `times`, the nanoseconds since
// each time go to result[1 + MAX_K] and the next word. A thread awaits AT_ONCE keys together. All threads of the group call it.
// It begins without a barrier, so writes of other threads must be visible before.
template <class Group, u32 AT_ONCE = 8, u32 LEN>
__device__ __forceinline__ void merge_candidates(
    const Query& query, State* state, const u64* candidates, u32 n, u32 capacity, u64* result, const Times* times,
    Merge<LEN>& shared
) {
    constexpr u32 THREADS = Group::SIZE;
    const u32 rank = Group::rank(), lane = threadIdx.x % WARP;
    if (rank < WARP) {
        // With at most one key per thread, sorting all keys is quicker than filtering.
        if (n > THREADS) raise_threshold(state, query, lane);
        __syncwarp();
        if (lane == 0) {
            shared.floor = n > THREADS ? read_threshold(state, query.seed) : 1;
            shared.filled = 0;
        }
    }
    Group::sync();
    u32 num_results = 0;
    if (n <= capacity) {
        const GlobalKeys keys = {candidates};
        u64 cut = shared.floor;
        for (;;) {
            for (u32 first = rank; first < n; first += AT_ONCE * THREADS) {
                u64 read[AT_ONCE];
#pragma unroll
                for (u32 j = 0; j < AT_ONCE; ++j) read[j] = first + j * THREADS < n ? keys(first + j * THREADS) : 0;
#pragma unroll
                for (u32 j = 0; j < AT_ONCE; ++j) {
                    if (read[j] >= cut) {  // `cut` is at least 1, and 0 is no key
                        const u32 slot = atomicAdd(&shared.filled, 1);
                        if (slot < LEN) shared.sorted[slot] = read[j];
                    }
                }
            }
            Group::sync();
            if (shared.filled <= LEN) break;
            cut = select_cut<Group>(StripedKeys<Group, GlobalKeys>{keys, n}, query.k, cut, shared.selection);
            if (rank == 0) shared.filled = 0;
            Group::sync();
        }
        const u32 count = shared.filled;
        num_results = min(count, query.k);
        if (count <= THREADS) {
            const u64 key = rank < count ? shared.sorted[rank] : 0;
            u32 better = 0;
            for (u32 i = 0; i < count; ++i) better += shared.sorted[i] > key;
            if (rank < count && better < num_results) write_result(result + 1 + better, key);
        } else {
            u32 len = THREADS;
            while (len < count) len *= 2;
            for (u32 i = count + rank; i < len; i += THREADS) shared.sorted[i] = 0;
            Group::sync();
            sort_descending<Group>(shared.sorted, len);
            for (u32 i = rank; i < num_results; i += THREADS) write_result(result + 1 + i, shared.sorted[i]);
        }
    }
    Group::sync();
    if (rank == 0) {
        if (times != nullptr) {
            const u64 now_ns = clock_ns();
            write_result(result + 1 + MAX_K, now_ns - __ldcg(times->started_ns));
            write_result(result + 2 + MAX_K, now_ns - times->scored_ns);
        }
        write_result(result, n <= capacity ? num_results : TOO_MANY);
    }
}

// Clears the state for the next query. All threads of the group call it after the last read of the state.
template <class Group>
__device__ __forceinline__ void clear_state(State* state) {
    uint4* words = reinterpret_cast<uint4*>(state);
    for (u32 i = Group::rank(); i < sizeof(State) / sizeof(uint4); i += Group::SIZE) words[i] = make_uint4(0, 0, 0, 0);
}
