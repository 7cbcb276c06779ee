// block_codec.cuh: decodes postings of the index file, one block per warp, into registers.
//
// The file is made for CPUs. A full block's documents, and then its frequencies, are a column of sixteen groups of eight
// values, each group as narrow as possible. Lane t reads postings 4t to 4t + 3, half a group. The widths of the groups precede
// them; a scan over the warp gives the begin of each group, and all lanes then read alike. Another scan turns gaps (stored
// minus one) into documents. Dense documents are a bitset. Fewer postings (a short list, or the last block of a long one) are
// packed one after another in one width, with the high bits of wider ones stored apart: lane e fetches exception e, and
// shuffles move it to its posting.
//
// Data begins at any byte, so words are read in pairs and shifted. Only words with bits of the block are read. Index::open has
// decoded every block, so nothing is checked again. Every function here with shuffles is called by the whole warp for one
// block. crates/engine/src/index/layout.rs describes the format; the host's reader is crates/engine/src/index/packed.
#pragma once

#include "tandem.cuh"

constexpr u32 CODE_BITSET = 63;
constexpr u32 SHORT_HEAD_BITS = 27;
constexpr u32 NO_BASE = 0xffffffffu;  // the document before the first one: -1

// A list of BLOCK_LEN postings or more in the file: LongList on the host.
struct LongList {
    u64 payload_word;      // first word of its bytes in the payload
    u32 first_block;
    u32 doc_freq;
    float max_impact;      // this and later fields are for searches on the host
    float kth_impacts[3];
    u32 probe_row;
    u32 rows;

    __device__ __forceinline__ u32 num_blocks() const { return (doc_freq - 1) / BLOCK_LEN + 1; }
};

// `width` bits, 0 to 32, from bit `bit` of `words` on. Reads only words that hold them.
__device__ __forceinline__ u32 read_bits(const u32* words, u32 bit, u32 width) {
    if (width == 0) return 0;
    const u32 low = __ldg(words + bit / 32), high = __ldg(words + (bit + width - 1) / 32);
    return cut_bits(low, high, bit, width);
}

// The packing of a run (fewer than BLOCK_LEN values): a width of 0 to 32, or one of 0 to 29 with exceptions.
struct RunCode {
    u32 code;

    __device__ __forceinline__ explicit RunCode(u32 stored) : code(stored & 63) {}
    __device__ __forceinline__ u32 width() const { return code < 33 ? code : code - 33; }
    __device__ __forceinline__ bool has_exceptions() const { return code > 32; }
};

// Location and packing of a block, known before it is decoded.
struct PackedBlock {
    const u32* words;
    u32 bit;                // first bit of the block in `words`
    u32 freqs_bit;          // first bit of its frequencies
    u32 len;
    u32 base;               // document that the first gap counts from
    u32 last_doc;           // last document of a block of a long list
    u32 doc_code, freq_code;

    __device__ __forceinline__ bool full() const { return len == BLOCK_LEN; }

    // One posting of frequency 1, which takes no bits.
    __device__ static __forceinline__ PackedBlock single(u32 doc) { return {nullptr, 0, 0, 1, doc - 1, doc, 0, 0}; }

    // A short list that begins at byte `byte`.
    __device__ static __forceinline__ PackedBlock short_list(const u32* short_lists, u32 byte) {
        const u32* words = short_lists + byte / 4;
        const u32 head_bit = byte % 4 * 8, head = read_bits(words, head_bit, SHORT_HEAD_BITS);
        const u32 bit = head_bit + SHORT_HEAD_BITS, len = head & 127, doc_code = head >> 7 & 63;
        return {words, bit, bit + len * RunCode(doc_code).width(), len, NO_BASE, 0, doc_code, head >> 13 & 63};
    }

