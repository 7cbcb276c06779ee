// block_codec.cuh: block headers and packed postings, read by one warp at a time into registers.
//
// Lane t holds postings 4t to 4t+3. In a full block these four lie side by side: the vertical layout keeps value i in lane
// i % 4 of a row of four words, so that all four start at bit t * bits of their word stream, and two 16-byte loads and four
// funnel shifts unpack them. Gaps (stored minus one) become documents by three adds in the lane and one scan over the warp.
// A tail block is packed horizontally and read word by word. The host's twin is src/index/codec.rs.
#pragma once

#include "tandem.cuh"

__device__ __forceinline__ u32 block_len(const BlockHeader& header) { return (header.z >> 16 & 0xff) + 1; }
__device__ __forceinline__ u32 doc_bits(const BlockHeader& header) { return header.z & 0xff; }
__device__ __forceinline__ u32 freq_bits(const BlockHeader& header) { return header.z >> 8 & 0xff; }
__device__ __forceinline__ float max_impact(const BlockHeader& header) { return __uint_as_float(header.w); }

// A term's list: its headers and its payload.
struct List {
    const BlockHeader* headers;
    const u32* payload;
    u32 num_blocks;

    __device__ __forceinline__ List(const Index& index, const Term& term)
        : headers(index.headers + term.first_block),
          payload(index.payload + term.payload_word),
          num_blocks(term.num_blocks) {}

    __device__ __forceinline__ u32 last_doc(u32 block) const { return __ldg(&headers[block].x); }
    __device__ __forceinline__ BlockHeader header(u32 block) const { return __ldg(&headers[block]); }

    // The document that the block's first gap counts from; -1 for the first block, whose first value is a document.
    __device__ __forceinline__ u32 base(u32 block) const { return block == 0 ? NO_DOC : last_doc(block - 1); }
};

// The first block from `begin` on whose last document is at least `doc`, or `list.num_blocks`. The whole warp asks alike.
//
// 32 blocks are probed at once: three dependent loads settle 32 thousand blocks. With NEAR the next 32 are tried first.
template <bool NEAR>
__device__ __forceinline__ u32 find_block(const List& list, u32 begin, u32 doc, u32 lane) {
    u32 end = list.num_blocks;
    if (NEAR && begin < end) {
        const u32 probe = begin + lane;
        const u32 hits = __ballot_sync(FULL_WARP, probe >= end || list.last_doc(probe) >= doc);
        if (hits != 0) return min(begin + __ffs(hits) - 1, end);
        begin += WARP;
    }
    // Blocks before `begin` end below `doc`; block `end`, if there is one, does not start after the answer.
    while (begin < end && end - begin > WARP) {
        const u32 step = (end - begin) / WARP;
        const u32 hits = __ballot_sync(FULL_WARP, list.last_doc(begin + (lane + 1) * step - 1) >= doc);
        const u32 below = hits == 0 ? WARP : __ffs(hits) - 1;
        begin += below * step;
        if (hits != 0) end = begin + step;
    }
    const u32 probe = begin + lane;
    const u32 hits = __ballot_sync(FULL_WARP, probe >= end || list.last_doc(probe) >= doc);
    return hits == 0 ? end : min(begin + __ffs(hits) - 1, end);
}

// The lane's four values of a section of `len` values of `bits` bits; 0 past the end.
__device__ __forceinline__ void unpack(const u32* section, u32 bits, u32 len, u32 lane, u32 (&values)[4]) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) values[i] = 0;
    if (bits == 0) return;
    const u32 mask = 0xffffffffu >> (32 - bits);
    if (len == BLOCK_LEN) {
        // The word with a value's last bit may be the word with its first: the funnel shift then rotates, and the mask
        // drops what came round. So nothing is read past the section.
        const uint4* rows = reinterpret_cast<const uint4*>(section);
        const u32 bit = lane * bits;
        const uint4 low = __ldg(rows + bit / 32);
        const uint4 high = __ldg(rows + (bit + bits - 1) / 32);
        values[0] = __funnelshift_r(low.x, high.x, bit) & mask;
        values[1] = __funnelshift_r(low.y, high.y, bit) & mask;
        values[2] = __funnelshift_r(low.z, high.z, bit) & mask;
        values[3] = __funnelshift_r(low.w, high.w, bit) & mask;
    } else {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            if (4 * lane + i < len) {
                const u32 bit = (4 * lane + i) * bits;
                values[i] =
                    __funnelshift_r(__ldg(section + bit / 32), __ldg(section + (bit + bits - 1) / 32), bit) & mask;
            }
        }
    }
}

// Words of the block's packed documents; its frequencies follow.
__device__ __forceinline__ u32 doc_words(const BlockHeader& header) {
    return (block_len(header) * doc_bits(header) + 31) / 32;
}

// The block's documents; NO_DOC past its end, so that the warp's documents ascend in any case.
__device__ __forceinline__ void decode_docs(
    const List& list, const BlockHeader& header, u32 base, u32 lane, u32 (&docs)[4]
) {
    const u32 len = block_len(header);
    unpack(list.payload + header.y, doc_bits(header), len, lane, docs);
    docs[0] += 1;
#pragma unroll
    for (u32 i = 1; i < 4; ++i) docs[i] += docs[i - 1] + 1;
    u32 sum = docs[3];
#pragma unroll
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        const u32 lower = __shfl_up_sync(FULL_WARP, sum, distance);
        if (lane >= distance) sum += lower;
    }
    const u32 before = base + sum - docs[3];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) docs[i] = 4 * lane + i < len ? docs[i] + before : NO_DOC;
}

// The block's frequencies; 1 past its end.
__device__ __forceinline__ void decode_freqs(const List& list, const BlockHeader& header, u32 lane, u32 (&freqs)[4]) {
    unpack(list.payload + header.y + doc_words(header), freq_bits(header), block_len(header), lane, freqs);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) freqs[i] += 1;
}

// One frequency alone, for the few postings of a block that an intersection keeps.
__device__ __forceinline__ u32 freq_at(const List& list, const BlockHeader& header, u32 position) {
    const u32 bits = freq_bits(header);
    if (bits == 0) return 1;
    const u32* section = list.payload + header.y + doc_words(header);
    const bool full = block_len(header) == BLOCK_LEN;
    const u32 stride = full ? 4 : 1;
    const u32 column = full ? position % 4 : 0;
    const u32 bit = (full ? position / 4 : position) * bits;
    const u32 low = __ldg(section + bit / 32 * stride + column);
    const u32 high = __ldg(section + (bit + bits - 1) / 32 * stride + column);
    return (__funnelshift_r(low, high, bit) & 0xffffffffu >> (32 - bits)) + 1;
}
