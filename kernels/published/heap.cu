// heap.cu: the k best scores by a heap of degree 512 with up to three levels above them, after Ding et al. 2009, section 8.2.
//
// heap_leaves and heap_level build it from below: the best key of each 512 scores, of each 512 of those, and so on.
// heap_extract then takes out the best k times: it goes down to the score, removes it, and mends the branch on its way up.
// In:   scores, of which those taken out are removed. Out: results[0] how many, results[1 ...] their keys, best first.
// Shared memory: 132 bytes. Launch bounds: 512 threads, one child each. Bound by latency: extraction is a single thread block's
// way down and up, k times, some barriers a level. Twin on the host: exec/gpu/published/twin.rs.

#include "published/published.cuh"

constexpr u32 HEAP_WARPS = HEAP_DEGREE / WARP;

__device__ __forceinline__ u64 score_key(const Heap& heap, u32 i) {
    const float score = heap.scores[i];
    if (__float_as_uint(score) == NO_SCORE) return 0;
    return make_key(score, heap.docs == nullptr ? i : heap.docs[i]);
}

// The largest of the threads' keys, for all of them. All threads call it; its first barrier keeps `maxima` until the call
// before has been read, its second one is before they are read in this.
__device__ __forceinline__ u64 block_max(u64 key, u64 (&maxima)[HEAP_WARPS]) {
    key = warp_max(key);
    __syncthreads();
    if (threadIdx.x % WARP == 0) maxima[threadIdx.x / WARP] = key;
    __syncthreads();
    return warp_max<HEAP_WARPS>(maxima[threadIdx.x % HEAP_WARPS]);
}

// Level 0: a thread block for each of its keys.
extern "C" __global__ void __launch_bounds__(HEAP_DEGREE) heap_leaves(const __grid_constant__ Heap heap) {
    __shared__ u64 maxima[HEAP_WARPS];
    const u32 i = blockIdx.x * HEAP_DEGREE + threadIdx.x;
    const u64 best = block_max(i < heap.num_scores.get() ? score_key(heap, i) : 0, maxima);
    if (threadIdx.x == 0) heap.levels[0][blockIdx.x] = best;
}

// A level from the one below it: a thread block for each of its keys.
extern "C" __global__ void __launch_bounds__(HEAP_DEGREE) heap_level(const __grid_constant__ Heap heap, u32 level) {
    __shared__ u64 maxima[HEAP_WARPS];
    const u32 i = blockIdx.x * HEAP_DEGREE + threadIdx.x;
    const u64 best = block_max(i < heap.lens[level - 1] ? heap.levels[level - 1][i] : 0, maxima);
    if (threadIdx.x == 0) heap.levels[level][blockIdx.x] = best;
}

// Takes out the best k, by one thread block.
extern "C" __global__ void __launch_bounds__(HEAP_DEGREE) heap_extract(const __grid_constant__ Heap heap, u32 k, u64* results) {
    __shared__ u64 maxima[HEAP_WARPS];
    __shared__ u32 child;
    const u32 num_scores = heap.num_scores.get();
    const u32 top = heap.num_levels - 1;
    u32 count = 0;
    for (; count < k; ++count) {
        u32 group = 0;
        u64 best = 0;
        for (u32 level = top + 1; level-- > 0;) {
            const u32 i = group * HEAP_DEGREE + threadIdx.x;
            const u64 key = i < heap.lens[level] ? heap.levels[level][i] : 0;
            if (level == top) best = block_max(key, maxima);
            if (best == 0) break;
            // Keys differ: exactly one thread has it.
            if (key == best) child = i;
            __syncthreads();
            group = child;
            __syncthreads();
        }
        if (best == 0) break;
        if (threadIdx.x == 0) results[1 + count] = best;

        const u32 i = group * HEAP_DEGREE + threadIdx.x;
        u64 key = i < num_scores ? score_key(heap, i) : 0;
        if (key == best) {
            heap.scores[i] = __uint_as_float(NO_SCORE);
            key = 0;
        }
        for (u32 level = 0; level <= top; ++level) {
            const u64 rest = block_max(key, maxima);
            if (threadIdx.x == 0) heap.levels[level][group] = rest;
            const u32 parent = group / HEAP_DEGREE;
            const u32 sibling = parent * HEAP_DEGREE + threadIdx.x;
            key = sibling == group ? rest : sibling < heap.lens[level] ? heap.levels[level][sibling] : 0;
            group = parent;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) results[0] = count;
}
