// intersect.cu: an uncompressed short list against a compressed long one in three steps, after Ding et al. 2009, section 8.1.
//
// 1. merge_find looks up the short list's documents among the long list's bases (one per block). mark_blocks flags the needed
// blocks, and they are compacted.
// 2. pfor_decode_needed decodes them side by side.
// 3. match_in_blocks looks up each document in its block. The matches are compacted with their places in the long list and the
// scores so far.
//
// Compaction is stable: flags are counted by tiles of 1024, the counts are summed, and flagged items move to their ranks.
// In:   the short list's documents with their scores; the long list's bases and packed blocks. Out: the matches, in order.
// Launch bounds: 256 threads. Bound by latency of small launches. Twin on the host: crates/papers/src/ding/gpu/twin.rs.

#include "ding/ding.cuh"

static_assert(TILE_LEN == 4 * PUBLISHED_THREADS, "a thread compacts four flags");

// Flags the blocks of documents. Several threads may write the same 1.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) mark_blocks(
    const u32* block_of, const __grid_constant__ Count num_docs, u32* flags
) {
    const u32 i = thread_index();
    if (i < num_docs.get()) flags[block_of[i]] = 1;
}

// For each document its place in the long list plus one, or 0. `slot_of` maps its block to the decoded blocks.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) match_in_blocks(
    const u32* docs, const u32* block_of, const __grid_constant__ Count num_docs, const u32* slot_of, const u32* decoded,
    u32 list_len, u32* found
) {
    const u32 i = thread_index();
    if (i >= num_docs.get()) return;
    const u32 block = block_of[i];
    const u32 len = min(list_len - block * PFOR_BLOCK_LEN, PFOR_BLOCK_LEN);
    const u32* values = decoded + slot_of[block] * PFOR_BLOCK_LEN;
    const u32 doc = docs[i];
    const u32 place = binary_search(values, 0, len, doc);
    found[i] = place < len && values[place] == doc ? block * PFOR_BLOCK_LEN + place + 1 : 0;
}

// A thread's four flags of a tile, and the number of set flags before them in the tile and in all of it.
struct TileRank {
    uint4 flags;
    u32 before;
    u32 in_tile;
};

// Every thread calls it once per kernel: one barrier separates the writes of the warps' sums from their reads.
__device__ __forceinline__ TileRank rank_tile(const u32* flags, u32 num_flags) {
    __shared__ u32 warp_sums[PUBLISHED_THREADS / WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 first = blockIdx.x * TILE_LEN + 4 * threadIdx.x;
    TileRank rank;
    rank.flags.x = first < num_flags ? flags[first] : 0;
    rank.flags.y = first + 1 < num_flags ? flags[first + 1] : 0;
    rank.flags.z = first + 2 < num_flags ? flags[first + 2] : 0;
    rank.flags.w = first + 3 < num_flags ? flags[first + 3] : 0;
    const u32 own = (rank.flags.x != 0) + (rank.flags.y != 0) + (rank.flags.z != 0) + (rank.flags.w != 0);
    const u32 upto = warp_prefix(own, lane);
    if (lane == WARP - 1) warp_sums[warp] = upto;
    __syncthreads();
    rank.before = upto - own;
    rank.in_tile = 0;
    for (u32 i = 0; i < PUBLISHED_THREADS / WARP; ++i) {
        if (i < warp) rank.before += warp_sums[i];
        rank.in_tile += warp_sums[i];
    }
    return rank;
}

// Counts the set flags of each tile.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) count_flags(
    const u32* flags, const __grid_constant__ Count num_flags, u32* tile_counts
) {
    const TileRank rank = rank_tile(flags, num_flags.get());
    if (threadIdx.x == 0) tile_counts[blockIdx.x] = rank.in_tile;
}

// Replaces the counts of tiles by the sums before them, and writes the total, in one thread block that takes 1024 tiles at a
// time.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_flags(u32* tile_counts, u32 num_tiles, u32* total) {
    __shared__ u32 warp_sums[SCAN_THREADS / WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u32 before = 0;
    for (u32 first = 0; first < num_tiles; first += SCAN_THREADS) {
        const u32 i = first + threadIdx.x;
        const u32 count = i < num_tiles ? tile_counts[i] : 0;
        const u32 upto = warp_prefix(count, lane);
        if (lane == WARP - 1) warp_sums[warp] = upto;
        __syncthreads();
        if (warp == 0) warp_sums[lane] = warp_prefix(warp_sums[lane], lane);
        __syncthreads();
        const u32 of_warps = warp == 0 ? 0 : warp_sums[warp - 1];
        if (i < num_tiles) tile_counts[i] = before + of_warps + upto - count;
        before += warp_sums[SCAN_THREADS / WARP - 1];
        __syncthreads();
    }
    if (threadIdx.x == 0) *total = before;
}

// The flagged blocks in ascending order, and the rank of each block.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) gather_blocks(
    const u32* flags, u32 num_blocks, const u32* tile_offsets, u32* blocks, u32* slot_of
) {
    const TileRank rank = rank_tile(flags, num_blocks);
    u32 slot = tile_offsets[blockIdx.x] + rank.before;
    const u32 set[4] = {rank.flags.x, rank.flags.y, rank.flags.z, rank.flags.w};
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        if (set[i] != 0) {
            const u32 block = blockIdx.x * TILE_LEN + 4 * threadIdx.x + i;
            blocks[slot] = block;
            slot_of[block] = slot;
            slot += 1;
        }
    }
}

// The matching documents in ascending order, with their places in the long list and, if present, their scores.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) gather_matches(
    const u32* found, const __grid_constant__ Count num_docs, const u32* tile_offsets, const u32* docs, const float* scores,
    u32* matching_docs, u32* places, float* matching_scores
) {
    const TileRank rank = rank_tile(found, num_docs.get());
    u32 target = tile_offsets[blockIdx.x] + rank.before;
    const u32 set[4] = {rank.flags.x, rank.flags.y, rank.flags.z, rank.flags.w};
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        if (set[i] != 0) {
            const u32 source = blockIdx.x * TILE_LEN + 4 * threadIdx.x + i;
            matching_docs[target] = docs[source];
            places[target] = set[i] - 1;
            if (scores != nullptr) matching_scores[target] = scores[source];
            target += 1;
        }
    }
}
