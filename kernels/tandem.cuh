// tandem.cuh: sizes, argument structures, scoring and keys of the search kernels.
//
// The host's copies are in crates/engine/src/search/gpu/arguments.rs (structures) and kernels.rs (sizes). `tandem_layout` and
// `tandem_offsets` below export all values, sizes and offsets of fields that must agree. The host compares them at load, so a
// change on one side only never reaches a query.
#pragma once

#include "layout.cuh"
#include "primitives.cuh"

constexpr u32 BLOCK_LEN = 128;        // postings in a full block: 4 per lane
constexpr u32 MAX_TERMS = 64;         // terms of a query: 2 per lane if a warp reads all of them
constexpr u32 FEW_TERMS = 8;          // the limit of nearly every query; smaller parameters arrive sooner
constexpr u32 MAX_K = 1000;           // results of a query
constexpr u32 WARP_K = 128;           // the most results that a warp sorts
constexpr u32 TILE_DOCS = 8192;       // documents per tile: 32 KiB of shared memory
constexpr u32 GROUP_TILES = 8;        // the most tiles of a thread block of score_tiles: a warp for each
constexpr u32 TILE_THREADS = 256;     // threads per block of tiles.cu
constexpr u32 LONE_THREADS = 128;     // threads per block of lone.cu
constexpr u32 BATCH_THREADS = 64;     // threads per block of batch.cu: a multiprocessor holds most warps in this way
constexpr u32 MERGE_THREADS = 512;    // threads per block of topk.cu
constexpr u32 SCORE_BINS = 512;       // bins of the histogram of candidates' scores

constexpr u64 TOO_MANY = ~0ull - 1;      // in place of the number of results: the candidates exceeded their capacity
constexpr u32 NO_DOC = 0xffffffffu;   // above every document: the free places of a block

// A block of a list in the searched form, which lists.cuh describes.
struct __align__(16) Block {
    u32 row;           // first row of 16 bytes: documents, then impacts, then frequencies
    u32 first_doc;
    u32 packing;       // length and widths of documents and frequencies, see Header::pack
    float max_impact;  // upper bound of a posting's score divided by the term's weight, except for rounding
};

// An entry of a long list's directory: one of equal intervals of documents.
struct __align__(8) DirectoryEntry {
    u32 before;  // the list's postings before the interval
    u32 parts;   // the 32 equal parts of the interval that have postings, one bit each
};

// All lists in the searched form, in device memory. All streams share one read-only copy.
struct Lists {
    const Block* blocks;   // blocks of long lists, then one per term for short lists
    const u32* rows;       // four words each
    const DirectoryEntry* directory;  // `directory_stride` entries per block of a long list
    const float* norms;    // BM25 norm of each document
    const u32* host_rows;  // virtual address of row 0 for host-resident rows, which begin at `num_resident`
    u32 num_docs;
    u32 num_resident;      // number of device-resident rows; a block is entirely before or behind this border
    u32 directory_stride;  // entries of a directory per block; a list's last one only says how many postings are before it

    // The array that holds the rows of the block with this first row.
    __device__ __forceinline__ const u32* rows_from(u32 row) const { return row < num_resident ? rows : host_rows; }
};

// One term of a query. Terms are in the order of addition: ascending document frequency.
struct QueryTerm {
    u32 first_block;
    u32 doc_freq;
    u32 scale;     // directory entries per document, in units of 2^-32; 0 for a short list (less than a block), which has none
    float weight;
    float rest;    // upper bound of the sum of this term's and later terms' scores, except for rounding
};

struct Query {
    u32 first_term;        // first term among those of the batch
    u32 num_terms;
    u32 k;
    float seed;            // a score that k documents reach, known before the search
    float bins_per_score;  // bins per score if the histogram begins at `seed`
    float bins_per_bound;  // bins per score if the histogram begins at 0

    // The query for documents with all terms. The seed of documents with any term does not hold for them.
    __device__ __forceinline__ void need_all() {
        seed = 0.0f;
        bins_per_score = bins_per_bound;
    }
};

// A driving list (drive.cuh). Its items are those from first_item up to the next driver's first_item.
struct __align__(16) Driver {
    u32 query;             // number of the query in the batch
    u32 term;              // number of the term in the query
    u32 first_item;
    u32 blocks_an_item;    // blocks per item; 0 if four items share a block
};

