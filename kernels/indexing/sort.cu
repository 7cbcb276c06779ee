// sort.cu: one pass of a stable radix sort of tokens by eight bits of their terms.
//
// A pass has three steps: counts of each digit per tile, prefix sums by digit and tile, and the move of each token. In a tile
// each warp has consecutive tokens and takes 32 at a time. Lanes with the same digit find each other by a match and are counted
// in the warp's row of shared memory.
// In:   tokens (from), their number, the lowest bit of the digit.
// Out:  tokens (to).
// Shared memory: 9 KiB. Launch bounds: 256 threads. Bound by memory.

#include "indexing/indexing.cuh"

__device__ __forceinline__ u32 digit_of(u64 token, u32 bit) { return u32(token >> bit) & (DIGITS - 1); }

// Counts each digit in each tile, with one row of tiles per digit.
extern "C" __global__ void __launch_bounds__(INDEXING_THREADS)
count_digits(const u64* tokens, u32 num_tokens, u32 bit, u32* counts, u32 num_tiles) {
    __shared__ u32 tile_counts[DIGITS];
    tile_counts[threadIdx.x] = 0;
    __syncthreads();
    const u32 first = blockIdx.x * SORT_TILE;
#pragma unroll 4
    for (u32 i = 0; i < SORT_TOKENS; i++) {
        const u32 at = first + i * INDEXING_THREADS + threadIdx.x;
        if (at < num_tokens) atomicAdd(tile_counts + digit_of(tokens[at], bit), 1);
    }
    __syncthreads();
    counts[threadIdx.x * num_tiles + blockIdx.x] = tile_counts[threadIdx.x];
}

// One thread block per digit: replaces its counts by the sums of earlier tiles, and writes their total.
extern "C" __global__ void __launch_bounds__(INDEXING_THREADS) scan_digits(u32* counts, u32 num_tiles, u32* totals) {
    u32* const row = counts + blockIdx.x * num_tiles;
    u32 carry = 0;
    for (u32 first = 0; first < num_tiles; first += INDEXING_THREADS) {
        const u32 tile = first + threadIdx.x;
        const Prefix prefix = block_prefix(tile < num_tiles ? row[tile] : 0);
        if (tile < num_tiles) row[tile] = carry + prefix.before;
        carry += prefix.sum;
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = carry;
}

extern "C" __global__ void __launch_bounds__(INDEXING_THREADS)
scatter(const u64* tokens, u32 num_tokens, u32 bit, const u32* counts, u32 num_tiles, const u32* totals, u64* sorted) {
    // Counts of each digit per warp; later the place of its next token with the digit.
    __shared__ u32 warp_counts[INDEXING_WARPS][DIGITS];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (u32 i = 0; i < INDEXING_WARPS; i++) warp_counts[i][threadIdx.x] = 0;
    __syncthreads();

    const u32 first = blockIdx.x * SORT_TILE + warp * (SORT_TOKENS * WARP) + lane;
    u64 mine[SORT_TOKENS];
    u32 ranks[SORT_TOKENS];
#pragma unroll
    for (u32 i = 0; i < SORT_TOKENS; i++) {
        const u32 at = first + i * WARP;
        const bool is_there = at < num_tokens;
        mine[i] = is_there ? tokens[at] : 0;
        const u32 digit = is_there ? digit_of(mine[i], bit) : DIGITS;
        const u32 peers = __match_any_sync(FULL_WARP, digit);
        const u32 before = __popc(peers & (1u << lane) - 1);
        const u32 count = is_there ? warp_counts[warp][digit] : 0;
        ranks[i] = count + before;
        __syncwarp();
        if (is_there && before == 0) warp_counts[warp][digit] = count + __popc(peers);
        __syncwarp();
    }
    // One thread per digit. The prefix also waits for all warps.
    u32 place = block_prefix(totals[threadIdx.x]).before + counts[threadIdx.x * num_tiles + blockIdx.x];
#pragma unroll
    for (u32 i = 0; i < INDEXING_WARPS; i++) {
        const u32 count = warp_counts[i][threadIdx.x];
        warp_counts[i][threadIdx.x] = place;
        place += count;
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < SORT_TOKENS; i++) {
        if (first + i * WARP < num_tokens) sorted[warp_counts[warp][digit_of(mine[i], bit)] + ranks[i]] = mine[i];
    }
}
