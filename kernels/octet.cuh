// octet.cuh: blocks of 128 packed postings, decoded by eight lanes each: four blocks a warp at a time.
//
// Lane t of an octet holds postings 16t to 16t+15 of its block. All gaps of a block have the same width, an even one, so that
// a lane's sixteen fill whole words, half as many as a gap has bits: no two lanes share a word, and where each gap lies is
// known when the kernel is compiled. Inside a lane's words, gaps lie in columns: four of 8 bits for widths up to 8, two of 16
// bits for widths up to 16, one of 32 bits beyond. Each column is a stream of bits of its own, low bits first, through the
// lane's words:
//
//     width 6, columns of 8 bits: bits 7..0 of the lane's three words, the column of gaps 0, 4, 8 and 12
//         word 0    g4 g4 g0 g0 g0 g0 g0 g0      row 0 (g0 to g3) is word 0 & 3f3f3f3f
//         word 1    g8 g8 g8 g8 g4 g4 g4 g4      row 1 (g4 to g7): two bits of each gap are in word 0, four in word 1
//         word 2    gC gC gC gC gC gC g8 g8      row 3 (g12 to g15) is word 2 >> 2 & 3f3f3f3f
//
// One shift and one mask thus unpack a row of four gaps, or of two (twice that where it is split between words), and the
// instruction that adds four bytes to a number turns a row into documents: dp4a with the first one, two, three, four bytes. A
// gap costs little more than that one instruction, and the scan over the lanes, three steps for sixteen postings, almost
// nothing.
//
// The words of a block's eight lanes lie in pieces of 16 bytes a lane, then 8, then 4, so that every load of a warp takes whole
// sectors. Gaps count from the document before, the first of a block from the last document of the block before; a last block
// that is not full goes on with gaps of 1. There are no exceptions: the widest gap decides. Four blocks that follow each other
// (0 to 3, 4 to 7, ... of a list) share one width.
// The twin on the host, which also packs, is src/exec/gpu/octets.rs.
#pragma once

#include "tandem.cuh"

constexpr u32 OCTET = 8;                            // lanes that share a block
constexpr u32 GROUP = WARP / OCTET;                 // blocks that a warp decodes side by side, and that share a width
constexpr u32 LANE_ITEMS = BLOCK_LEN / OCTET;       // postings of a lane

// Calls M with each number of words that a lane's gaps may fill: half their width.
#define FOR_EACH_LANE_WORDS(M) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(10) M(12) M(16)

// Where a block is.
struct OctetBlock {
    u32 offset;      // of its first word, in units of 8 words
    u32 lane_words;  // words of each lane
};

// A lane's words, unpacked row by row.
template <u32 LANE_WORDS>
struct LaneWords {
    static constexpr u32 WIDTH = 2 * LANE_WORDS;
    static constexpr u32 COLUMN_BITS = WIDTH <= 8 ? 8 : WIDTH <= 16 ? 16 : 32;
    static constexpr u32 ROW_ITEMS = 32 / COLUMN_BITS;
    static constexpr u32 ROWS = LANE_ITEMS / ROW_ITEMS;

    u32 words[LANE_WORDS];

    // `payload` is where offsets count from; `lane` counts in the octet.
    __device__ __forceinline__ void load(const u32* payload, u32 offset, u32 lane) {
        const u32* block = payload + 8ull * offset;
#pragma unroll
        for (u32 piece = 0; piece != LANE_WORDS / 4; ++piece) {
            const uint4 four = __ldg(reinterpret_cast<const uint4*>(block) + piece * OCTET + lane);
            words[4 * piece] = four.x;
            words[4 * piece + 1] = four.y;
            words[4 * piece + 2] = four.z;
            words[4 * piece + 3] = four.w;
        }
        constexpr u32 in_fours = LANE_WORDS / 4 * 4;
        if constexpr ((LANE_WORDS & 2) != 0) {
            const uint2 two = __ldg(reinterpret_cast<const uint2*>(block + in_fours * OCTET) + lane);
            words[in_fours] = two.x;
            words[in_fours + 1] = two.y;
        }
        if constexpr ((LANE_WORDS & 1) != 0) words[LANE_WORDS - 1] = __ldg(block + (LANE_WORDS - 1) * OCTET + lane);
    }

    // The gaps of one row, each in a column of its own.
    template <u32 ROW>
    __device__ __forceinline__ u32 row() const {
        constexpr u32 bit = ROW * WIDTH, word = bit / COLUMN_BITS, shift = bit % COLUMN_BITS;
        if constexpr (WIDTH == COLUMN_BITS) {
            return words[word];
        } else if constexpr (shift + WIDTH <= COLUMN_BITS) {
            return words[word] >> shift & in_columns(low_bits(WIDTH));
        } else if constexpr (COLUMN_BITS == 32) {
            return __funnelshift_r(words[word], words[word + 1], shift) & low_bits(WIDTH);
        } else {
            constexpr u32 split = COLUMN_BITS - shift;
            return words[word] >> shift & in_columns(low_bits(split))
                | words[word + 1] << split & in_columns(low_bits(WIDTH) & ~low_bits(split));
        }
    }

