// wei.cuh: what the kernels of the paper's indexer share with the host: a trie of B-trees, and the data of a run.
//
// The method is that of Wei and JaJa, "A fast algorithm for constructing inverted files on heterogeneous platforms", IPDPS
// 2011. The kernels are a compile unit of their own (wei.cu). The host's copies of the structures are in
// crates/papers/src/wei/trie/node.rs, dictionary.rs and gpu/backend.rs, compared at load.
#pragma once

#include "primitives.cuh"

typedef unsigned char u8;

constexpr u32 INDEX_THREADS = 32;      // one warp: as many lanes as a node has children
constexpr u32 TREE_DEGREE = 16;
constexpr u32 MAX_KEYS = 31;           // keys per node
constexpr u32 WINDOW_BYTES = 512;      // bytes of a stream in shared memory
constexpr u32 NO_NODE = 0xffffffffu;   // the root of a slot without terms
constexpr u32 NO_KEY = 0xffffffffu;    // the cache of no term
constexpr u32 DOCUMENT_MARK = 255;     // in place of a length in a stream: a document of four bytes follows
constexpr u32 LONG_MARK = 254;         // in place of a length: it follows in four bytes

// A node of a B-tree. Caches are the first four bytes of a term, most significant first; places behind the keys hold NO_KEY.
struct __align__(16) Node {
    u32 len;                  // number of keys
    u32 rests[MAX_KEYS];      // places of the bytes behind the caches among the strings, length first; 0 for none
    u32 is_leaf;
    u32 terms[MAX_KEYS];      // numbers of terms
    u32 children[MAX_KEYS + 1];
    u32 caches[MAX_KEYS];
    u32 padding;
};

// A term by its number.
struct Term {
    u32 slot;
    u32 cache;
    u32 rest;
};

// The last occurrence of a term.
struct State {
    u32 doc;                  // in the collection
    u32 posting;              // in the run
};

// A posting. Those of a slot are contiguous, in the order in which they began.
struct Posting {
    u32 term;
    u32 doc;                  // in the collection
    u32 freq;
};

// A slot with terms in this run.
struct Task {
    u32 slot;
    u32 first_posting;        // there is room for one per token
    u32 bytes;                // bytes of its stream
    u32 start;                // start of its stream in the input, in units of 16 bytes
};

// Used space of the arrays below.
struct Counters {
    u32 nodes;
    u32 strings;              // bytes of strings
    u32 terms;
    u32 next_task;
};

// All device memory. Before a launch the host ensures room for the worst case.
struct Trie {
    Node* nodes;
    u32* roots;               // root of each slot
    u8* strings;
    Term* terms;
    State* states;
    Posting* postings;
    u32* task_postings;       // out: postings of each task
    u32* task_ns;             // out: nanoseconds of each task's warp
    Counters* counters;
    const u8* input;          // streams, each aligned to 16 bytes; WINDOW_BYTES more may be read
    const Task* tasks;
    u32 num_tasks;
    u32 first_doc;            // first document of the run in the collection
};

extern "C" __constant__ const u32 trie_layout[9] = {
    INDEX_THREADS, WINDOW_BYTES, sizeof(Node), sizeof(Term), sizeof(State), sizeof(Posting), sizeof(Task), sizeof(Counters),
    sizeof(Trie),
};
