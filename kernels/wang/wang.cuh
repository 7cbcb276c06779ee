// wang.cuh: what the kernel of pruned list caching shares with the host.
//
// The method is that of Wang, Yu, Stones, Ren, Wang, Liu and Ren, "Efficient GPU-based Query Processing with Pruned List
// Caching in Search Engines", ICPADS 2017; hash segmentation is that of Ao et al., PVLDB 2011. The host's copies of the
// structures are in crates/papers/src/wang/gpu/kernels.rs, compared at load as in tandem.cuh.
#pragma once

#include "primitives.cuh"

constexpr u32 CACHED_THREADS = 256;   // threads per block, and documents per round: the paper's B
constexpr u32 CACHED_MAX_K = 16;      // the most documents of a query; a warp's 32 at least halve when they are cut to k
constexpr u32 CACHED_MAX_TERMS = 32;

// A list or a prefix of it, in the layout of crates/papers/src/wang/lists.rs.
struct CachedTerm {
    const u32* docs;       // ascending
    const u32* freqs;
    const u32* table;      // postings before each bucket, and one more entry
    u32 num_buckets;
    u32 shift;             // a bucket holds the documents with the same `doc >> shift`
    float weight;          // (1 - alpha) times the term's share of the query's weights
    u32 reserved;
};

struct CachedQuery {
    u32 first_term;        // among the batch's terms, in ascending length of their lists
    u32 num_terms;
    u32 len;               // documents of the shortest list that are within every list's prefix
    float behind;          // GS of the next one of the whole list; below 0 if there is none
};

struct CachedBatch {
    const CachedQuery* queries;
    const CachedTerm* terms;
    const float* priors;   // alpha PR of each document
    const float* norms;
    const float* global_scores;
    u64* results;          // for each query k keys, best first, 0 for none, and whether the answer is complete
    u32 k;
    float ceiling;         // 1 + a
};

extern "C" __constant__ const u32 cached_layout[6] = {
    CACHED_THREADS, CACHED_MAX_K, CACHED_MAX_TERMS, sizeof(CachedTerm), sizeof(CachedQuery), sizeof(CachedBatch),
};
