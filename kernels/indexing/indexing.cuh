// indexing.cuh: what the kernels that invert text share with the host and with each other.
//
// A run is text of many documents, one after another, in pieces as they came; it stays until the run is inverted. A word is known
// by its slot in a hash table, which says where in the text it first stood; a token is its word's slot and its document. Then
// slots are given terms by the host, tokens are sorted by term, and become lists.
//
//   count_words, scan_counts, number_words            for each piece
//   list_words | host: terms | set_terms, map_tokens
//   count_digits, scan_digits, scatter               for each eight bits of the terms
//   measure_postings, scan_counts, encode_postings
//
// They are a compile unit of their own (indexing.cu). The host's side is crates/core/src/indexing/invert/gpu/device.rs, which compares sizes
// when the module is loaded; what all of them do together is done again, by other means, in crates/core/src/indexing/invert/gpu/twin.rs.
#pragma once

#include "primitives.cuh"

typedef unsigned char u8;

constexpr u32 INDEXING_THREADS = 256;
constexpr u32 INDEXING_WARPS = INDEXING_THREADS / WARP;
constexpr u32 ROW = 16;                                    // bytes of text that a thread looks at, and that are loaded at once
constexpr u32 TEXT_TILE = INDEXING_THREADS * ROW;          // bytes of text of a thread block
constexpr u32 MAX_TILE_WORDS = TEXT_TILE / 2;              // words that begin in them
constexpr u32 SORT_TOKENS = 16;                            // tokens of a thread when they are sorted, ...
constexpr u32 SORT_TILE = INDEXING_THREADS * SORT_TOKENS;
constexpr u32 LIST_TOKENS = 8;                             // ... and when they are encoded
constexpr u32 LIST_TILE = INDEXING_THREADS * LIST_TOKENS;
constexpr u32 DIGITS = 256;
constexpr u32 SCAN_THREADS = 1024;
constexpr u32 STOP_WORD = 0xffffffffu;                     // in place of a term

// Counted on the device. The host reads tokens and words after each piece.
struct Totals {
    u32 tokens;
    u32 words;                // distinct ones
    u32 listed_words;         // as they are listed: words, and bytes of them
    u32 listed_bytes;
    u32 posting_bytes;
    u32 padding[3];
};

// Where a word stands among the bytes that are listed.
struct WordPlace {
    u32 start;
    u32 len;
};

// Everything in device memory. The host sees to it that there is room for the worst that can come.
struct Arrays {
    u8* text;                 // before and behind each piece stand blanks
    u32* doc_ends;            // of each document of the run, where its text ends
    u64* slots;               // of the table: 0, or where a word first stood, plus one, and above it half of its hash; then its term
    u64* tokens;              // slot (then term) above, document below
    u64* others;              // as many: where sorting puts them, and bytes to be fetched
    u32* tile_counts;         // words that begin in a tile, digits, bytes of postings; then what comes before
    u32* digit_totals;
    u32* word_slots;          // of each listed word
    WordPlace* word_places;
    u32* word_terms;          // from the host, or STOP_WORD
    u32* list_starts;         // of each term
    u32* doc_lengths;
    Totals* totals;
    u32 slot_mask;
    u32 is_unicode;           // words by the Unicode rules, else runs of letters and digits
};

extern "C" __constant__ const u32 indexing_layout[10] = {
    INDEXING_THREADS, TEXT_TILE, SORT_TILE, LIST_TILE, DIGITS, SCAN_THREADS, ROW, sizeof(Totals), sizeof(WordPlace), sizeof(Arrays),
};

// Prefix sums over a thread block of INDEXING_THREADS: what comes before this thread, and the sum. All of its threads call it.
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
