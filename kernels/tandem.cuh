// tandem.cuh: what the kernels that search share: sizes, the structures that the host passes, scoring, keys.
//
// The host's copies are in crates/core/src/search/gpu/arguments.rs (structures) and kernels.rs (sizes). `tandem_layout` below carries what
// must agree into the module, the sizes of structures among it, and the host compares it on loading: one that was changed on
// one side only never reaches a query.
#pragma once

#include "primitives.cuh"

constexpr u32 BLOCK_LEN = 128;        // postings in a full block: 4 a lane
constexpr u32 MAX_TERMS = 64;         // terms of a query: two a lane where a warp looks at all of them
constexpr u32 FEW_TERMS = 8;          // nearly every query's: parameters that are no larger arrive sooner
constexpr u32 MAX_K = 1000;           // results of a query
constexpr u32 WARP_K = 128;           // results that a warp sorts at most
constexpr u32 TILE_DOCS = 8192;       // documents that a thread block of score_tiles accumulates: 32 KiB of shared memory
constexpr u32 TILE_THREADS = 256;     // threads a block: of tiles.cu, ...
constexpr u32 LONE_THREADS = 128;     // ... of lone.cu, ...
constexpr u32 BATCH_THREADS = 64;     // ... of batch.cu: few, since they keep their place until the last warp is done, ...
constexpr u32 MERGE_THREADS = 512;    // ... of topk.cu
constexpr u32 SCORE_BINS = 512;       // of the histogram of candidates' scores

constexpr u64 TOO_MANY = ~0ull - 1;      // in place of the number of results: there were more candidates than room
constexpr u32 NO_DOC = 0xffffffffu;   // above every document: the empty places of a block that is not full

// A block of a list as searches read it. lists.cuh takes it apart.
struct __align__(16) Block {
    u32 row;           // its first row of 16 bytes: documents, then impacts, then frequencies
    u32 first_doc;
    u32 packing;       // its length, the widths of its documents and frequencies: Header::pack
    float max_impact;  // no posting's score exceeds the term's weight times this, but for rounding
};

// All lists as searches read them, in device memory. One copy, read only, shared by all streams.
struct Lists {
    const Block* blocks;   // of long lists, then one for each term, used if its list is short
    const u32* rows;       // four words each
    const u32* directory;  // DIRECTORY_STRIDE words for each block of a long list: how many postings come before which document
    const float* norms;    // BM25's norm of each document
    const u32* host_rows;  // host-resident rows, from `num_resident` on: the address that row 0 would have before them
    u32 num_docs;
    u32 num_resident;      // device-resident rows: all rows of a block come before this one, or none

    // Where the rows are of the block whose first is this one.
    __device__ __forceinline__ const u32* rows_from(u32 row) const { return row < num_resident ? rows : host_rows; }
};

// Words of the directory for each block: the shift is such that 2^shift documents are fewer than 16 times in the collection for
// each block of the list, and two more are for the first entry and the one behind the last document.
constexpr u32 DIRECTORY_STRIDE = 18;
constexpr u32 NO_DIRECTORY = 32;      // the shift of a short list, of fewer postings than a block has

// One term of a query. Terms are in the order in which scores are added: ascending document frequency.
struct QueryTerm {
    u32 first_block;
    u32 doc_freq;
    u32 shift;     // an entry of the directory is for 2^shift documents; or NO_DIRECTORY
    float weight;
    float rest;    // what this term and those after it add to a document at most, but for rounding
};

struct Query {
    u32 first_term;        // among the terms of its batch
    u32 num_terms;
    u32 k;
    float seed;            // a score that k documents are known to reach before any has been scored
    float bins_per_score;  // of the histogram, whose bins begin at `seed`
    float bins_per_bound;  // the same where they begin at 0

    // The query for documents with all terms: what is known of those with any does not hold for them.
    __device__ __forceinline__ void need_all() {
        seed = 0.0f;
        bins_per_score = bins_per_bound;
    }
};