    // Block `number` of a long list whose bytes begin at `payload`. The arrays hold the last documents and the entries
    // (BlockEntry on the host) of the list's blocks.
    __device__ static __forceinline__ PackedBlock of_long(
        const LongList& list, const u32* payload, const u32* last_docs, const uint2* entries, u32 number
    ) {
        const uint2 entry = __ldg(entries + number);
        PackedBlock block;
        block.words = payload + entry.x / 4;
        block.bit = entry.x % 4 * 8;
        block.len = min(list.doc_freq - number * BLOCK_LEN, BLOCK_LEN);
        block.base = number == 0 ? NO_BASE : __ldg(last_docs + (number - 1));
        block.last_doc = __ldg(last_docs + number);
        block.doc_code = entry.y & 127;
        block.freq_code = entry.y >> 7 & 127;
        const u32 doc_bits = block.full() ? 8 * (entry.y >> 14 & 1023) : block.len * RunCode(block.doc_code).width();
        block.freqs_bit = block.bit + doc_bits;
        return block;
    }
};

// The lane's four values of a column that begins at bit `bit`. The whole warp calls it.
__device__ __forceinline__ void unpack_column(const u32* words, u32 bit, u32 code, u32 lane, u32 (&values)[4]) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) values[i] = 0;
    const u32 widest = code & 63;
    if (widest == 0) return;
    // The difference between the width of the lane's group and the widest one, in two or four bits.
    const u32 group = lane / 2;
    u32 behind, control_bits;
    if (code & 64) {
        control_bits = 64;
        behind = read_bits(words, bit + group % 8 / 4 * 32, 32) >> (8 * (group % 4) + 4 * (group / 8)) & 15;
    } else {
        control_bits = 32;
        behind = read_bits(words, bit, 32) >> (8 * (group % 4) + 2 * (group / 4)) & 3;
    }
    const u32 width = widest - min(widest, behind);
    // A group takes eight times its width in bits: four times for each of its lanes.
    const u32 own_bits = 4 * width;
    const u32 first = bit + control_bits + warp_prefix(own_bits, lane) - own_bits;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) values[i] = read_bits(words, first + i * width, width);
}

// Word `word` of a bitset of `num_bits` that begins at bit `bit`, 0 past its end.
__device__ __forceinline__ u32 bitset_word(const u32* words, u32 bit, u32 num_bits, u32 word) {
    return read_bits(words, bit + 32 * word, min(num_bits - 32 * word, 32u));
}

// The position of the set bit of the given rank, which must exist in `bits`.
__device__ __forceinline__ u32 nth_set_bit(u32 bits, u32 rank) {
    u32 position = 0;
#pragma unroll
    for (u32 step = WARP / 2; step > 0; step /= 2) {
        const u32 below = __popc(bits & ((1u << step) - 1));
        if (rank >= below) {
            rank -= below;
            bits >>= step;
            position += step;
        }
    }
    return position;
}

// The lane's four documents of a bitset. The counts of earlier words locate the first bit; the next three follow it, perhaps in
// later words.
__device__ __forceinline__ void unpack_bitset(const PackedBlock& block, u32 lane, u32 (&docs)[4]) {
    const u32 first = block.base + 1, num_bits = block.last_doc - block.base, num_words = (num_bits + 31) / 32;
    u32 before = 0, own_word = 0, own_bits = 0, own_rank = 0;
    for (u32 word = 0; word < num_words; ++word) {
        const u32 bits = bitset_word(block.words, block.bit, num_bits, word);
        const u32 count = __popc(bits);
        const u32 rank = 4 * lane - before;  // wraps, and so exceeds any count, if it was in an earlier word
        if (rank < count) {
            own_word = word;
            own_bits = bits;
            own_rank = rank;
        }
        before += count;
    }
    const u32 position = nth_set_bit(own_bits, own_rank);
    docs[0] = first + 32 * own_word + position;
    u32 rest = own_bits & 0xfffffffeu << position;
#pragma unroll
    for (u32 i = 1; i < 4; ++i) {
        // The block has 128 set bits, so lane 31 finds its last one in the last word at the latest.
#pragma unroll 1
        while (rest == 0 && own_word + 1 < num_words) rest = bitset_word(block.words, block.bit, num_bits, ++own_word);
        docs[i] = first + 32 * own_word + __ffs(rest) - 1;
        rest &= rest - 1;
    }
}

