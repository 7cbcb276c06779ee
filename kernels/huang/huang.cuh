// huang.cuh: top-k queries by document ranges, after Huang et al., "GPU-Accelerated Block-Max Query Processing", 2017.
//
//     grid        one thread block per query of a batch
//     block       a query's P owners with idle threads between them; owner i has the documents [i d, (i + 1) d),
//                 d = ceil(N / P), and a top-k
//     stages      cursors are set (initialisation) | each owner scans its range (scoring) | barrier | merging
//
// The kernels are a compile unit of their own, loaded only to reproduce that paper. The host's copies of the structures are in
// crates/papers/src/huang/ranges/batch.rs and gpu/kernels.rs, compared at load. Twins of all else are the files of the same
// names in crates/papers/src/huang/ranges/.
#pragma once

#include "tandem.cuh"

constexpr u32 RANGE_BLOCK_LEN = 64;   // postings per block, except a list's last one
constexpr u32 RANGE_THREADS = 512;    // the most threads per query
constexpr u32 BLOCK_THREADS = 1024;   // the most threads per block: those of its query, and idle ones between them
constexpr u32 MAX_EXCEPTIONS = 6;     // the most exceptions of a block of 64: a tenth
constexpr u32 END_DOC = 0xffffffffu;  // the document of a cursor that has left its range

// A block of a list in the host's form.
struct __align__(16) RangeBlock {
    u32 least;
    u32 greatest;
    u32 offset;        // first of its words in the list
    float max_impact;  // upper bound of a posting's score divided by the term's weight
};

// A term of a query. Terms are in the query's order, in which scores are added.
struct __align__(16) RangeTerm {
    const RangeBlock* blocks;
    const u32* words;
    u32 num_blocks;
    u32 doc_freq;
    float weight;
    float max_score;   // the weight times the largest of the blocks' max_impact
};

struct __align__(16) RangeQuery {
    u32 first_term;    // among the terms of the batch
    u32 num_terms;
    u64 state;         // first word of its threads' cursors in the batch's state, if shared memory has no room for them
    const u32* cuts;   // the begin of each thread's documents, and the last one's end; null: ceil(N / P) each, as published
    u64 reserved;
};

// Measurements of a query.
struct __align__(16) RangeReport {
    u64 cycles[3];     // initialisation, scoring, merging, in the multiprocessor's clock
    u64 postings_scored;
    u64 blocks_decoded;
    u32 found;         // number of results
    u32 reserved;
};

struct RangeBatch {
    const RangeQuery* queries;
    const RangeTerm* terms;
    const float* norms;      // norm of each document; null: all have `norm`
    u32* state;              // CURSOR_WORDS per term and thread of the queries
    u64* local_keys;         // a top-k per thread if shared memory has no room for them, else null
    u64* results;            // k keys per query, best first
    RangeReport* reports;
    u32 num_docs;
    u32 k;
    float norm;
    u32 spread;              // threads of a block per thread of its query
    u32 room;                // vectors of shared memory for cursors; queries that need more have theirs in `state`
    u32 reserved;
};

// Words of a thread's cursor, and vectors of four words, which are read at once. cursor.cuh names them.
constexpr u32 CURSOR_WORDS = 28;
constexpr u32 CURSOR_VECTORS = CURSOR_WORDS / 4;

// Vectors of a thread in shared memory. An odd number, so that the threads of a warp use different banks.
__device__ __forceinline__ u32 shared_vectors_of(u32 num_terms) { return num_terms * CURSOR_VECTORS | 1; }

extern "C" __constant__ const u32 ranges_layout[9] = {
    RANGE_BLOCK_LEN, RANGE_THREADS, CURSOR_WORDS, SLACK_PARTS,
    sizeof(RangeBlock), sizeof(RangeTerm), sizeof(RangeQuery), sizeof(RangeReport), sizeof(RangeBatch),
};