// A list that drives (drive.cuh), and the warps that go through it: an item of work each, from first_item up to the next
// driver's first_item.
struct __align__(16) Driver {
    u32 query;             // its number in the batch
    u32 term;              // its number in the query
    u32 first_item;
    u32 blocks_an_item;    // if 0, four items share a block
};

// What is done for a lone query by one launch.
struct LoneStage {
    u32 num_drivers;
    u32 num_items;
    u32 needs_all;         // documents with all terms are looked for
    u32 capacity;          // candidates that there is room for
    u32 is_last;           // no other stage follows
};

// A query of up to TERMS terms that is passed by value, as a kernel parameter: it needs no copy of its own.
template <u32 TERMS>
struct LoneQuery {
    Query query;
    LoneStage stage;
    QueryTerm terms[TERMS];
    u32 reserved;          // padding before the drivers
    Driver drivers[TERMS];
};

// A query of a batch, or a stage of one.
struct __align__(16) BatchQuery {
    Query query;
    u32 num_items;         // of all its drivers, or its tiles: who is done with the last one sorts
    u32 result;            // where its results go, in words
    u32 candidates;        // where its candidates go, in keys, ...
    u32 capacity;          // ... and how many there is room for
    u32 gate;              // the entry of the stage before, or NO_GATE
    u32 flags;

    __device__ __forceinline__ bool needs_all() const { return (flags & 1) != 0; }     // documents with all terms
    __device__ __forceinline__ bool is_last() const { return (flags & 2) != 0; }       // no other stage follows
    __device__ __forceinline__ bool sorts_later() const { return (flags & 4) != 0; }   // merge_topk does
    __device__ __forceinline__ bool scores_all() const { return (flags & 8) != 0; }    // no tile is passed over: to measure what that costs
};
constexpr u32 NO_GATE = 0xffffffffu;

// A query of a batch that goes by tiles (tiles.cu).
struct TileQuery {
    u32 query;             // its entry
    u32 first_item;        // a thread block each
    u32 sample_stride;     // every so many tiles are done first; 0 if none are
};

// One launch for a batch.
struct Batch {
    const u32* input;      // in device memory; not used where the input is a parameter
    u32 queries_at;        // where these begin in the input, in words
    u32 terms_at;
    u32 drivers_at;
    u32 hints_at;
    u32 tiles_at;
    u32 later_at;
    u32 num_drivers;
    u32 num_tiled;         // queries that go by tiles
    u32 num_items;
    u32 num_queries;       // whose results the batch's launches write, all together
    u32 end_at;            // where it is told what was scored, and when the batch began and ended: three words of the results
    u32 is_first;          // the first launch of the batch
    u32 num_first_items;   // of first terms, which come before those of others
    u32 item_rows;         // neighbouring warps take items of different rows; in one row, items that follow each other
};


// What a batch's input may have at most to be a kernel parameter.
constexpr u32 SMALL_INPUT_WORDS = 960;
struct __align__(16) SmallInput {
    u32 words[SMALL_INPUT_WORDS];
};

// What the launches of a batch tell each other. All zero before the first of them starts.
struct Run {
    u64 started_ns;
    u64 finished;          // from bit FINISHED_BIT on, queries; below, postings of lists that drive which were scored
};
constexpr u32 FINISHED_BIT = 44;

// What the kernels of one query tell each other. All zero before the first of them starts.
struct State {
    u64 threshold;         // a key that k documents are known to reach: whatever is below is out
    u64 progress;          // low half: candidates found, be there room for them or not; high half: who is done
    u64 started_ns;        // score_lone: when, by the device's clock
    u64 done;              // in a batch: from bit DONE_BIT on, items that are done; below, postings that were scored
    u32 bins[SCORE_BINS];  // by score, how many documents have reached the threshold as it was then
};
static_assert(
    (sizeof(State) - sizeof(State::bins)) % 16 == 0 && sizeof(State) % 16 == 0, "bins are read sixteen bytes at a time"
);

