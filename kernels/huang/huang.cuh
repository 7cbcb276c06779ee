// huang.cuh: top-k queries by document ranges, after Huang et al., "GPU-Accelerated Block-Max Query Processing", 2017: what
// their kernels share.
//
//     grid        a thread block for each query of a batch
//     block       P threads, each of which owns the documents [i d, (i + 1) d), d = ceil(N / P), and has a top-k of its own
//     stages      cursors are set (initialisation) | each thread goes through its range (scoring) | barrier | merging
//
// They are a compile unit of their own, loaded only to re-run that paper. The host's copies of the structures are in
// crates/papers/src/huang/ranges/batch.rs and gpu/kernels.rs, compared when the module is loaded; the twins of everything else are the files of the
// same names in crates/papers/src/huang/ranges/.
#pragma once

#include "tandem.cuh"

constexpr u32 RANGE_BLOCK_LEN = 64;   // postings in a block, but for a list's last
constexpr u32 RANGE_THREADS = 512;    // threads of a thread block at most
constexpr u32 MAX_EXCEPTIONS = 6;     // of a block of 64: a tenth
constexpr u32 END_DOC = 0xffffffffu;  // stands for the document of a cursor that has left its range

// A block of a list, as the host has it.
struct __align__(16) RangeBlock {
    u32 least;
    u32 greatest;
    u32 offset;        // of its words among the list's
    float max_impact;  // no posting's score exceeds the term's weight times this
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
    u64 state;         // where its threads' cursors are kept, in words of the batch's state: CURSOR_WORDS a term and thread
    const u32* cuts;   // where each thread's documents begin, and the last one's end; null: all have ceil(N / P), as published
    u64 reserved;
};

// What a query took and did.
struct __align__(16) RangeReport {
    u64 cycles[3];     // initialisation, scoring, merging; of the multiprocessor's clock
    u64 postings_scored;
    u64 blocks_decoded;
    u32 found;         // results
    u32 reserved;
};

struct RangeBatch {
    const RangeQuery* queries;
    const RangeTerm* terms;
    const float* norms;      // of each document; null: all have `norm`
    u32* state;
    u64* local_keys;         // a top-k for each thread, where shared memory has no room for them; else null
    u64* results;            // k keys a query, best first
    RangeReport* reports;
    u32 num_docs;
    u32 k;
    float norm;
    u32 reserved;
};

// Words of a thread's cursor: cursor.cuh names them.
constexpr u32 CURSOR_WORDS = 25;

extern "C" __constant__ const u32 ranges_layout[9] = {
    RANGE_BLOCK_LEN, RANGE_THREADS, CURSOR_WORDS, SLACK_PARTS,
    sizeof(RangeBlock), sizeof(RangeTerm), sizeof(RangeQuery), sizeof(RangeReport), sizeof(RangeBatch),
};
