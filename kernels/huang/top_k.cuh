// top_k.cuh: a thread's best k keys, as a heap with the least on top. Twin on the host: crates/papers/src/huang/ranges/top_k.rs.
#pragma once

#include "huang/huang.cuh"

// A thread with k keys knows k documents as good as the least of them. As published it keeps this to itself. If ranges are cut
// to equal work, it shares that score, below which no document is among the best.
//
// Keys of a thread are `stride` apart, so that those of a warp are contiguous.
struct ThreadTopK {
    u64* keys;
    u32 stride;
    u32 k;
    u32 len;
    float threshold;  // the score that a later document must exceed; 0 while there is room
    u32* reached;     // bits of a score that k documents of the query reach; null: not shared

    __device__ __forceinline__ u64& key(u32 place) { return keys[place * stride]; }

    // Whether a score is less than one that k documents reach.
    __device__ __forceinline__ bool is_out(float score) const {
        return reached != nullptr && score < __uint_as_float(*static_cast<volatile const u32*>(reached));
    }

    // Sifts `moving` down from the top of the first `size` keys until no child is less.
    __device__ __forceinline__ void sink(u64 moving, u32 size) {
        u32 place = 0;
        while (true) {
            u32 child = 2 * place + 1;
            if (child >= size) break;
            u64 least = key(child);
            if (child + 1 < size) {
                const u64 right = key(child + 1);
                if (right < least) {
                    least = right;
                    child += 1;
                }
            }
            if (moving <= least) break;
            key(place) = least;
            place = child;
        }
        key(place) = moving;
    }

    // Adds a document, which must follow all earlier ones.
    __device__ __forceinline__ void offer(u32 doc, float score) {
        if ((len == k && score <= threshold) || is_out(score)) return;
        const u64 offered = make_key(score, doc);
        if (len == k) {
            sink(offered, k);
        } else {
            u32 place = len++;
            while (place > 0) {
                const u32 parent = (place - 1) / 2;
                const u64 above = key(parent);
                if (above <= offered) break;
                key(place) = above;
                place = parent;
            }
            key(place) = offered;
        }
        if (len == k) {
            threshold = key_score(key(0));
            // Non-negative scores order as their bits do.
            if (reached != nullptr) atomicMax(reached, __float_as_uint(threshold));
        }
    }

    // Sorts the keys, best first.
    __device__ __forceinline__ void sort() {
        for (u32 size = len; size-- > 1;) {
            const u64 last = key(size);
            key(size) = key(0);
            sink(last, size);
        }
    }
};
