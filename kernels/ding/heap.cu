// heap.cu: the k best scores by a heap of degree 512 with up to three levels above them, after Ding et al. 2009, section 8.2.
//
// heap_leaves and heap_level build it bottom-up: the best key of each 512 scores, of each 512 of those, and so on. One warp
// makes a leaf: four loads of sixteen bytes per lane are in flight at once, without a barrier. heap_extract then removes the
// best k times: it descends to the score, removes it, and repairs the branch on its way up.
// In:   scores, from which extracted ones are removed. Out: results[0] their number, results[1 ...] their keys, best first.
// Shared memory: 132 bytes. Launch bounds: 256 threads for leaves, else 512, one per child. Leaves are bound by memory
// bandwidth, extraction by latency: a single thread block descends and ascends k times, with some barriers per level.
// Twin on the host: crates/papers/src/ding/gpu/twin.rs.

#include "ding/ding.cuh"

constexpr u32 HEAP_WARPS = HEAP_DEGREE / WARP;

__device__ __forceinline__ u64 key_of(float score, u32 doc) {
    return __float_as_uint(score) == NO_SCORE ? 0 : make_key(score, doc);
}

__device__ __forceinline__ u64 score_key(const Heap& heap, u32 i) {
    return key_of(heap.scores[i], heap.docs == nullptr ? i : heap.docs[i]);
}

// The largest of the threads' keys, for all of them. All threads call it. Its first barrier protects `maxima` from the call
// before, and its second one precedes their reads.
__device__ __forceinline__ u64 block_max(u64 key, u64 (&maxima)[HEAP_WARPS]) {
    key = warp_max(key);
    __syncthreads();
    if (threadIdx.x % WARP == 0) maxima[threadIdx.x / WARP] = key;
    __syncthreads();
    return warp_max<HEAP_WARPS>(maxima[threadIdx.x % HEAP_WARPS]);
}

// Level 0, one warp per key. Scores and documents are aligned to sixteen bytes.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) heap_leaves(const __grid_constant__ Heap heap) {
    constexpr u32 LOADS = HEAP_DEGREE / (4 * WARP);
    const u32 group = thread_index() / WARP, lane = threadIdx.x % WARP;
    if (group >= heap.lens[0]) return;
    const u32 num_scores = heap.num_scores.get();
    const u32 first = group * HEAP_DEGREE;
    u64 best = 0;
    if (first + HEAP_DEGREE <= num_scores) {
        float4 scores[LOADS];
        uint4 docs[LOADS];
#pragma unroll
        for (u32 i = 0; i < LOADS; ++i) {
            const u32 place = first + 4 * (i * WARP + lane);
            scores[i] = *reinterpret_cast<const float4*>(heap.scores + place);
            docs[i] = heap.docs == nullptr ? make_uint4(place, place + 1, place + 2, place + 3)
                                           : *reinterpret_cast<const uint4*>(heap.docs + place);
        }
#pragma unroll
        for (u32 i = 0; i < LOADS; ++i) {
            best = max(best, max(key_of(scores[i].x, docs[i].x), key_of(scores[i].y, docs[i].y)));
            best = max(best, max(key_of(scores[i].z, docs[i].z), key_of(scores[i].w, docs[i].w)));
        }
    } else {
        for (u32 i = first + lane; i < num_scores; i += WARP) best = max(best, score_key(heap, i));
    }
    best = warp_max(best);
    if (lane == 0) heap.levels[0][group] = best;
}

// A level from the one below it, one thread block per key.
extern "C" __global__ void __launch_bounds__(HEAP_DEGREE) heap_level(const __grid_constant__ Heap heap, u32 level) {
    __shared__ u64 maxima[HEAP_WARPS];
    const u32 i = blockIdx.x * HEAP_DEGREE + threadIdx.x;
    const u64 best = block_max(i < heap.lens[level - 1] ? heap.levels[level - 1][i] : 0, maxima);
    if (threadIdx.x == 0) heap.levels[level][blockIdx.x] = best;
}

// Extracts the best k, in one thread block.
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
            // Keys differ, so exactly one thread has it.
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