// What a bound is multiplied by before it is compared. Bounds are rounded sums and products of upper bounds, and scores are
// rounded too: fewer than MAX_TERMS + 16 roundings in either, each of at most 2^-24 of its result.
constexpr u32 SLACK_PARTS = 65536;
constexpr float BOUND_SLACK = 1.0f + 1.0f / SLACK_PARTS;
static_assert(2 * (MAX_TERMS + 16) < (1 << 24) / SLACK_PARTS, "the slack must cover all roundings");

// Added to a state's progress by a thread block or a warp that is done.
constexpr u64 SIGN_OFF = 1ull << 32;

// Signs off; returns the progress before. What the thread has seen written comes before it, for who sees the sign-off and
// fences. __threadfence() would do as well, but also empties the multiprocessor's L1 cache, for all of its warps.
__device__ __forceinline__ u64 sign_off(u64* progress, u64 more = SIGN_OFF) {
    u64 before;
    asm volatile("atom.release.gpu.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(progress), "l"(more) : "memory");
    return before;
}
constexpr u32 DONE_BIT = 40;

extern "C" __constant__ const u32 tandem_layout[28] = {
    BLOCK_LEN, MAX_TERMS, FEW_TERMS, MAX_K, WARP_K, TILE_DOCS, TILE_THREADS, LONE_THREADS, BATCH_THREADS, MERGE_THREADS,
    SCORE_BINS, DIRECTORY_STRIDE, sizeof(Lists), sizeof(Block), sizeof(QueryTerm), sizeof(LoneQuery<MAX_TERMS>),
    sizeof(LoneQuery<FEW_TERMS>), sizeof(BatchQuery), sizeof(TileQuery), sizeof(Batch), SMALL_INPUT_WORDS, sizeof(Run),
    sizeof(State), sizeof(Driver), NO_DIRECTORY, NO_GATE, static_cast<u32>(TOO_MANY), SLACK_PARTS,
};

// BM25 of one posting, bit for bit as Bm25::score on the host: every operation is rounded once, none is fused.
__device__ __forceinline__ float posting_score(float weight, u32 freq, float norm) {
    const float tf = __uint2float_rn(freq);
    return __fdiv_rn(__fmul_rn(weight, tf), __fadd_rn(tf, norm));
}

// One number that orders documents: a better one has the larger key. Higher scores come first (they are not negative, so that
// their bits order as they do), equal scores by smaller document. No document's key is 0: documents are below 2^31.
__device__ __forceinline__ u64 make_key(float score, u32 doc) {
    return static_cast<u64>(__float_as_uint(score)) << 32 | ~doc;
}

// Not above the key of any document with this score.
__device__ __forceinline__ u64 least_key(float score) { return static_cast<u64>(__float_as_uint(score)) << 32; }

__device__ __forceinline__ float key_score(u64 key) { return __uint_as_float(static_cast<u32>(key >> 32)); }

// The threshold as of now. Others raise it meanwhile, and it never falls: an old value only filters less. At least 1, since 0
// stands for no key.
__device__ __forceinline__ u64 read_threshold(const State* state, float seed) {
    const u64 raised = *static_cast<const volatile u64*>(&state->threshold);
    return max(max(raised, least_key(seed)), 1ull);
}

// Candidates found as of now, by all thread blocks.
__device__ __forceinline__ u32 num_found(const State* state) { return static_cast<u32>(__ldcg(&state->progress)); }

// Counts `more` candidates; returns how many there were.
__device__ __forceinline__ u32 add_found(State* state, u32 more) {
    return static_cast<u32>(atomicAdd(&state->progress, static_cast<u64>(more)));
}

// The device's clock in nanoseconds. It ticks more coarsely than that.
__device__ __forceinline__ u64 clock_ns() {
    u64 now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}
