// new_pfd.cuh: one column of a block in NewPFD, read value by value.
//
//     header      bits 0 to 7: width of a slot; bits 8 to 15: exceptions e
//     slots       one after another, each of the header's width
//     Simple16    of 2 e numbers: the gaps between the exceptions' places, minus 1, and then their overflows, minus 1
//
// Opening a column turns its exceptions into a mask of places and an array of overflows. A value is its slot, plus the overflow
// above it if the mask is set. Twin on the host: crates/papers/src/codec/patched.rs.
#pragma once

#include "huang/huang.cuh"

// The last bits of the numbers in a Simple16 word: up to three runs of numbers of so many bits each, from the lowest bit on.
__host__ __device__ constexpr u32 last_bits(u32 count_a, u32 bits_a, u32 count_b = 0, u32 bits_b = 0, u32 count_c = 0,
                                            u32 bits_c = 0) {
    u32 lasts = 0, bit = 0;
    for (u32 i = 0; i < count_a + count_b + count_c; ++i) {
        bit += i < count_a ? bits_a : i < count_a + count_b ? bits_b : bits_c;
        lasts |= 1u << (bit - 1);
    }
    return lasts;
}
// For each value of the four highest bits.
__constant__ const u32 LAST_BITS[16] = {
    last_bits(28, 1), last_bits(7, 2, 14, 1), last_bits(7, 1, 7, 2, 7, 1), last_bits(14, 1, 7, 2),
    last_bits(14, 2), last_bits(1, 4, 8, 3),  last_bits(1, 3, 4, 4, 3, 3), last_bits(7, 4),
    last_bits(4, 5, 2, 4), last_bits(2, 4, 4, 5), last_bits(3, 6, 2, 5),   last_bits(2, 5, 3, 6),
    last_bits(4, 7), last_bits(1, 10, 2, 9), last_bits(2, 14), last_bits(1, 28),
};
constexpr u32 SIMPLE16_BITS = 28;

// The `width` lowest bits, 0 to 32.
__device__ __forceinline__ u32 low_bits(u32 width) {
    u32 mask;
    asm("bmsk.clamp.b32 %0, 0, %1;" : "=r"(mask) : "r"(width));
    return mask;
}

// The slot of `width` bits from bit `bit` of a column on, without its exception. The word after it is read too; the host has
// room after the last list.
__device__ __forceinline__ u32 read_slot(const u32* slots, u32 bit, u32 width) {
    const u32* words = slots + bit / 32;
    return __funnelshift_r(__ldg(words), __ldg(words + 1), bit) & low_bits(width);
}

// Reads numbers of Simple16, one after another.
struct Simple16 {
    const u32* words;
    u32 word;
    u32 lasts;  // the last bits of the numbers that are left in the word

    __device__ __forceinline__ u32 next() {
        if (lasts == 0) {
            word = __ldg(words++);
            lasts = LAST_BITS[word >> SIMPLE16_BITS];
        }
        const u32 length = __ffs(lasts), number = word & low_bits(length);
        word >>= length;
        lasts >>= length;
        return number;
    }
};

// Reads the `count` exceptions of a column from `words` on. Returns their places as a mask, and calls `store` with the number
// and the overflow of each.
template <class Store>
__device__ __forceinline__ u64 read_exceptions(const u32* words, u32 count, Store store) {
    Simple16 numbers = {words, 0, 0};
    u64 places = 0;
    u32 place = 0;
#pragma unroll 1
    for (u32 i = 0; i < count; ++i) {
        place += numbers.next();
        places |= 1ull << place++;
    }
#pragma unroll 1
    for (u32 i = 0; i < count; ++i) store(i, numbers.next() + 1);
    return places;
}
