// histogram.cuh: the histogram of the candidates' scores, and the threshold that it tells.
//
// Every candidate is counted in the bin of its score. If k candidates are in bin b or above, then no document below bin b is
// among the best k. Bins begin at the score that is known to be reached, so that they are narrow where it matters.
#pragma once

#include "tandem.cuh"

// The bin of a score. Monotone: a higher bin holds only better scores.
__device__ __forceinline__ u32 score_bin(const Query& query, float score) {
    return min(__float2uint_rz(__fmul_rn(__fsub_rn(score, query.seed), query.bins_per_score)), SCORE_BINS - 1);
}

// A score that is not above any of the bin's: rounding changes these few numbers by less than what is taken off.
__device__ __forceinline__ float bin_edge(const Query& query, u32 bin) {
    const float width = __fdiv_rn(__uint2float_rn(bin), query.bins_per_score) * (1.0f - 1.0f / (1 << 18));
    return (query.seed + width) * (1.0f - 1.0f / (1 << 20));
}

// Raises the threshold to the lower edge of the highest bin that, with those above it, holds k candidates. Others may be
// counting meanwhile: what they miss here makes it lower, never wrong. The whole warp calls it.
__device__ __forceinline__ void raise_threshold(State* state, const Query& query, u32 lane) {
    constexpr u32 EACH = SCORE_BINS / WARP;
    // Lane 0 has the highest bins: an ascending scan over lanes counts from the best bin down.
    const u32 lowest = SCORE_BINS - EACH * (lane + 1);
    u32 counts[EACH];
    u32 sum = 0;
#pragma unroll
    for (u32 j = 0; j < EACH; j += 4) {
        const uint4 quad = __ldcg(reinterpret_cast<const uint4*>(state->bins + lowest + j));
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
    if (upto - sum < query.k && query.k <= upto) {
        u32 better = upto - sum;
        u32 bin = lowest + EACH;
#pragma unroll
        for (u32 j = 0; j < EACH; ++j) {
            if (better < query.k) {
                better += counts[EACH - 1 - j];
                --bin;
            }
        }
        if (bin > 0) atomicMax(&state->threshold, least_key(bin_edge(query, bin)));
    }
}
