// primitives.cuh: basics of all kernels, independent of searching: integer types, bit fields of packed words, and warp-wide
// computations.
//
// Functions over a warp are called by all 32 lanes at once, because they shuffle with the full mask.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 FULL_WARP = 0xffffffffu;
constexpr u32 WARP = 32;

// `width` bits, 1 to 32, from bit `bit` (modulo 32) of a word on. `high` is the word with the last bit: the next word, or the
// same again, so nothing is read past a section's end. The funnel shift then rotates, and the mask drops the excess.
__device__ __forceinline__ u32 cut_bits(u32 low, u32 high, u32 bit, u32 width) {
    return __funnelshift_r(low, high, bit) & 0xffffffffu >> (32 - width);
}

// A value that is equal in all lanes. The shuffle shows this to the compiler, which then needs no code for a diverged warp.
__device__ __forceinline__ u32 uniform(u32 value) { return __shfl_sync(FULL_WARP, value, 0); }

// Fetches the cache line of `address` into the L2 cache, without waiting.
__device__ __forceinline__ void prefetch(const void* address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

// The sum over the warp, in every lane.
template <class T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
    for (u32 distance = WARP / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(FULL_WARP, value, distance);
    return value;
}

// The maximum over each LANES neighbours, in each of them.
template <u32 LANES = WARP, class T>
__device__ __forceinline__ T warp_max(T value) {
#pragma unroll
    for (u32 distance = LANES / 2; distance > 0; distance /= 2) {
        value = max(value, __shfl_xor_sync(FULL_WARP, value, distance));
    }
    return value;
}

// Inclusive prefix sum over each LANES neighbours; `lane` is the index among them.
template <u32 LANES = WARP>
__device__ __forceinline__ u32 warp_prefix(u32 value, u32 lane) {
#pragma unroll
    for (u32 distance = 1; distance < LANES; distance *= 2) {
        const u32 lower = __shfl_up_sync(FULL_WARP, value, distance, LANES);
        if (lane >= distance) value += lower;
    }
    return value;
}

// A whole thread block as a group of cooperating threads.
template <u32 THREADS>
struct BlockGroup {
    static constexpr u32 SIZE = THREADS;
    __device__ static __forceinline__ u32 rank() { return threadIdx.x; }
    __device__ static __forceinline__ void sync() { __syncthreads(); }
};

// A warp as a group of cooperating threads, independent of other warps.
struct WarpGroup {
    static constexpr u32 SIZE = WARP;
    __device__ static __forceinline__ u32 rank() { return threadIdx.x % WARP; }
    __device__ static __forceinline__ void sync() { __syncwarp(); }
};
