// block_codec.cuh: lists, blocks and packed postings as the index hands them out, read by one warp at a time into registers:
// transcode.cu's reader.
//
// Lane t holds postings 4t to 4t+3. In a full block these four lie side by side: the vertical layout keeps value i in lane
// i % 4 of a row of four words, so that all four start at bit t * bits of their word stream, and two 16-byte loads and four
// funnel shifts unpack them. Gaps (stored minus one) become documents by three adds in the lane and one scan over the warp.
// Fewer postings (a short list, or a long one's last block) are packed one after another and read word by word. The few
// values that are wider than the others have their high bits elsewhere: lane e fetches exception e, and shuffles bring it to
// its posting. Dense documents are a bitset. The form is described in src/index/device.rs; the host's twin is src/index/packed.
#pragma once

#include "tandem.cuh"

constexpr u32 CODE_BITSET = 63;

__device__ __forceinline__ u32 code_width(u32 code) { return code < 33 ? code : code - 33; }
__device__ __forceinline__ bool has_exceptions(u32 code) { return code > 32 && code < CODE_BITSET; }

// `width` bits, at most 32, from bit `bit` of `words` on. Reads no word but those that hold them.
__device__ __forceinline__ u32 read_bits(const u32* words, u32 bit, u32 width) {
    if (width == 0) return 0;
    const u32 low = __ldg(words + bit / 32), high = __ldg(words + (bit + width - 1) / 32);
    // The funnel shift rotates where both are the same word, and the mask drops what came round.
    return __funnelshift_r(low, high, bit) & 0xffffffffu >> (32 - width);
}

// Where the exceptions of a full block begin, from its first row.
__device__ __forceinline__ u32 full_block_exceptions_bit(u32 packing) { return 16 * (packing >> 12 & 0xfff); }

// What is known of a block before it is decoded.
struct BlockHeader {
    const u32* words;  // a full block's first row, or a word before the first bit of fewer postings
    u32 bit;           // where these begin in `words`
    u32 packing;       // codes, distance to the exceptions, bound: BlockEntry on the host
    u32 len;
    u32 base;          // the document that the block's first gap counts from
    u32 last_doc;

    __device__ __forceinline__ u32 doc_code() const { return packing & 63; }
    __device__ __forceinline__ u32 freq_code() const { return packing >> 6 & 63; }
    __device__ __forceinline__ bool full() const { return len == BLOCK_LEN; }
    // Words of a full block's documents.
    __device__ __forceinline__ u32 doc_words() const {
        return 4 * (doc_code() == CODE_BITSET ? (last_doc - base + BLOCK_LEN - 1) / BLOCK_LEN : code_width(doc_code()));
    }
    // Where the frequencies begin.
    __device__ __forceinline__ const u32* freq_words() const { return full() ? words + doc_words() : words; }
    __device__ __forceinline__ u32 freq_bit() const { return full() ? 0 : bit + len * code_width(doc_code()); }
    // Where the exceptions begin: those of the documents, then those of the frequencies.
    __device__ __forceinline__ u32 exceptions_bit() const {
        return full() ? full_block_exceptions_bit(packing) : freq_bit() + len * code_width(freq_code());
    }
};

// A term's list.
struct List {
    const u32* last_docs;
    const uint2* blocks;
    const u32* payload;  // of a short list: the word with its first bit
    u32 num_blocks;
    u32 doc_freq;
    u32 first_base;
    u32 packing;         // of a short list
    u32 bit;             // of a short list

    __device__ __forceinline__ List(const Index& index, const Term& term)
        : last_docs(index.last_docs + term.first_block),
          blocks(index.blocks + term.first_block),
          payload(term.doc_freq < BLOCK_LEN ? index.short_lists + term.start / 32 : index.payload + term.start),
          num_blocks(term.num_blocks),
          doc_freq(term.doc_freq),
          first_base(term.base),
          packing(term.packing),
          bit(term.start % 32) {}

    __device__ __forceinline__ bool is_short() const { return doc_freq < BLOCK_LEN; }
    __device__ __forceinline__ u32 last_doc(u32 block) const { return is_short() ? ANY_DOC : __ldg(last_docs + block); }

    __device__ __forceinline__ BlockHeader header(u32 block) const {
        BlockHeader header;
        header.base = block == 0 ? first_base : last_doc(block - 1);
        header.last_doc = last_doc(block);
        header.len = min(doc_freq - block * BLOCK_LEN, BLOCK_LEN);
        if (is_short()) {
            header.words = payload;
            header.bit = bit;
            header.packing = packing;
        } else {
            const uint2 entry = __ldg(blocks + block);
            header.words = payload + 4ull * entry.x;
            header.bit = 16 * (entry.y >> 12 & 0xfff);
            header.packing = entry.y;
        }
        return header;
    }
};

