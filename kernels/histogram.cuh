// histogram.cuh: the histogram of the candidates' scores, and the threshold that it tells.
//
// A document that reaches the threshold is counted in the bin of its score, once. If k documents are in bin b or above, then no
// document below bin b is among the best k. Bins begin at the score that is known to be reached, so that they are narrow where
// it matters. Counts only grow, and nobody waits for them: a count that is missed makes the threshold lower, never wrong.
#pragma once

#include "tandem.cuh"

// The bin of a score. Monotone: a higher bin holds only better scores.
__device__ __forceinline__ u32 score_bin(const Query& query, float score) {
    return min(__float2uint_rz(__fmul_rn(__fsub_rn(score, query.seed), query.bins_per_score)), SCORE_BINS - 1);
}

// A score that is not above any of the bin's: what is rounded in score_bin and here, 2^-24 each time, is less than what is
// taken off, 2^-18 of the distance from the seed and 2^-20 of the sum.
__device__ __forceinline__ float bin_edge(const Query& query, u32 bin) {
    const float width = __fdiv_rn(__uint2float_rn(bin), query.bins_per_score) * (1.0f - 1.0f / (1 << 18));
    return (query.seed + width) * (1.0f - 1.0f / (1 << 20));
}

// Raises the threshold to the lower edge of the highest bin that, with those above it, holds k documents. The whole warp calls
// it. To keep the counts in between takes sixteen registers, and not to keep them one more look at the memory.
template <bool KEEPS_COUNTS = true>
__device__ __forceinline__ void raise_threshold(State* state, const Query& query, u32 lane) {
    constexpr u32 BINS_A_LANE = SCORE_BINS / WARP;
    // Lane 0 has the highest bins: an ascending scan over lanes counts from the best bin down.
    const u32 lowest = SCORE_BINS - BINS_A_LANE * (lane + 1);
    const uint4* quads = reinterpret_cast<const uint4*>(state->bins + lowest);
    u32 counts[BINS_A_LANE];
    u32 sum = 0;
#pragma unroll
    for (u32 j = 0; j < BINS_A_LANE / 4; ++j) {
        const uint4 quad = __ldcg(quads + j);
        counts[4 * j] = quad.x;
        counts[4 * j + 1] = quad.y;
        counts[4 * j + 2] = quad.z;
        counts[4 * j + 3] = quad.w;
        sum += quad.x + quad.y + quad.z + quad.w;
    }
    const u32 upto = warp_prefix(sum, lane);
    if (upto - sum < query.k && query.k <= upto) {
        u32 better = upto - sum;
        u32 bin = lowest + BINS_A_LANE;
        if (KEEPS_COUNTS) {
#pragma unroll
            for (u32 j = 0; j < BINS_A_LANE; ++j) {
                if (better < query.k) {
                    better += counts[BINS_A_LANE - 1 - j];
                    --bin;
                }
            }
        } else {
            // The lane looks at its bins again, from the best one down. They may have grown meanwhile: then their number
            // reaches k all the sooner.
            while (better < query.k && bin > lowest) better += __ldcg(state->bins + --bin);
        }
        if (bin > 0) atomicMax(&state->threshold, least_key(bin_edge(query, bin)));
    }
}
