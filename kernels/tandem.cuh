// tandem.cuh: what all kernels share: sizes, the structures that the host passes, scoring, keys.
//
// The host's copies of these are in src/exec/gpu/kernels.rs. `tandem_layout` below carries the values that must agree into
// the module, and the host compares them when it loads it: a constant changed on one side only never reaches a query.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 FULL_WARP = 0xffffffffu;
constexpr u32 WARP = 32;

constexpr u32 BLOCK_LEN = 128;        // postings in a full block: 4 a lane
constexpr u32 MAX_TERMS = 64;         // terms of a query: two a lane where a warp looks at all of them
constexpr u32 MAX_K = 1000;           // results of a query
constexpr u32 TILE_DOCS = 8192;       // documents that a block of score_union accumulates: 32 KiB of shared memory
constexpr u32 UNION_THREADS = 256;
constexpr u32 INTERSECT_THREADS = 128;
constexpr u32 MERGE_THREADS = 512;
constexpr u32 SCORE_BINS = 2048;      // of the histogram of candidates' scores

constexpr u32 NO_DOC = 0xffffffffu;   // above every document: the empty places of a block that is not full
constexpr u32 ANY_DOC = NO_DOC - 1;   // stands for the last document of a short list, which is not stored

// The index in device memory. One copy, read only, shared by all streams.
struct Index {
    const u32* last_docs;    // of each block of a long list
    const uint2* blocks;     // where it is in the payload, and how it is packed: BlockEntry on the host
    const u32* payload;
    const u32* short_lists;
    const float* norms;      // BM25's norm of each document
    u32 num_docs;
    u32 reserved;
};

// One term of a query: where its list is, and what its postings weigh. A list of fewer than BLOCK_LEN postings is short.
struct Term {
    u64 start;               // a long list's first word in the payload, a short list's first bit among the short lists
    u32 first_block;         // of a long list
    u32 num_blocks;
    u32 doc_freq;
    u32 base;                // the document that the list's first gap counts from
    u32 packing;             // how a short list is packed, as in a block
    float max_impact;
    float weight;
    u32 reserved;
};

enum Mode : u32 { MODE_AND = 0, MODE_OR = 1, MODE_AND_OR = 2 };

// A query, passed by value as a kernel parameter: it needs no copy of its own.
struct Query {
    Term terms[MAX_TERMS];  // in the order in which scores are added: ascending document frequency
    u32 num_terms;
    u32 k;
    Mode mode;
    u32 use_bounds;         // whether the index's impacts hold for this query's BM25 parameters
    u32 slice_bits;         // score_intersect: log2 of the warps that share a block of the shortest list
    float bins_per_score;   // SCORE_BINS / the sum of the weights
};

// Candidates that one scoring kernel has emitted, counted by score.
struct Channel {
    u32 bins[SCORE_BINS];
    u32 count;
    u32 reserved[3];        // bins are read sixteen bytes at a time
};

// What the kernels of one query tell each other. All zero before the first of them starts.
struct State {
    u64 threshold;          // a key that k documents are known to reach: whatever is below is out
    u32 matches;            // documents with all terms
    u32 num_survivors;      // merge_topk's second stage
    Channel intersection;
    Channel union_;
    u32 tickets;            // blocks of merge_topk that are done with their share
    u32 reserved[3];
};

extern "C" __constant__ const u32 tandem_layout[12] = {
    BLOCK_LEN, MAX_TERMS, MAX_K, TILE_DOCS, UNION_THREADS, INTERSECT_THREADS, MERGE_THREADS, SCORE_BINS,
    sizeof(Index), sizeof(Term), sizeof(Query), sizeof(State),
};

// BM25 of one posting, bit for bit as Bm25::score on the host: every operation is rounded once, none is fused.
__device__ __forceinline__ float posting_score(float weight, u32 freq, float norm) {
    const float tf = __uint2float_rn(freq);
    return __fdiv_rn(__fmul_rn(weight, tf), __fadd_rn(tf, norm));
}

// One number that orders documents: higher scores first (scores are not negative, so that their bits order as they do),
// equal scores by smaller document. No document's key is 0: documents are below 2^31.
__device__ __forceinline__ u64 make_key(float score, u32 doc) {
    return static_cast<u64>(__float_as_uint(score)) << 32 | ~doc;
}

// The threshold as of now. Other blocks raise it meanwhile; an old value only filters less. At least 1: key 0 is nothing.
__device__ __forceinline__ u64 read_threshold(const State* state) {
    return max(*static_cast<const volatile u64*>(&state->threshold), 1ull);
}

// The histogram bin of a key. Monotone in the score: a higher bin holds only better keys.
__device__ __forceinline__ u32 score_bin(u64 key, float bins_per_score) {
    const float score = __uint_as_float(static_cast<u32>(key >> 32));
    return min(__float2uint_rz(__fmul_rn(score, bins_per_score)), SCORE_BINS - 1);
}

__device__ __forceinline__ u32 warp_sum(u32 value) {
#pragma unroll
    for (u32 distance = WARP / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(FULL_WARP, value, distance);
    return value;
}
