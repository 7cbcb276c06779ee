// merge.cuh: the threads' keys to the query's, by insertion. Twin on the host: crates/papers/src/huang/ranges/top_k.rs.
//
// A warp holds the merged list, the best first. The keys of a thread come in the same order: the first that does not enter ends
// it. A key finds its place from the end: 32 places at once, each lane moves its key back by one if the new one goes before it.
#pragma once

#include "huang/huang.cuh"

// Inserts `key` among the first `len` of `merged`, which has room for one more; returns whether it was better than any, or
// there was room: `len` is at most `k`, and grows no further. The whole warp calls it.
__device__ __forceinline__ void insert_key(u64* merged, u32& len, u32 k, u64 key, u32 lane) {
    // The worst is dropped where the list is full.
    u32 last = len < k ? len : k - 1;
    if (len < k) len += 1;
    while (true) {
        // Lane l looks at the key before place last - l.
        const bool is_inside = lane <= last;
        const u32 place = last - lane;
        const u64 before = is_inside && place > 0 ? merged[place - 1] : ~0ull;
        const bool moves = is_inside && before < key;
        const u32 stays = __ballot_sync(FULL_WARP, !moves);
        if (moves) merged[place] = before;
        if (stays != 0) {
            if (lane == __ffs(stays) - 1) merged[place] = key;
            break;
        }
        last -= WARP;
    }
    __syncwarp();
}

// Merges the keys of `threads` threads, counts[i] of thread i, of which key j is keys[j * threads + i]. Returns how many there
// are. A whole warp calls it.
__device__ __forceinline__ u32 merge_keys(u64* merged, u32 k, const u64* keys, const u32* counts, u32 threads, u32 lane) {
    u32 len = 0;
    for (u32 thread = 0; thread < threads; ++thread) {
        const u32 count = counts[thread];
        for (u32 i = 0; i < count; ++i) {
            const u64 key = keys[i * threads + thread];
            if (len == k && merged[k - 1] > key) break;
            insert_key(merged, len, k, key, lane);
        }
    }
    return len;
}
