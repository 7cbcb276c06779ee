// select.cuh: the best of many keys, by a thread block or a warp: a radix select on distinct 64-bit keys.
//
// Each pass counts 256 equal slices of the current key range and continues in the slice with the last wanted key. The first
// range spans the smallest to the largest key, so passes are spent on bits that differ (scores share their exponents). A pass
// whose slice is wanted entirely is the last one; two or three are usual.
#pragma once

#include "tandem.cuh"

constexpr u32 SLICES = 256;

// Shared memory of a selection.
struct Selection {
    u64 smallest;
    u64 largest;
    u32 slice;
    u32 in_slice;
    u32 wanted;
    u32 counts[SLICES];
};

// The keys source(0) ... source(n - 1), striped over the threads of a group: thread t has t, t + SIZE, ...
template <class Group, class Source>
struct StripedKeys {
    Source source;
    u32 n;

    struct Cursor {
        const StripedKeys& striped;
        u32 first;
        // Whether a thread of the group may have a key left. The answer is uniform over the warp, which votes on the result of
        // next().
        __device__ __forceinline__ bool more() const { return first < striped.n; }
        // The thread's next key, or 0.
        __device__ __forceinline__ u64 next() {
            const u32 i = first + Group::rank();
            first += Group::SIZE;
            return i < striped.n ? striped.source(i) : 0;
        }
    };
    __device__ __forceinline__ Cursor cursor() const { return {*this, 0}; }
};

// A number that exactly `wanted` of the group's keys reach. At least `wanted` keys must reach `floor` >= 1; 0 is no key. `keys`
// gives each thread a cursor like that of StripedKeys. All threads of the group call it with the same `wanted` and `floor`. It
// begins and ends with a barrier.
template <class Group, class Keys>
__device__ u64 select_cut(const Keys& keys, u32 wanted, u64 floor, Selection& shared) {
    const u32 lane = threadIdx.x % WARP;
    Group::sync();
    if (Group::rank() == 0) {
        shared.smallest = ~0ull;
        shared.largest = 0;
    }
    Group::sync();
    u64 low = ~0ull, high = 0;
    for (auto cursor = keys.cursor(); cursor.more();) {
        const u64 key = cursor.next();
        if (key >= floor) {
            low = min(low, key);
            high = max(high, key);
        }
    }
#pragma unroll
    for (u32 distance = WARP / 2; distance > 0; distance /= 2) {
        low = min(low, __shfl_xor_sync(FULL_WARP, low, distance));
        high = max(high, __shfl_xor_sync(FULL_WARP, high, distance));
    }
    if (lane == 0) {
        atomicMin(&shared.smallest, low);
        atomicMax(&shared.largest, high);
    }
    Group::sync();
    low = shared.smallest;
    u64 span = shared.largest - low + 1;
    u32 shift = max(64 - __clzll(span - 1), 8) - 8;

    for (;;) {
        for (u32 i = Group::rank(); i < SLICES; i += Group::SIZE) shared.counts[i] = 0;
        Group::sync();
        for (auto cursor = keys.cursor(); cursor.more();) {
            // A key below the range, including 0, wraps around to an offset above it.
            const u64 offset = cursor.next() - low;
            const bool counts = offset < span;
            const u32 counting = __ballot_sync(FULL_WARP, counts);
            if (counts) {
                // Neighbouring keys often share a slice, so one addition serves all of them.
                const u32 slice = static_cast<u32>(offset >> shift);
                const u32 peers = __match_any_sync(counting, slice);
                if (lane == __ffs(peers) - 1) atomicAdd(&shared.counts[slice], __popc(peers));
            }
        }
        Group::sync();
        if (Group::rank() < WARP) {
            // Lane 0 has the highest slices: an ascending scan over lanes counts from the best key down.
            constexpr u32 SLICES_A_LANE = SLICES / WARP;
            const u32 highest = SLICES - 1 - SLICES_A_LANE * lane;
            u32 sum = 0;
            for (u32 j = 0; j < SLICES_A_LANE; ++j) sum += shared.counts[highest - j];
            const u32 upto = warp_prefix(sum, lane);
            u32 better = upto - sum;
            if (better < wanted && wanted <= upto) {
                u32 slice = highest;
                while (better + shared.counts[slice] < wanted) better += shared.counts[slice--];
                shared.slice = slice;
                shared.in_slice = shared.counts[slice];
                shared.wanted = wanted - better;
            }
        }
        Group::sync();
        low += static_cast<u64>(shared.slice) << shift;
        wanted = shared.wanted;
        const bool whole = shared.in_slice == wanted;
        Group::sync();
        if (whole || shift == 0) return low;
        span = 1ull << shift;
        shift = max(shift, 8u) - 8;
    }
}