// One launch for a single query.
struct LoneStage {
    u32 num_drivers;
    u32 num_items;
    u32 needs_all;         // whether documents need all terms
    u32 capacity;          // capacity for candidates
    u32 is_last;           // whether no other stage follows
};

// A query of up to TERMS terms, passed by value as a kernel parameter without a separate copy.
template <u32 TERMS>
struct LoneQuery {
    Query query;
    LoneStage stage;
    QueryTerm terms[TERMS];
    u32 reserved;          // padding before the drivers
    Driver drivers[TERMS];
};

// A query of a batch, or one stage of it.
struct __align__(16) BatchQuery {
    Query query;
    u32 num_items;         // items of all drivers, or tiles; the last one to finish sorts
    u32 result;            // first word of its results
    u32 candidates;        // first key of its candidates
    u32 capacity;          // capacity for candidates
    u32 gate;              // entry of the stage before, or NO_GATE
    u32 flags;

    __device__ __forceinline__ bool needs_all() const { return (flags & 1) != 0; }     // documents need all terms
    __device__ __forceinline__ bool is_last() const { return (flags & 2) != 0; }       // no other stage follows
    __device__ __forceinline__ bool sorts_later() const { return (flags & 4) != 0; }   // merge_topk sorts
    __device__ __forceinline__ bool scores_all() const { return (flags & 8) != 0; }    // no tile is skipped
};
constexpr u32 NO_GATE = 0xffffffffu;

// A query of a batch that is scored by tiles (tiles.cu).
struct TileQuery {
    u32 query;             // entry of the query
    u32 sample_stride;     // distance of the tiles that are sampled first; 0 without a sample
};

// One launch for a batch.
struct Batch {
    const u32* input;      // device memory, unused if the input is a parameter
    u32 queries_at;        // first words of the sections of the input
    u32 terms_at;
    u32 drivers_at;
    u32 hints_at;
    u32 tiles_at;
    u32 later_at;
    u32 num_drivers;
    u32 num_tiled;         // queries that are scored by tiles
    u32 num_items;
    u32 num_queries;       // queries whose results all launches of the batch write
    u32 end_at;            // first of three result words: scored postings, start and end of the batch
    u32 is_first;          // whether this is the first launch of the batch
    u32 num_first_items;   // items of first terms, which precede those of other terms
    u32 item_rows;         // neighbouring warps take items of different rows; with one row, consecutive items
    u32 tiles_a_block;     // consecutive tiles of a thread block of score_tiles, at most GROUP_TILES
    u32 num_places;        // items with the free places between their rows
    u32 taken_before;      // Run::taken before the launch
};

// The most input words of a batch that is passed as a kernel parameter.
constexpr u32 SMALL_INPUT_WORDS = 960;
struct __align__(16) SmallInput {
    u32 words[SMALL_INPUT_WORDS];
};

// State shared by the launches of a batch. All zero before the first launch.
struct Run {
    u64 started_ns;
    u64 finished;          // finished queries from bit FINISHED_BIT on; below, scored postings of driving lists
    u32 taken;             // places that warps took, of all launches so far
};
constexpr u32 FINISHED_BIT = 44;

// State shared by the kernels of a query. All zero before the first kernel.
struct State {
    u64 threshold;         // a key that k documents reach; smaller keys are excluded
    u64 progress;          // low half: candidates found, with or without room; high half: finished workers
    u64 started_ns;        // start of score_lone on the device's clock
    u64 done;              // in a batch: finished items from bit DONE_BIT on; below, scored postings
    u32 is_raised;         // of a single query: 1 while a warp raises the threshold
    u32 reserved[3];       // padding before the bins
    u32 bins[SCORE_BINS];  // by score, the number of documents that reached the threshold when they were scored
};
static_assert(
    (sizeof(State) - sizeof(State::bins)) % 16 == 0 && sizeof(State) % 16 == 0, "bins are read sixteen bytes at a time"
);

// Factor of a bound before comparisons. Bounds are rounded sums and products of upper bounds, and scores are rounded, too:
// fewer than MAX_TERMS + 16 roundings in either, each at most 2^-24 of its result.
constexpr u32 SLACK_PARTS = 65536;
constexpr float BOUND_SLACK = 1.0f + 1.0f / SLACK_PARTS;
static_assert(2 * (MAX_TERMS + 16) < (1 << 24) / SLACK_PARTS, "the slack must cover all roundings");

