// ding.cuh: what the kernels of published methods share. They are a compile unit of their own (ding.cu), which is
// loaded only to reproduce a paper's figures; Tandem's own path needs none of them.
//
// The methods are those of Ding, He, Yan and Suel, "Using Graphics Processors for High Performance IR Query Processing",
// WWW 2009: their data layout and their steps, one kernel a step, written for today's warps. The host's copies of the
// structures are in crates/papers/src/ding/gpu/kernels.rs, compared when the module is loaded, as tandem.cuh explains. What each
// kernel takes is in results/gpu/kernels.csv, and what bounds it in docs/results/gpu.md.
#pragma once

#include "tandem.cuh"
#include "work.cuh"

constexpr u32 PFOR_BLOCK_LEN = 512;    // values with one base, 16 a lane
constexpr u32 RICE_BLOCK_LEN = 128;    // values with one base, 4 a lane; also bits of the unary part with one base
constexpr u32 PUBLISHED_THREADS = 256; // of every kernel here but the heap's and the scan's
constexpr u32 TILE_LEN = 1024;         // flags that a thread block compacts
constexpr u32 SCAN_THREADS = 1024;
constexpr u32 HEAP_DEGREE = 512;       // children of a node, and threads of the heap's kernels
constexpr u32 HEAP_LEVELS = 3;         // above the scores: 512^4 of them below a third level's 512

// How many there are of something: no more than `at_most`, and exactly `*counted` where a kernel has counted them.
struct Count {
    const u32* counted;
    u32 at_most;
    u32 reserved;

    __device__ __forceinline__ u32 get() const { return counted == nullptr ? at_most : min(*counted, at_most); }
};

// One array packed by PForDelta at one width, as papers/codec/pfor_delta.rs packs it: every value minus one. Ascending arrays
// hold gaps, and the value before each block in `bases`. The exceptions lie decoded in `positions` (ascending) and
// `overflows` (what exceeds the width).
struct PforArray {
    const u32* slots;            // aligned to sixteen bytes
    const u32* bases;            // null: the values are no gaps
    const u32* starts;           // each block's first exception, and one more
    const u32* positions;
    const u32* overflows;
    u32* output;                 // room for whole blocks, so that they can be stored sixteen bytes at a time
    u32 len;
    u32 width;
    u32 num_exceptions;
    u32 first_block;             // blocks of the arrays before it in the same launch
};

// One list of documents coded by Rice: of each gap minus one the quotient in unary (ones, ended by a zero) and the remainder
// in binary.
struct RiceList {
    const u32* unary;
    const u32* unary_sums;       // ones before each 128 bits
    const u32* binary;
    const u32* binary_sums;      // sum of the remainders before each 128 values
    u32* quotients;              // sums of quotients, one a value: what the first step hands to the second
    u32* output;
    u32 len;
    u32 width;
    u32 num_unary_bits;
    u32 first_unary_block;       // unary blocks (rounded up to a warp's), and blocks, of the lists before it in the same launch
    u32 first_block;
    u32 reserved;
};

// One level of Parallel Merge Find: every `stride`-th element of `a` is looked for in `b`.
struct MergeFind {
    const u32* a;
    const u32* b;
    const u32* coarse;           // what the level above found; null for none
    u32* found;
    Count num_a;
    Count num_b;
    u32 stride;
    u32 coarse_stride;
};

// The heap: scores, and above them the largest key of each 512, of each 512 of those, and so on.
struct Heap {
    float* scores;
    const u32* docs;             // whose scores they are; null: score i is document i's
    u64* levels[HEAP_LEVELS];    // level 0 is that above the scores; each has its full length, whatever `num_scores` says
    u32 lens[HEAP_LEVELS];
    u32 num_levels;              // the last of them has at most 512 keys
    Count num_scores;
};

extern "C" __constant__ const u32 published_layout[10] = {
    PFOR_BLOCK_LEN, RICE_BLOCK_LEN, PUBLISHED_THREADS, TILE_LEN, SCAN_THREADS, HEAP_DEGREE,
    sizeof(PforArray), sizeof(RiceList), sizeof(MergeFind), sizeof(Heap),
};

// No score yet, and the neutral element of addition, as in union.cu.
constexpr u32 NO_SCORE = 0x80000000u;

// Slots are packed in groups of 128: full ones in four lanes of 32 (value i in lane i % 4), the last one in a row, as
// papers/codec/packed.rs has them. Lane t's four values of a group of `len`, those past its end 0.
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

// Value `place` alone, of a section of `len`.
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

// How many of the ascending values[low, high) are below `value`, plus `low`.
__device__ __forceinline__ u32 binary_search(const u32* values, u32 low, u32 high, u32 value) {
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (values[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

__device__ __forceinline__ u32 thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }
