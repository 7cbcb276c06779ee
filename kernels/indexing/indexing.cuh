// indexing.cuh: what the kernels that invert text share with the host and with each other.
//
// A run is the text of many documents, in pieces, which stays until the run is inverted. The number of a word is its slot in a
// hash table, which holds the place of its first occurrence. A token is a slot and a document. The host assigns terms to slots;
// then tokens are sorted by term and encoded as lists.
//
//   count_words, scan_counts, number_words            per piece
//   list_words | host: terms | set_terms, map_tokens
//   count_digits, scan_digits, scatter               per eight bits of the terms
//   measure_postings, scan_counts, encode_postings
//
// The kernels are a compile unit of their own (indexing.cu). The host's side is crates/core/src/indexing/invert/gpu/device.rs,
// which compares sizes and offsets at load. Twin on the host: crates/core/src/indexing/invert/gpu/twin.rs.
#pragma once

#include "layout.cuh"
#include "primitives.cuh"

typedef unsigned char u8;

constexpr u32 INDEXING_THREADS = 256;
constexpr u32 INDEXING_WARPS = INDEXING_THREADS / WARP;
constexpr u32 ROW = 16;                                    // bytes of text per thread and load
constexpr u32 TEXT_TILE = INDEXING_THREADS * ROW;          // bytes of text per thread block
constexpr u32 MAX_TILE_WORDS = TEXT_TILE / 2;              // the most words that begin in them
constexpr u32 SORT_TOKENS = 16;                            // tokens per thread of the sort
constexpr u32 SORT_TILE = INDEXING_THREADS * SORT_TOKENS;
constexpr u32 LIST_TOKENS = 8;                             // tokens per thread of the encoder
constexpr u32 LIST_TILE = INDEXING_THREADS * LIST_TOKENS;
constexpr u32 DIGITS = 256;
constexpr u32 SCAN_THREADS = 1024;
constexpr u32 STOP_WORD = 0xffffffffu;                     // in place of a term

// Counters in device memory. The host reads tokens and words after each piece.
struct Totals {
    u32 tokens;
    u32 words;                // distinct words
    u32 listed_words;         // listed words, and their bytes
    u32 listed_bytes;
    u32 posting_bytes;
    u32 padding[3];
};

// The place of a word among the listed bytes.
struct WordPlace {
    u32 start;
    u32 len;
};

// All device memory. The host ensures room for the worst case.
struct Arrays {
    u8* text;                 // blanks surround each piece
    u32* doc_ends;            // end of the text of each document of the run
    u64* slots;               // 0, or one plus the place of the first occurrence below half of the hash; later the term
    u64* tokens;              // slot (later term) above, document below
    u64* others;              // equal in size: target of the sort, and bytes for the host
    u32* tile_counts;         // per tile: words, digits or bytes of postings; later the sums before the tile
    u32* digit_totals;
    u32* word_slots;          // per listed word
    WordPlace* word_places;
    u32* word_terms;          // from the host, or STOP_WORD
    u32* list_starts;         // per term
    u32* doc_lengths;
    Totals* totals;
    u32 slot_mask;
    u32 is_unicode;           // words by the Unicode rules, else runs of letters and digits
};

extern "C" __constant__ const u32 indexing_layout[10] = {
    INDEXING_THREADS, TEXT_TILE, SORT_TILE, LIST_TILE, DIGITS, SCAN_THREADS, ROW, sizeof(Totals), sizeof(WordPlace), sizeof(Arrays),
};
extern "C" __constant__ const u32 indexing_offsets[22] = {
    OFFSET(Totals, tokens), OFFSET(Totals, words), OFFSET(Totals, listed_words), OFFSET(Totals, listed_bytes),
    OFFSET(Totals, posting_bytes),
    OFFSET(WordPlace, start), OFFSET(WordPlace, len),
    OFFSET(Arrays, text), OFFSET(Arrays, doc_ends), OFFSET(Arrays, slots), OFFSET(Arrays, tokens), OFFSET(Arrays, others),
    OFFSET(Arrays, tile_counts), OFFSET(Arrays, digit_totals), OFFSET(Arrays, word_slots), OFFSET(Arrays, word_places),
    OFFSET(Arrays, word_terms), OFFSET(Arrays, list_starts), OFFSET(Arrays, doc_lengths), OFFSET(Arrays, totals),
    OFFSET(Arrays, slot_mask), OFFSET(Arrays, is_unicode),
};

// Prefix sums over a thread block of INDEXING_THREADS: the sum before this thread, and the total. All threads call it.
struct Prefix {
    u32 before;
    u32 sum;
};

__device__ __forceinline__ Prefix block_prefix(u32 value) {
    __shared__ u32 warp_sums[INDEXING_WARPS];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 inclusive = warp_prefix(value, lane);
    __syncthreads();
    if (lane == WARP - 1) warp_sums[warp] = inclusive;
    __syncthreads();
    u32 before = 0, sum = 0;
#pragma unroll
    for (u32 i = 0; i < INDEXING_WARPS; i++) {
        before += i < warp ? warp_sums[i] : 0;
        sum += warp_sums[i];
    }
    return {before + inclusive - value, sum};
}
