// ding.cuh: what the kernels of Ding et al. 2009 share. Their compile unit (ding.cu) is loaded only to reproduce the paper;
// Tandem's own search does not use it.
//
// The methods are those of Ding, He, Yan and Suel, "Using Graphics Processors for High Performance IR Query Processing", WWW
// 2009: their data layout and their steps, one kernel per step, written for today's warps. The host's copies of the structures
// are in crates/papers/src/ding/gpu/kernels.rs, compared at load as in tandem.cuh. results/gpu/kernels.csv lists the kernels'
// resources.
#pragma once

#include "tandem.cuh"
#include "work.cuh"

constexpr u32 PFOR_BLOCK_LEN = 512;    // values with one base, 16 per lane
constexpr u32 RICE_BLOCK_LEN = 128;    // values with one base, 4 per lane; also bits of the unary part with one base
constexpr u32 PUBLISHED_THREADS = 256; // of every kernel here except the heap's and the scan's
constexpr u32 TILE_LEN = 1024;         // flags that a thread block compacts
constexpr u32 SCAN_THREADS = 1024;
constexpr u32 HEAP_DEGREE = 512;       // children per node, and threads of the heap's kernels
constexpr u32 HEAP_LEVELS = 3;         // levels above the scores: 512^4 scores below a third level's 512

// A number of items: at most `at_most`, and exactly `*counted` if a kernel has counted them.
struct Count {
    const u32* counted;
    u32 at_most;
    u32 reserved;

    __device__ __forceinline__ u32 get() const { return counted == nullptr ? at_most : min(*counted, at_most); }
};

// One array packed by PForDelta at one width, as in crates/papers/src/codec/pfor_delta.rs: every value minus one. Ascending arrays hold
// gaps, with the value before each block in `bases`. The exceptions are decoded in `positions` (ascending) and `overflows` (the
// excess over the width).
struct PforArray {
    const u32* slots;            // aligned to sixteen bytes
    const u32* bases;            // null: the values are no gaps
    const u32* starts;           // first exception of each block, and one more entry
    const u32* positions;
    const u32* overflows;
    u32* output;                 // room for whole blocks, for stores of sixteen bytes
    u32 len;
    u32 width;
    u32 num_exceptions;
    u32 first_block;             // blocks of earlier arrays in the same launch
};

// One list of documents in Rice code: of each gap minus one the quotient in unary (ones, ended by a zero) and the remainder in
// binary.
struct RiceList {
    const u32* unary;
    const u32* unary_sums;       // ones before each 128 bits
    const u32* binary;
    const u32* binary_sums;      // sum of the remainders before each 128 values
    u32* quotients;              // sums of quotients, one per value: the first step's output for the second
    u32* output;
    u32 len;
    u32 width;
    u32 num_unary_bits;
    u32 first_unary_block;       // unary blocks (rounded up to whole warps) and blocks of earlier lists in the same launch
    u32 first_block;
    u32 reserved;
};

// One level of Parallel Merge Find: every `stride`-th element of `a` is searched in `b`.
struct MergeFind {
    const u32* a;
    const u32* b;
    const u32* coarse;           // result of the level above, or null
    u32* found;
    Count num_a;
    Count num_b;
    u32 stride;
    u32 coarse_stride;
};

// The heap: scores, and above them the largest key of each 512, of each 512 of those, and so on.
struct Heap {
    float* scores;
    const u32* docs;             // documents of the scores; null: score i is document i's
    u64* levels[HEAP_LEVELS];    // level 0 is above the scores; each has its full length, independent of `num_scores`
    u32 lens[HEAP_LEVELS];
    u32 num_levels;              // the last of them has at most 512 keys
    Count num_scores;
};

extern "C" __constant__ const u32 published_layout[10] = {
    PFOR_BLOCK_LEN, RICE_BLOCK_LEN, PUBLISHED_THREADS, TILE_LEN, SCAN_THREADS, HEAP_DEGREE,
    sizeof(PforArray), sizeof(RiceList), sizeof(MergeFind), sizeof(Heap),
};

// No score yet, and the neutral element of addition, as in tiles.cu.
constexpr u32 NO_SCORE = 0x80000000u;

// Slots are packed in groups of 128: full ones in four lanes of 32 (value i in lane i % 4), the last one consecutively, as in
// crates/papers/src/codec/packed.rs. Lane t's four values of a group of `len`, 0 past its end.
__device__ __forceinline__ void unpack_group(const u32* group, u32 width, u32 len, u32 lane, u32 (&values)[4]) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) values[i] = 0;
    if (width == 0) return;
    if (len >= BLOCK_LEN) {
        const uint4* rows = reinterpret_cast<const uint4*>(group);
        const u32 bit = lane * width;
        const uint4 low = __ldg(rows + bit / 32);
        const uint4 high = __ldg(rows + (bit + width - 1) / 32);
        values[0] = cut_bits(low.x, high.x, bit, width);
        values[1] = cut_bits(low.y, high.y, bit, width);
        values[2] = cut_bits(low.z, high.z, bit, width);
        values[3] = cut_bits(low.w, high.w, bit, width);
    } else {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            const u32 bit = (4 * lane + i) * width;
            if (4 * lane + i < len) {
                values[i] = cut_bits(__ldg(group + bit / 32), __ldg(group + (bit + width - 1) / 32), bit, width);
            }
        }
    }
}

// A single value `place` of a section of `len`.
__device__ __forceinline__ u32 read_slot(const u32* slots, u32 width, u32 len, u32 place) {
    if (width == 0) return 0;
    const u32 first = place & ~(BLOCK_LEN - 1), within = place % BLOCK_LEN;
    const u32* group = slots + first / 32 * width;
    const bool is_full = first + BLOCK_LEN <= len;
    const u32 stride = is_full ? 4 : 1;
    const u32 bit = (is_full ? within / 4 : within) * width;
    if (is_full) group += within % 4;
    return cut_bits(__ldg(group + bit / 32 * stride), __ldg(group + (bit + width - 1) / 32 * stride), bit, width);
}

// `low` plus the number of the ascending values[low, high) below `value`.
__device__ __forceinline__ u32 binary_search(const u32* values, u32 low, u32 high, u32 value) {
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (values[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

__device__ __forceinline__ u32 thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }
