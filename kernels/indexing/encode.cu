// encode.cu: encodes sorted tokens as lists, as crates/core/src/indexing/postings.rs does.
//
// A posting is a run of equal tokens: twice its gap minus one, plus one if a frequency above 1 follows, in bytes of seven bits,
// lowest first. The bytes of each tile are measured first, and written once the begin of each tile is known.
// In:   sorted tokens (term above, document below). Those from term `num_terms` on are stop words.
// Out:  consecutive lists, and the begin of each.
// Launch bounds: 256 threads. Bound by latency for short lists, else by memory.

#include "indexing/indexing.cuh"

// The posting that a token begins, if any, and whether it begins a list.
struct Posting {
    u32 code;
    u32 freq;                 // 0: nothing begins
    bool begins_list;

    __device__ __forceinline__ u32 bytes() const { return freq == 0 ? 0 : size(code) + (freq > 1 ? size(freq) : 0); }
    __device__ static __forceinline__ u32 size(u32 value) { return (38 - __clz(value | 1)) / 7; }
};

// One past the last token equal to the one at `first`, found by doubling steps and then bisection.
__device__ __forceinline__ u32 end_of_equal(const u64* tokens, u32 num_tokens, u32 first) {
    const u64 token = tokens[first];
    u32 low = first, step = 1;
    while (num_tokens - low > step && tokens[low + step] == token) {
        low += step;
        step *= 2;
    }
    u32 high = num_tokens - low > step ? low + step : num_tokens;
    while (low + 1 < high) {
        const u32 middle = low + (high - low) / 2;
        if (tokens[middle] == token) low = middle; else high = middle;
    }
    return high;
}

__device__ __forceinline__ Posting posting_at(const u64* tokens, u32 num_tokens, u32 num_terms, u32 at) {
    Posting posting = {0, 0, false};
    if (at >= num_tokens) return posting;
    const u64 token = tokens[at];
    const u32 term = u32(token >> 32), doc = u32(token);
    if (term >= num_terms) return posting;
    u32 next = 0;
    posting.begins_list = true;
    if (at > 0) {
        const u64 before = tokens[at - 1];
        if (before == token) return {0, 0, false};
        if (before >> 32 == term) {
            posting.begins_list = false;
            next = u32(before) + 1;
        }
    }
    posting.freq = end_of_equal(tokens, num_tokens, at) - at;
    posting.code = (doc - next) << 1 | (posting.freq > 1 ? 1 : 0);
    return posting;
}

__device__ __forceinline__ u8* put(u8* to, u32 value) {
    for (; value >= 0x80; value >>= 7) *to++ = value | 0x80;
    *to++ = value;
    return to;
}

extern "C" __global__ void __launch_bounds__(INDEXING_THREADS)
measure_postings(const u64* tokens, u32 num_tokens, u32 num_terms, u32* tile_bytes) {
    const u32 first = blockIdx.x * LIST_TILE + threadIdx.x * LIST_TOKENS;
    u32 bytes = 0;
    for (u32 i = 0; i < LIST_TOKENS; i++) bytes += posting_at(tokens, num_tokens, num_terms, first + i).bytes();
    const Prefix prefix = block_prefix(bytes);
    if (threadIdx.x == 0) tile_bytes[blockIdx.x] = prefix.sum;
}

extern "C" __global__ void __launch_bounds__(INDEXING_THREADS)
encode_postings(const u64* tokens, u32 num_tokens, u32 num_terms, const u32* tile_bytes, u8* lists, u32* list_starts) {
    const u32 first = blockIdx.x * LIST_TILE + threadIdx.x * LIST_TOKENS;
    Posting postings[LIST_TOKENS];
    u32 bytes = 0;
#pragma unroll
    for (u32 i = 0; i < LIST_TOKENS; i++) {
        postings[i] = posting_at(tokens, num_tokens, num_terms, first + i);
        bytes += postings[i].bytes();
    }
    u8* to = lists + tile_bytes[blockIdx.x] + block_prefix(bytes).before;
#pragma unroll
    for (u32 i = 0; i < LIST_TOKENS; i++) {
        if (postings[i].freq == 0) continue;
        if (postings[i].begins_list) list_starts[tokens[first + i] >> 32] = to - lists;
        to = put(to, postings[i].code);
        if (postings[i].freq > 1) to = put(to, postings[i].freq);
    }
}
