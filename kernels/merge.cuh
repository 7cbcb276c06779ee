// merge.cuh: the best k of a query's candidates, sorted, by a thread block or a warp. Called once all of them are written.
//
// The final histogram tells a threshold that leaves little more than k candidates; those are gathered in shared memory and
// sorted, few by counting for each how many are better, many by a bitonic network. Should more pass than there is room for,
// because they tie, the cut is selected exactly first.
#pragma once

#include "histogram.cuh"
#include "select.cuh"

constexpr u32 SORT_LEN = 2048;           // keys that a thread block sorts, ...
constexpr u32 WARP_SORT_LEN = 256;       // ... and a warp
static_assert(2 * MAX_K <= SORT_LEN && 2 * WARP_K <= WARP_SORT_LEN, "what is sorted must fit the sort");

// Shared memory of a merge by a group that sorts LEN keys.
template <u32 LEN>
struct Merge {
    u64 sorted[LEN];
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

// When a lone query began and when all its documents had been scored, by the device's clock.
struct Times {
    const u64* started_ns;
    u64 scored_ns;
};

// Writes how many results there are, of `n` candidates, to result[0] (TOO_MANY if `n` exceeds `capacity`) and their keys, best
// first, behind it: into the host's memory, in any order; the host looks at each word until it is there. With `times`, the
// nanoseconds since each are written to result[1 + MAX_K] and the word behind it. A thread awaits AT_ONCE keys together. All threads of the group call
// it, and it begins with no barrier of its own: what others have written is to be seen by then.
template <class Group, u32 AT_ONCE = 8, u32 LEN>
__device__ __forceinline__ void merge_candidates(
    const Query& query, State* state, const u64* candidates, u32 n, u32 capacity, u64* result, const Times* times,
    Merge<LEN>& shared
) {
    constexpr u32 THREADS = Group::SIZE;
    const u32 rank = Group::rank(), lane = threadIdx.x % WARP;
    if (rank < WARP) {
        // A key a thread is sorted at once: nothing need be dropped before.
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
                    if (read[j] >= cut) {  // `cut` is at least 1, and 0 no key
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

// Clears what the next query will find. All threads of the group call it, once nobody else looks at the state.
template <class Group>
__device__ __forceinline__ void clear_state(State* state) {
    uint4* words = reinterpret_cast<uint4*>(state);
    for (u32 i = Group::rank(); i < sizeof(State) / sizeof(uint4); i += Group::SIZE) words[i] = make_uint4(0, 0, 0, 0);
}