    __device__ __forceinline__ void unpack(u32 (&rows)[ROWS]) const { unpack_from<0>(rows); }

    // `sum` and the gaps of a row.
    static __device__ __forceinline__ u32 add_row(u32 row, u32 sum) {
        if constexpr (COLUMN_BITS == 8) return __dp4a(row, 0x01010101u, sum);
        else if constexpr (COLUMN_BITS == 16) return __dp2a_lo(row, 0x0101u, sum);
        else return row + sum;
    }

    // The lane's documents, of which `before` is the one that the first gap counts from.
    static __device__ __forceinline__ void add_up(const u32 (&rows)[ROWS], u32 before, u32 (&docs)[LANE_ITEMS]) {
#pragma unroll
        for (u32 row = 0; row < ROWS; ++row) {
            u32* row_docs = docs + row * ROW_ITEMS;
            if constexpr (COLUMN_BITS == 8) {
                row_docs[0] = __dp4a(rows[row], 0x00000001u, before);
                row_docs[1] = __dp4a(rows[row], 0x00000101u, before);
                row_docs[2] = __dp4a(rows[row], 0x00010101u, before);
            } else if constexpr (COLUMN_BITS == 16) {
                row_docs[0] = __dp2a_lo(rows[row], 0x0001u, before);
            }
            before = row_docs[ROW_ITEMS - 1] = add_row(rows[row], before);
        }
    }

private:
    static __device__ constexpr u32 low_bits(u32 bits) { return 0xffffffffu >> (32 - bits); }
    static __device__ constexpr u32 in_columns(u32 bits) {
        return COLUMN_BITS == 8 ? bits * 0x01010101u : COLUMN_BITS == 16 ? bits * 0x00010001u : bits;
    }
    template <u32 ROW>
    __device__ __forceinline__ void unpack_from(u32 (&rows)[ROWS]) const {
        rows[ROW] = row<ROW>();
        if constexpr (ROW + 1 < ROWS) unpack_from<ROW + 1>(rows);
    }
};

// One block's place, and the document that its first gap counts from: each octet of a warp may have another.
struct OctetHead {
    u32 offset, lane_words, base;
};

// The lane's sixteen documents of a block that has been loaded. The whole warp calls it, with one width.
template <u32 LANE_WORDS>
__device__ __forceinline__ void decode_octet(
    const LaneWords<LANE_WORDS>& packed, u32 base, u32 lane, u32 (&docs)[LANE_ITEMS]
) {
    using Packed = LaneWords<LANE_WORDS>;
    u32 rows[Packed::ROWS];
    packed.unpack(rows);
    u32 own = 0;
#pragma unroll
    for (u32 row = 0; row < Packed::ROWS; ++row) own = Packed::add_row(rows[row], own);
    Packed::add_up(rows, base + warp_prefix<OCTET>(own, lane) - own, docs);
}

// Decodes G groups of four blocks, all of one width, and calls consume(group, docs) for each. As many are loaded before the
// first is unpacked as registers allow.
template <u32 LANE_WORDS, u32 G, class Consume>
__device__ __forceinline__ void decode_groups_of(const u32* payload, const OctetHead (&heads)[G], u32 lane, Consume consume) {
    constexpr u32 TOGETHER = LANE_WORDS <= 4 ? G : LANE_WORDS <= 8 && G >= 2 ? 2 : 1;
#pragma unroll
    for (u32 first = 0; first < G; first += TOGETHER) {
        LaneWords<LANE_WORDS> packed[TOGETHER];
#pragma unroll
        for (u32 i = 0; i < TOGETHER; ++i) packed[i].load(payload, heads[first + i].offset, lane);
#pragma unroll
        for (u32 i = 0; i < TOGETHER; ++i) {
            u32 docs[LANE_ITEMS];
            decode_octet(packed[i], heads[first + i].base, lane, docs);
            consume(first + i, docs);
        }
    }
}

// Whether all groups have one width.
template <u32 G>
__device__ __forceinline__ bool widths_agree(const OctetHead (&heads)[G]) {
    bool agree = true;
#pragma unroll
    for (u32 i = 1; i < G; ++i) agree &= uniform(heads[i].lane_words) == uniform(heads[0].lane_words);
    return agree;
}

// Decodes G groups of four blocks, whose widths agree, and calls consume(group, docs) for each: the lane's sixteen documents of
// its octet's block. The whole warp calls it. The switch is the same for all lanes: every width has code of its own.
template <u32 G, class Consume>
__device__ __forceinline__ void decode_groups(const u32* payload, const OctetHead (&heads)[G], u32 lane, Consume consume) {
    switch (uniform(heads[0].lane_words)) {
#define DECODE_GROUPS(LANE_WORDS) \
    case LANE_WORDS: { decode_groups_of<LANE_WORDS>(payload, heads, lane, consume); break; }
        FOR_EACH_LANE_WORDS(DECODE_GROUPS)
#undef DECODE_GROUPS
    }
}
