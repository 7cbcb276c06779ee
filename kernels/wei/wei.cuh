// wei.cuh: what the kernels of the paper's indexer share with the host: a trie of B-trees, and what a run adds to it.
//
// The method is that of Wei and JaJa, "A fast algorithm for constructing inverted files on heterogeneous platforms", IPDPS
// 2011. They are a compile unit of their own (wei.cu). The host's copies of the structures are in crates/papers/src/wei/trie/node.rs,
// dictionary.rs and gpu/backend.rs, compared when the module is loaded.
#pragma once

#include "primitives.cuh"

typedef unsigned char u8;

constexpr u32 INDEX_THREADS = 32;      // a warp: as many lanes as a node has children
constexpr u32 TREE_DEGREE = 16;
constexpr u32 MAX_KEYS = 31;           // of a node
constexpr u32 WINDOW_BYTES = 512;      // of a stream, in shared memory
constexpr u32 NO_NODE = 0xffffffffu;   // the root of a slot without terms
constexpr u32 NO_KEY = 0xffffffffu;    // the cache of no term
constexpr u32 DOCUMENT_MARK = 255;     // in a stream, in place of a length: a document of four bytes follows
constexpr u32 LONG_MARK = 254;         // in place of a length: it follows in four bytes

// A node of a B-tree. Caches are the first four bytes of a term, the first of them highest; places behind the keys hold NO_KEY.
struct __align__(16) Node {
    u32 len;                  // keys
    u32 rests[MAX_KEYS];      // where the bytes behind the cache stand among the strings, their length first; 0: there are none
    u32 is_leaf;
    u32 terms[MAX_KEYS];      // numbers
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

// Where a term was last.
struct State {
    u32 doc;                  // in the collection
    u32 posting;              // in the run
};

// A posting. Those of a slot stand together, in the order in which they began.
struct Posting {
    u32 term;
    u32 doc;                  // in the collection
    u32 freq;
};

// A slot with terms in this run.
struct Task {
    u32 slot;
    u32 first_posting;        // there is room for one for each token
    u32 bytes;                // of its stream
    u32 start;                // of its stream in the input, in 16 bytes
};

// What has been given out of the arrays below.
struct Counters {
    u32 nodes;
    u32 strings;              // bytes
    u32 terms;
    u32 next_task;
};

// Everything in device memory. Before a launch the host makes sure that the arrays have room for the worst that can come.
struct Trie {
    Node* nodes;
    u32* roots;               // of each slot
    u8* strings;
    Term* terms;
    State* states;
    Posting* postings;
    u32* task_postings;       // out: how many each task made, ...
    u32* task_ns;             // ... and how long its warp took
    Counters* counters;
    const u8* input;          // streams, each from a multiple of 16 on; WINDOW_BYTES more may be read
    const Task* tasks;
    u32 num_tasks;
    u32 first_doc;            // of the run, in the collection
};

extern "C" __constant__ const u32 trie_layout[9] = {
    INDEX_THREADS, WINDOW_BYTES, sizeof(Node), sizeof(Term), sizeof(State), sizeof(Posting), sizeof(Task), sizeof(Counters),
    sizeof(Trie),
};