// The lane's four of a block's values, without exceptions; 0 past the end.
__device__ __forceinline__ void unpack(const u32* words, u32 bit, u32 width, u32 len, u32 lane, u32 (&values)[4]) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) values[i] = 0;
    if (width == 0) return;
    if (len == BLOCK_LEN) {
        // As in `read_bits`, four streams at once: nothing is read past the rows.
        const u32 mask = 0xffffffffu >> (32 - width);
        const uint4* rows = reinterpret_cast<const uint4*>(words);
        const u32 first = lane * width;
        const uint4 low = __ldg(rows + first / 32);
        const uint4 high = __ldg(rows + (first + width - 1) / 32);
        values[0] = __funnelshift_r(low.x, high.x, first) & mask;
        values[1] = __funnelshift_r(low.y, high.y, first) & mask;
        values[2] = __funnelshift_r(low.z, high.z, first) & mask;
        values[3] = __funnelshift_r(low.w, high.w, first) & mask;
    } else {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            if (4 * lane + i < len) values[i] = read_bits(words, bit + (4 * lane + i) * width, width);
        }
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
    // Where exception `e` begins, of a stream that begins at `bit`.
    __device__ __forceinline__ u32 at(u32 bit, u32 e) const { return bit + 10 + e * (7 + high_width); }
};

// The bit behind the documents' exceptions: where those of the frequencies begin.
__device__ __forceinline__ u32 freq_exceptions_bit(const BlockHeader& header) {
    const u32 bit = header.exceptions_bit();
    if (!has_exceptions(header.doc_code())) return bit;
    const Exceptions exceptions(header.words, bit);
    return exceptions.at(bit, exceptions.count);
}

// Adds the high bits of the values that have some. The whole warp calls it.
__device__ __forceinline__ void add_exceptions(const u32* words, u32 bit, u32 code, u32 lane, u32 (&values)[4]) {
    const Exceptions exceptions(words, bit);
    u32 own_position = 0, own_high = 0;
    if (lane < exceptions.count) {
        const u32 at = exceptions.at(bit, lane);
        own_position = read_bits(words, at, 7);
        own_high = read_bits(words, at + 7, exceptions.high_width) << code_width(code);
    }
    for (u32 e = 0; e < exceptions.count; ++e) {
        const u32 position = __shfl_sync(FULL_WARP, own_position, e);
        const u32 high = __shfl_sync(FULL_WARP, own_high, e);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) values[i] += position == 4 * lane + i ? high : 0;
    }
}

// Where the bit set of the given rank is; `bits` has that many and more.
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

// The lane's four documents of a bitset that begins with document `first`. The lane's first bit is looked for once, by the
// counts of the words before it; the next three follow it, perhaps in later words.
__device__ __forceinline__ void unpack_bitset(const u32* words, u32 num_words, u32 first, u32 lane, u32 (&docs)[4]) {
    u32 before = 0, own_word = 0, own_bits = 0, own_rank = 0;
#pragma unroll 4
    for (u32 word = 0; word < num_words; ++word) {
        const u32 bits = __ldg(words + word);
        const u32 count = __popc(bits);
        const u32 rank = 4 * lane - before;  // wraps, and so exceeds any count, if it was in a word before
        if (rank < count) {
            own_word = word;
            own_bits = bits;
            own_rank = rank;
        }
        before += count;
    }
    u32 position = nth_set_bit(own_bits, own_rank);
    docs[0] = first + 32 * own_word + position;
    u32 rest = own_bits & 0xfffffffeu << position;
#pragma unroll
    for (u32 i = 1; i < 4; ++i) {
        // The block has 128 bits set: lane 31 finds its last one in the last word at the latest.
#pragma unroll 1
        while (rest == 0 && own_word + 1 < num_words) rest = __ldg(words + ++own_word);
        docs[i] = first + 32 * own_word + __ffs(rest) - 1;
        rest &= rest - 1;
    }
}

// The block's documents; NO_DOC past its end, so that the warp's documents ascend in any case.
__device__ __forceinline__ void decode_docs(const BlockHeader& header, u32 lane, u32 (&docs)[4]) {
    const u32 code = header.doc_code();
    if (code == CODE_BITSET) return unpack_bitset(header.words, header.doc_words(), header.base + 1, lane, docs);
    unpack(header.words, header.bit, code_width(code), header.len, lane, docs);
    if (has_exceptions(code)) add_exceptions(header.words, header.exceptions_bit(), code, lane, docs);
    docs[0] += 1;
#pragma unroll
    for (u32 i = 1; i < 4; ++i) docs[i] += docs[i - 1] + 1;
    u32 sum = docs[3];
#pragma unroll
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        const u32 lower = __shfl_up_sync(FULL_WARP, sum, distance);
        if (lane >= distance) sum += lower;
    }
    const u32 before = header.base + sum - docs[3];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) docs[i] = 4 * lane + i < header.len ? docs[i] + before : NO_DOC;
}

// The block's frequencies; 1 past its end.
__device__ __forceinline__ void decode_freqs(const BlockHeader& header, u32 lane, u32 (&freqs)[4]) {
    const u32 code = header.freq_code();
    unpack(header.freq_words(), header.freq_bit(), code_width(code), header.len, lane, freqs);
    if (has_exceptions(code)) add_exceptions(header.words, freq_exceptions_bit(header), code, lane, freqs);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) freqs[i] += 1;
}