// The head of a stream of exceptions.
struct Exceptions {
    u32 count, high_width;

    __device__ __forceinline__ Exceptions(const u32* words, u32 bit) {
        const u32 head = read_bits(words, bit, 10);
        count = (head & 31) + 1;
        high_width = (head >> 5) + 1;
    }
    // The first bit of exception `e`, of a stream that begins at `bit`.
    __device__ __forceinline__ u32 at(u32 bit, u32 e) const { return bit + 10 + e * (7 + high_width); }
};

// The lane's four of `len` values that begin at bit `bit`, with exceptions from `exceptions_bit` on; unspecified past the end.
// The whole warp calls it.
__device__ __forceinline__ void unpack_run(
    const u32* words, u32 bit, RunCode code, u32 len, u32 exceptions_bit, u32 lane, u32 (&values)[4]
) {
    const u32 width = code.width();
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        values[i] = 4 * lane + i < len ? read_bits(words, bit + (4 * lane + i) * width, width) : 0;
    }
    if (!code.has_exceptions()) return;
    const Exceptions exceptions(words, exceptions_bit);
    u32 own_position = 0, own_high = 0;
    if (lane < exceptions.count) {
        const u32 at = exceptions.at(exceptions_bit, lane);
        own_position = read_bits(words, at, 7);
        own_high = read_bits(words, at + 7, exceptions.high_width) << width;
    }
    for (u32 e = 0; e < exceptions.count; ++e) {
        const u32 position = __shfl_sync(FULL_WARP, own_position, e);
        const u32 high = __shfl_sync(FULL_WARP, own_high, e);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) values[i] += position == 4 * lane + i ? high : 0;
    }
}

// The first bits of a run's exceptions: those of documents, then those of frequencies.
__device__ __forceinline__ u32 doc_exceptions_bit(const PackedBlock& block) {
    return block.freqs_bit + block.len * RunCode(block.freq_code).width();
}
__device__ __forceinline__ u32 freq_exceptions_bit(const PackedBlock& block) {
    const u32 bit = doc_exceptions_bit(block);
    if (!RunCode(block.doc_code).has_exceptions()) return bit;
    const Exceptions exceptions(block.words, bit);
    return exceptions.at(bit, exceptions.count);
}

// The block's documents, NO_DOC past its end, so the warp's documents always ascend.
__device__ __forceinline__ void decode_docs(const PackedBlock& block, u32 lane, u32 (&docs)[4]) {
    if (!block.full()) {
        const RunCode code(block.doc_code);
        unpack_run(block.words, block.bit, code, block.len, doc_exceptions_bit(block), lane, docs);
    } else if (block.doc_code == CODE_BITSET) {
        return unpack_bitset(block, lane, docs);
    } else {
        unpack_column(block.words, block.bit, block.doc_code, lane, docs);
    }
    docs[0] += 1;
#pragma unroll
    for (u32 i = 1; i < 4; ++i) docs[i] += docs[i - 1] + 1;
    const u32 before = block.base + warp_prefix(docs[3], lane) - docs[3];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) docs[i] = 4 * lane + i < block.len ? docs[i] + before : NO_DOC;
}

// The block's frequencies, unspecified past its end.
__device__ __forceinline__ void decode_freqs(const PackedBlock& block, u32 lane, u32 (&freqs)[4]) {
    if (block.full()) {
        unpack_column(block.words, block.freqs_bit, block.freq_code, lane, freqs);
    } else {
        const RunCode code(block.freq_code);
        unpack_run(block.words, block.freqs_bit, code, block.len, freq_exceptions_bit(block), lane, freqs);
    }
#pragma unroll
    for (u32 i = 0; i < 4; ++i) freqs[i] += 1;
}
