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

// The division of the 28 lower bits of a Simple16 word, lowest bits first: up to three runs of (numbers, bits), with four bits
// each, and six for numbers. A run of no numbers ends a division.
struct Division {
    unsigned char counts[3];
    unsigned char widths[3];
};
__constant__ const Division DIVISIONS[16] = {
    {{28, 0, 0}, {1, 0, 0}}, {{7, 14, 0}, {2, 1, 0}}, {{7, 7, 7}, {1, 2, 1}}, {{14, 7, 0}, {1, 2, 0}},
    {{14, 0, 0}, {2, 0, 0}}, {{1, 8, 0}, {4, 3, 0}},  {{1, 4, 3}, {3, 4, 3}}, {{7, 0, 0}, {4, 0, 0}},
    {{4, 2, 0}, {5, 4, 0}},  {{2, 4, 0}, {4, 5, 0}},  {{3, 2, 0}, {6, 5, 0}}, {{2, 3, 0}, {5, 6, 0}},
    {{4, 0, 0}, {7, 0, 0}},  {{1, 2, 0}, {10, 9, 0}}, {{2, 0, 0}, {14, 0, 0}}, {{1, 0, 0}, {28, 0, 0}},
};
constexpr u32 SIMPLE16_BITS = 28;

// Value `place` of a column whose slots begin at `slots`, without its exception.
__device__ __forceinline__ u32 read_slot(const u32* slots, u32 width, u32 place) {
    if (width == 0) return 0;
    const u32 bit = place * width;
    return cut_bits(__ldg(slots + bit / 32), __ldg(slots + (bit + width - 1) / 32), bit % 32, width);
}

// Reads the `count` exceptions of a column from `words` on: their places as a mask, and their overflows to `overflows`,
// `stride` words apart.
__device__ __forceinline__ u64 read_exceptions(const u32* words, u32 count, u32* overflows, u32 stride) {
    u64 places = 0;
    u32 next = 0, number = 0;
    while (number < 2 * count) {
        const u32 word = __ldg(words++);
        const Division division = DIVISIONS[word >> SIMPLE16_BITS];
        u32 bit = 0;
        for (u32 run = 0; run < 3; ++run) {
            const u32 width = division.widths[run];
            for (u32 i = 0; i < division.counts[run] && number < 2 * count; ++i, ++number, bit += width) {
                const u32 value = word >> bit & ((1u << width) - 1);
                if (number < count) {
                    next += value;
                    places |= 1ull << next;
                    next += 1;
                } else {
                    overflows[(number - count) * stride] = value + 1;
                }
            }
        }
    }
    return places;
}
