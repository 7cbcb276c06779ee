// histogram.cuh: the histogram of the candidates' scores that tells a bound of the k-th best of them all.
//
// Every candidate that leaves a thread block is counted in the bin of its score. If k candidates are in bin b or above, then
// no document below bin b is among the best k: score_union drops such documents of later tiles, merge_topk such candidates.
#pragma once

#include "tandem.cuh"

// Shared memory of a search for the bin.
template <u32 THREADS>
struct BinSearch {
    u32 warp_sums[THREADS / WARP];
    u32 cut_bin;
};

// The highest bin that, with those above it, holds `wanted` candidates; 0 if all bins together hold fewer. Other thread
// blocks may be counting meanwhile: what they miss here makes the answer lower, never wrong. A barrier begins and ends it.
template <u32 THREADS>
__device__ __forceinline__ u32 find_cut_bin(const u32* bins, u32 wanted, BinSearch<THREADS>& shared) {
    constexpr u32 EACH = SCORE_BINS / THREADS;
    static_assert(EACH % 4 == 0, "a thread reads its bins in quads");
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    // Thread 0 has the highest bins: an ascending scan over threads counts from the best bin down.
    const u32 lowest = SCORE_BINS - EACH * (threadIdx.x + 1);
    u32 counts[EACH];
    u32 sum = 0;
#pragma unroll
    for (u32 j = 0; j < EACH; j += 4) {
        const uint4 quad = __ldcg(reinterpret_cast<const uint4*>(bins + lowest + j));
        counts[j] = quad.x;
        counts[j + 1] = quad.y;
        counts[j + 2] = quad.z;
        counts[j + 3] = quad.w;
        sum += quad.x + quad.y + quad.z + quad.w;
    }
    u32 upto = sum;
#pragma unroll
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        const u32 better = __shfl_up_sync(FULL_WARP, upto, distance);
        if (lane >= distance) upto += better;
    }
    __syncthreads();
    if (lane == WARP - 1) shared.warp_sums[warp] = upto;
    if (threadIdx.x == 0) shared.cut_bin = 0;
    __syncthreads();
    for (u32 i = 0; i < warp; ++i) upto += shared.warp_sums[i];
    if (upto - sum < wanted && wanted <= upto) {
        u32 better = upto - sum;
        u32 bin = lowest + EACH;
#pragma unroll
        for (u32 j = 0; j < EACH; ++j) {
            if (better < wanted) {
                better += counts[EACH - 1 - j];
                --bin;
            }
        }
        shared.cut_bin = bin;
    }
    __syncthreads();
    return shared.cut_bin;
}
