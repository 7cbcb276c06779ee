// merge.cuh: merges the threads' keys by insertion. Twin on the host: crates/papers/src/huang/ranges/top_k.rs.
//
// A warp holds the merged list, best first. The keys of a thread are in the same order, so the first that does not enter ends
// it. A key's place is found from the end, 32 places at once: each lane moves its key back by one if the new one precedes it.
#pragma once

#include "huang/huang.cuh"

// Inserts `key` among the first `len` of `merged`, which has room for one more. Returns whether it entered. `len` is at most
// `k`. The whole warp calls it.
__device__ __forceinline__ void insert_key(u64* merged, u32& len, u32 k, u64 key, u32 lane) {
    // A full list drops its worst key.
    u32 last = len < k ? len : k - 1;
    if (len < k) len += 1;
    while (true) {
        // Lane l reads the key before place last - l.
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

// Merges the keys of `threads` threads: key j of thread i, one of counts[i], is keys[j * threads + i]. Returns the number of
// merged keys. A whole warp calls it.
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