// Added to a state's progress by a finished thread block or warp.
constexpr u64 SIGN_OFF = 1ull << 32;

// Signs off and returns the progress before. All writes that the thread has observed precede it for a reader that sees the
// sign-off and fences. __threadfence() would also empty the multiprocessor's L1 cache.
__device__ __forceinline__ u64 sign_off(u64* progress, u64 more = SIGN_OFF) {
    u64 before;
    asm volatile("atom.release.gpu.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(progress), "l"(more) : "memory");
    return before;
}
constexpr u32 DONE_BIT = 40;

extern "C" __constant__ const u32 tandem_layout[28] = {
    BLOCK_LEN, MAX_TERMS, FEW_TERMS, MAX_K, WARP_K, TILE_DOCS, GROUP_TILES, TILE_THREADS, LONE_THREADS, BATCH_THREADS,
    MERGE_THREADS, SCORE_BINS, sizeof(Lists), sizeof(Block), sizeof(DirectoryEntry), sizeof(QueryTerm),
    sizeof(LoneQuery<MAX_TERMS>), sizeof(LoneQuery<FEW_TERMS>), sizeof(BatchQuery), sizeof(TileQuery), sizeof(Batch),
    SMALL_INPUT_WORDS, sizeof(Run), sizeof(State), sizeof(Driver), NO_GATE, static_cast<u32>(TOO_MANY), SLACK_PARTS,
};
extern "C" __constant__ const u32 tandem_offsets[80] = {
    OFFSET(Lists, blocks), OFFSET(Lists, rows), OFFSET(Lists, directory), OFFSET(Lists, norms), OFFSET(Lists, host_rows),
    OFFSET(Lists, num_docs), OFFSET(Lists, num_resident), OFFSET(Lists, directory_stride),
    OFFSET(Block, row), OFFSET(Block, first_doc), OFFSET(Block, packing), OFFSET(Block, max_impact),
    OFFSET(DirectoryEntry, before), OFFSET(DirectoryEntry, parts),
    OFFSET(QueryTerm, first_block), OFFSET(QueryTerm, doc_freq), OFFSET(QueryTerm, scale), OFFSET(QueryTerm, weight),
    OFFSET(QueryTerm, rest),
    OFFSET(Query, first_term), OFFSET(Query, num_terms), OFFSET(Query, k), OFFSET(Query, seed), OFFSET(Query, bins_per_score),
    OFFSET(Query, bins_per_bound),
    OFFSET(Driver, query), OFFSET(Driver, term), OFFSET(Driver, first_item), OFFSET(Driver, blocks_an_item),
    OFFSET(LoneStage, num_drivers), OFFSET(LoneStage, num_items), OFFSET(LoneStage, needs_all), OFFSET(LoneStage, capacity),
    OFFSET(LoneStage, is_last),
    OFFSET(LoneQuery<MAX_TERMS>, query), OFFSET(LoneQuery<MAX_TERMS>, stage), OFFSET(LoneQuery<MAX_TERMS>, terms),
    OFFSET(LoneQuery<MAX_TERMS>, reserved), OFFSET(LoneQuery<MAX_TERMS>, drivers),
    OFFSET(LoneQuery<FEW_TERMS>, query), OFFSET(LoneQuery<FEW_TERMS>, stage), OFFSET(LoneQuery<FEW_TERMS>, terms),
    OFFSET(LoneQuery<FEW_TERMS>, reserved), OFFSET(LoneQuery<FEW_TERMS>, drivers),
    OFFSET(BatchQuery, query), OFFSET(BatchQuery, num_items), OFFSET(BatchQuery, result), OFFSET(BatchQuery, candidates),
    OFFSET(BatchQuery, capacity), OFFSET(BatchQuery, gate), OFFSET(BatchQuery, flags),
    OFFSET(TileQuery, query), OFFSET(TileQuery, sample_stride),
    OFFSET(Batch, input), OFFSET(Batch, queries_at), OFFSET(Batch, terms_at), OFFSET(Batch, drivers_at), OFFSET(Batch, hints_at),
    OFFSET(Batch, tiles_at), OFFSET(Batch, later_at), OFFSET(Batch, num_drivers), OFFSET(Batch, num_tiled),
    OFFSET(Batch, num_items), OFFSET(Batch, num_queries), OFFSET(Batch, end_at), OFFSET(Batch, is_first),
    OFFSET(Batch, num_first_items), OFFSET(Batch, item_rows), OFFSET(Batch, tiles_a_block),
    OFFSET(Batch, num_places), OFFSET(Batch, taken_before),
    OFFSET(Run, started_ns), OFFSET(Run, finished), OFFSET(Run, taken),
    OFFSET(State, threshold), OFFSET(State, progress), OFFSET(State, started_ns), OFFSET(State, done),
    OFFSET(State, is_raised), OFFSET(State, bins),
};

// BM25 score of one posting, bit for bit like Bm25::score on the host: each operation is rounded once and none is fused.
__device__ __forceinline__ float posting_score(float weight, u32 freq, float norm) {
    const float tf = __uint2float_rn(freq);
    return __fdiv_rn(__fmul_rn(weight, tf), __fadd_rn(tf, norm));
}

// The number of occurrences of a term in a query for impacts (Bm25::impact_count on the host). posting_score is its product with
// the impact: the sum of norm and impact is the norm, 2^40, and the weight is the count times 2^40.
__device__ __forceinline__ u32 impact_count(float weight) { return __float2uint_rn(weight * 0x1p-40f); }

// Whether quick_score holds for a weight. Norms are below 2^42, since k1 is at most 1000.
__device__ __forceinline__ bool is_quick(float weight) { return weight >= 0x1p-60f && weight <= 0x1p60f; }

// posting_score for a weight that `is_quick`, by the steps of a division without its cases of very large and very small numbers:
// a reciprocal, and two corrections of the quotient by its exact remainder.
__device__ __forceinline__ float quick_score(float weight, u32 freq, float norm) {
    const float tf = __uint2float_rn(freq);
    const float dividend = __fmul_rn(weight, tf), divisor = __fadd_rn(tf, norm);
    float reciprocal;
    asm("rcp.approx.f32 %0, %1;" : "=f"(reciprocal) : "f"(divisor));
    reciprocal = __fmaf_rn(reciprocal, __fmaf_rn(-divisor, reciprocal, 1.0f), reciprocal);
    float quotient = __fmul_rn(dividend, reciprocal);
    quotient = __fmaf_rn(reciprocal, __fmaf_rn(-divisor, quotient, dividend), quotient);
    return __fmaf_rn(reciprocal, __fmaf_rn(-divisor, quotient, dividend), quotient);
}

// A number that orders documents. Better documents have larger keys: higher scores first (non-negative, so their bits order),
// then smaller documents. No key is 0, because documents are below 2^31.
__device__ __forceinline__ u64 make_key(float score, u32 doc) {
    return static_cast<u64>(__float_as_uint(score)) << 32 | ~doc;
}

// A lower bound of the keys of all documents with this score.
__device__ __forceinline__ u64 least_key(float score) { return static_cast<u64>(__float_as_uint(score)) << 32; }

__device__ __forceinline__ float key_score(u64 key) { return __uint_as_float(static_cast<u32>(key >> 32)); }

// The current threshold. It only rises, so an old value filters less. At least 1, because 0 is no key.
__device__ __forceinline__ u64 read_threshold(const State* state, float seed) {
    u64 raised;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(raised) : "l"(&state->threshold));
    return max(max(raised, least_key(seed)), 1ull);
}

// The candidates found so far by all thread blocks.
__device__ __forceinline__ u32 num_found(const State* state) { return static_cast<u32>(__ldcg(&state->progress)); }

// Counts `more` candidates and returns the number before.
__device__ __forceinline__ u32 add_found(State* state, u32 more) {
    return static_cast<u32>(atomicAdd(&state->progress, static_cast<u64>(more)));
}

__device__ __forceinline__ void count_in_bin(State* state, u32 bin) { atomicAdd(state->bins + bin, 1); }

__device__ __forceinline__ void raise_to(State* state, u64 key) { atomicMax(&state->threshold, key); }

// The device's clock in nanoseconds, with a coarser tick.
__device__ __forceinline__ u64 clock_ns() {
    u64 now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}
