// topk.cu: the best k of the candidates of each query, sorted.
// In:   candidates, their histogram by score, the threshold. Out: for each query how many results, and their keys, best first,
//       written straight into the host's pinned memory.
// A thread block takes a query. The final histogram tells a threshold that leaves little more than k candidates; those are
// gathered in shared memory and sorted, few by counting for each how many are better, many by a bitonic network. Should
// more pass than there is room for, because they tie, the cut is selected exactly first.
// Limits: k up to MAX_K. Shared memory: 18 KiB. Launch bounds: 256 threads.

#include "histogram.cuh"
#include "select.cuh"

constexpr u32 SORT_LEN = 2048;           // keys that one thread block sorts
static_assert(2 * MAX_K <= SORT_LEN, "what is sorted must fit the sort");
constexpr u64 TOO_MANY = ~0ull - 1;      // for the number of results: there were more candidates than room

struct GlobalKeys {
    const u64* keys;
    __device__ __forceinline__ u64 operator()(u32 i) const { return __ldg(keys + i); }
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

extern "C" __global__ void __launch_bounds__(MERGE_THREADS) merge_topk(
    const __grid_constant__ Batch batch, const __grid_constant__ LoneQuery lone, State* states, State* gates,
    const u64* candidates, u64* results, u32 result_stride
) {
    __shared__ u64 sorted[SORT_LEN];
    __shared__ Selection selection;
    __shared__ u32 filled;
    __shared__ u64 floor;

    const u32 number = blockIdx.x, lane = threadIdx.x % WARP;
    Query query = batch.queries != nullptr ? batch.queries[number] : lone.query;
    // For AND+OR: where enough documents have all terms, the union was not looked for.
    const bool had_all = gates != nullptr && gates[number].count >= query.k;
    if (had_all || batch.needs_all != 0) query.need_all();
    State* state = had_all ? gates + number : states + number;
    u64* result = results + static_cast<u64>(number) * result_stride;
    const u32 n = state->count;
    if (n > batch.capacity) {
        if (threadIdx.x == 0) *result = TOO_MANY;
        return;
    }
    if (threadIdx.x < WARP) {
        if (n > query.k) raise_threshold(state, query, lane);
        __syncwarp();
        if (lane == 0) {
            floor = read_threshold(state, query.seed);
            filled = 0;
        }
    }
    __syncthreads();
    const GlobalKeys keys = {candidates + static_cast<u64>(number) * batch.capacity};
    u64 cut = floor;
    for (;;) {
        for (u32 i = threadIdx.x; i < n; i += MERGE_THREADS) {
            const u64 key = keys(i);
            if (key >= cut) {
                const u32 slot = atomicAdd(&filled, 1);
                if (slot < SORT_LEN) sorted[slot] = key;
            }
        }
        __syncthreads();
        if (filled <= SORT_LEN) break;
        cut = select_cut(Dealt<MERGE_THREADS, GlobalKeys>{keys, n}, query.k, cut, selection);
        if (threadIdx.x == 0) filled = 0;
        __syncthreads();
    }
    const u32 count = filled, num_results = min(count, query.k);
    if (count <= MERGE_THREADS) {
        const u64 key = threadIdx.x < count ? sorted[threadIdx.x] : 0;
        u32 better = 0;
        for (u32 i = 0; i < count; ++i) better += sorted[i] > key;
        if (threadIdx.x < count && better < num_results) result[1 + better] = key;
    } else {
        u32 len = MERGE_THREADS;
        while (len < count) len *= 2;
        for (u32 i = count + threadIdx.x; i < len; i += MERGE_THREADS) sorted[i] = 0;
        __syncthreads();
        sort_descending(sorted, len);
        for (u32 i = threadIdx.x; i < num_results; i += MERGE_THREADS) result[1 + i] = sorted[i];
    }
    if (threadIdx.x == 0) *result = num_results;
}
