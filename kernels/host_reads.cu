// host_reads.cu: the rate of scattered reads of page-locked host memory across the bus. A compile unit of its own.
//
// Groups of threads read pieces of 32 to 512 bytes, sixteen bytes per thread, at random places of a large array, like searches
// of host-resident blocks. Only crates/engine/src/search/device/host_reads.rs launches this kernel.
// In:   an array. Out: a sum, which keeps the compiler from dropping the reads.
// Launch bounds: 256 threads. Bound by the bus.

#include "primitives.cuh"

constexpr u32 SCATTER_THREADS = 256;

// The host compares this at load.
extern "C" __constant__ const u32 host_reads_layout[1] = {SCATTER_THREADS};

// The n-th number of a pseudo-random sequence: a multiplicative hash.
__device__ __forceinline__ u64 scattered(u64 n) {
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ull;
    n = (n ^ n >> 27) * 0x94d049bb133111ebull;
    return n ^ n >> 31;
}

// Each group of `lanes` threads (2, 4 or 8) reads `reads` pieces of 16 * lanes bytes from an array of `num_pieces`.
extern "C" __global__ void __launch_bounds__(SCATTER_THREADS) read_scattered(
    const uint4* array, u64 num_pieces, u32 lanes, u32 reads, u64 seed, u32* sink
) {
    const u64 thread = static_cast<u64>(blockIdx.x) * SCATTER_THREADS + threadIdx.x;
    const u64 group = thread / lanes;
    u32 sum = 0;
#pragma unroll 4
    for (u32 i = 0; i < reads; ++i) {
        const u64 piece = scattered(seed + group * reads + i) % num_pieces;
        const uint4 value = array[piece * lanes + thread % lanes];
        sum += value.x ^ value.y ^ value.z ^ value.w;
    }
    // Never true, which the compiler cannot know.
    if (sum == 0x9e3779b9u) *sink = sum;
}
