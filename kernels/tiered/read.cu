// read.cu: what reading page-locked memory of the host across the bus gives.
//
// Groups of threads read pieces of 32, 64 or 128 bytes, sixteen bytes a thread, at places all over a large array: as a search
// reads blocks of lists that are not in device memory. Measured by src/gpu/limits.rs, which is all that uses it.
// In:   an array. Out: a sum, so that nothing is left out.
// Launch bounds: 256 threads. Bound by the bus.

#include "tiered/tiered.cuh"

// The n-th of a sequence that looks drawn: a multiplicative hash, well enough mixed for places in memory.
__device__ __forceinline__ u64 scattered(u64 n) {
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ull;
    n = (n ^ n >> 27) * 0x94d049bb133111ebull;
    return n ^ n >> 31;
}

// Each group of `lanes` threads (2, 4 or 8) reads `reads` pieces of 16 * lanes bytes; `num_pieces` is how many the array has.
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
    // Never so: the compiler does not know.
    if (sum == 0x9e3779b9u) *sink = sum;
}
