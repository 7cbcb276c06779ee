// histogram.cuh: the histogram of the candidates' scores, and the threshold derived from it.
//
// Each document that reaches the threshold is counted once in the bin of its score. If k documents are in bin b or above, no
// document below bin b is among the best k. Bins begin at the seed, which keeps them narrow. Counts only grow and need no
// synchronisation: a missed count lowers the threshold but never makes it wrong.
#pragma once

#include "tandem.cuh"

// The bin of a score. It is monotone: higher bins hold only better scores.
__device__ __forceinline__ u32 score_bin(const Query& query, float score) {
    return min(__float2uint_rz(__fmul_rn(__fsub_rn(score, query.seed), query.bins_per_score)), SCORE_BINS - 1);
}

// A lower bound of the bin's scores. The roundings in score_bin and here, 2^-24 each, are less than the margin: 2^-18 of the
// distance from the seed and 2^-20 of the sum.
__device__ __forceinline__ float bin_edge(const Query& query, u32 bin) {
    const float width = __fdiv_rn(__uint2float_rn(bin), query.bins_per_score) * (1.0f - 1.0f / (1 << 18));
    return (query.seed + width) * (1.0f - 1.0f / (1 << 20));
}

// Raises the threshold to the lower edge of the highest bin at or above which k documents are. The whole warp calls it.
// KEEPS_COUNTS takes sixteen registers and saves a second read of the bins.
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
            // The lane reads its bins again, best one first. If they have grown since then, the sum reaches k sooner.
            while (better < query.k && bin > lowest) better += __ldcg(state->bins + --bin);
        }
        if (bin > 0) raise_to(state, least_key(bin_edge(query, bin)));
    }
}

// Raises the threshold, or waits a while for the warp that does so. If many warps of a query read the bins at once, each takes
// ten times as long as alone. The whole warp calls it.
__device__ __forceinline__ void raise_in_turn(State* state, const Query& query, u32 lane) {
    constexpr u32 MOST_LOOKS = 16;
    u32 looks = 0;
    if (lane == 0) {
        u32 is_raised = atomicExch(&state->is_raised, 1);
#pragma unroll 1
        // An old value costs looks only. With a relaxed load in assembler, single queries take 3 % longer on the device.
        for (; is_raised != 0 && looks < MOST_LOOKS; ++looks) is_raised = __ldcg(&state->is_raised);
    }
    if (__any_sync(FULL_WARP, looks != 0)) return;
    raise_threshold(state, query, lane);
    __syncwarp();
    // The new threshold comes first, for those who wait.
    if (lane == 0) asm volatile("st.release.gpu.global.u32 [%0], 0;" ::"l"(&state->is_raised) : "memory");
}
