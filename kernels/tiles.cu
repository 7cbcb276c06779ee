// tiles.cu: documents with any term (OR), by tiles of TILE_DOCS documents. It serves queries of a batch with many terms, for
// which drive.cuh would look up nearly every document in nearly every list.
// In:   the lists; the batch's input.
// Out:  at most k candidates per tile, counted in the state; then results as in batch.cu, by the last thread block of a query.
//
// A thread block takes one tile after another of a group of consecutive tiles, whose blocks it finds together. The scores of a
// tile are in shared memory. Terms are added one after another, with a barrier between, because floating-point
// sums must have the host's order. Within a term every document occurs once, so no atomics are needed. Tiles without postings
// exit early. So do tiles whose bound (sum of weight x largest impact of their blocks) is below the threshold of earlier tiles.
// An addition that takes a document to the threshold marks it, so no tile is searched for candidates. Impacts need no norms.
//
// Limits: MAX_TERMS terms; documents below 2^31; room for all candidates, which is not checked: the host provides it. Shared
// memory: 42 KiB. Twin on the host: search/cpu/or/exhaustive.rs.
// Launch bounds: 256 threads, at least 5 blocks per multiprocessor of compute capability 9.0 (results/gpu/kernels.csv).
// Bound by latency of a list's rows and norms, once per eight blocks that meet the tile, with a barrier after it.
// Twice the threads per tile were no faster on dense lists and slower on sparse ones.

#include "batch.cuh"
#include "lists.cuh"

// Thread blocks per multiprocessor that registers must suffice for. Turing's hold 1,024 threads, 4 blocks.
#if __CUDA_ARCH__ >= 900
constexpr u32 TILE_RESIDENT = 5;
#else
constexpr u32 TILE_RESIDENT = 4;
#endif
constexpr u32 TILE_WARPS = TILE_THREADS / WARP;
constexpr u32 NO_TERM = ~0u;
static_assert(GROUP_TILES <= TILE_WARPS, "a warp adds up the blocks of a tile");
constexpr u32 TILE_QUADS_A_THREAD = TILE_DOCS / 4 / TILE_THREADS;
static_assert(TILE_QUADS_A_THREAD * 4 <= 32, "a thread notes its candidates in 32 bits");

// From this number of candidates on, a tile reads the histogram of other tiles' candidates.
constexpr u32 MANY_CANDIDATES = 32;

// No score yet: -0, which is no posting's score. It is also the neutral element: -0 + x is x for every x, including +0.
constexpr u32 NO_SCORE = 0x80000000u;

// A source for select_cut: the keys of a thread's documents with set bits in `reaching`. Bit 4j + i is part i of the thread's
// quad j, and neighbouring threads have neighbouring quads.
struct TileKeys {
    const float* scores;
    u32 first_doc;
    u32 reaching;

    __device__ __forceinline__ u64 key(u32 bit) const {
        const u32 place = 4 * (bit / 4 * TILE_THREADS + threadIdx.x) + bit % 4;
        return make_key(scores[place], first_doc + place);
    }

    // Drops the documents whose keys do not reach `cut`.
    __device__ __forceinline__ void keep_from(u64 cut) {
        for (u32 left = reaching; left != 0; left &= left - 1) {
            const u32 bit = __ffs(left) - 1;
            if (key(bit) < cut) reaching &= ~(1u << bit);
        }
    }

    struct Cursor {
        const TileKeys& keys;
        u32 left;
        __device__ __forceinline__ bool more() const { return __any_sync(FULL_WARP, left != 0); }
        __device__ __forceinline__ u64 next() {
            if (left == 0) return 0;
            const u32 bit = __ffs(left) - 1;
            left &= left - 1;
            return keys.key(bit);
        }
    };
    __device__ __forceinline__ Cursor cursor() const { return {*this, reaching}; }
};

// The lane's postings of one block: places in the tile (TILE_DOCS or more if outside) and scores.
struct TilePostings {
    u32 places[4];
    float scores[4];

    __device__ __forceinline__ void decode(
        const Lists& lists, const QueryTerm& term, u32 block, u32 first_doc, u32 lane
    ) {
        const Header header(lists.blocks + (term.first_block + block));
        u32 freqs[4];
        const u32* rows = lists.rows_from(header.row);
        header.docs_of_lane(rows, lane, places);
        header.freqs_of_lane(rows, lane, freqs);
        if (lists.has_impacts != 0) {
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                places[i] -= first_doc;
                scores[i] = impact_score(term.weight, freqs[i]);
            }
            return;
        }
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            const u32 doc = places[i];
            places[i] = doc - first_doc;
            scores[i] = places[i] < TILE_DOCS ? __ldg(lists.norms + doc) : 1.0f;
        }
        if (is_quick(term.weight)) {
#pragma unroll
            for (u32 i = 0; i < 4; ++i) scores[i] = quick_score(term.weight, freqs[i], scores[i]);
        } else {
#pragma unroll
            for (u32 i = 0; i < 4; ++i) scores[i] = posting_score(term.weight, freqs[i], scores[i]);
        }
    }
};

// The term of block `item` of a tile, which is not before term `t`. Blocks are numbered over all terms in order.
__device__ __forceinline__ u32 term_of_item(const u32* first_items, u32 item, u32 t) {
    while (first_items[t + 1] <= item) ++t;
    return t;
}

// The number of set bits in all threads' `bits`. `total` is shared and 0 before; after the barrier all threads read it.
__device__ __forceinline__ u32 count_in_block(u32 bits, u32& total) {
    const u32 in_warp = warp_sum(__popc(bits));
    if (threadIdx.x % WARP == 0 && in_warp != 0) atomicAdd(&total, in_warp);
    __syncthreads();
    return total;
}

// The blocks that meet a tile.
struct TileBlocks {
    u32 begins[MAX_TERMS];           // by term: its first block that meets the tile
    u32 first_items[MAX_TERMS + 1];  // the blocks of earlier terms; the last entry is the total
    float bounds[MAX_TERMS];         // of the scores of each term; the first one becomes that of their sum
};

// Shared memory of a thread block.
struct TileShared {
    __align__(16) float scores[TILE_DOCS];
    QueryTerm terms[MAX_TERMS];
    TileBlocks tiles[GROUP_TILES];
    u32 marks[TILE_THREADS];         // by thread: documents that reached the floor when they were scored, as in TileKeys
    Selection selection;
    bool skip;
    u64 floor;
    u32 num_candidates, next_slot;
};

// Adds a lane's postings to their documents' scores, and marks those that reach `floor`, given by its bits. As integers, scores
// are in order, and NO_SCORE is below all.
__device__ __forceinline__ void add_postings(const TilePostings& postings, int floor, TileShared& shared) {
    float before[4];
    u32 reaching = 0;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) before[i] = postings.places[i] < TILE_DOCS ? shared.scores[postings.places[i]] : 0.0f;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const float score = __fadd_rn(before[i], postings.scores[i]);
        const bool is_inside = postings.places[i] < TILE_DOCS;
        if (is_inside) shared.scores[postings.places[i]] = score;
        if (is_inside && __float_as_int(score) >= floor && __float_as_int(before[i]) < floor) reaching |= 1u << i;
    }
    for (; reaching != 0; reaching &= reaching - 1) {
        const u32 i = __ffs(reaching) - 1;
        const u32 place = i < 2 ? postings.places[i == 0 ? 0 : 1] : postings.places[i == 2 ? 2 : 3];
        const u32 quad = place / 4;
        atomicOr(&shared.marks[quad % TILE_THREADS], 1u << (4 * (quad / TILE_THREADS) + place % 4));
    }
}

// The tile of a number: with `is_sample` every stride-th one.
__device__ __forceinline__ u32 tile_of(const TileQuery& tiled, u32 number, bool is_sample) {
    return is_sample ? number * tiled.sample_stride : number;
}

// Finds the blocks of each list that meet the `count` tiles from number `first` on, and the bounds of their scores. If no tile is
// skipped, their rows are fetched ahead.
__device__ __forceinline__ void find_blocks(
    const Lists& lists, const Query& query, const TileQuery& tiled, u32 first, u32 count, bool is_sample, bool scores_all,
    TileShared& shared
) {
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (u32 i = warp; i < count * query.num_terms; i += TILE_WARPS) {
        const u32 t = i % query.num_terms;
        TileBlocks& blocks = shared.tiles[i / query.num_terms];
        const u32 first_doc = tile_of(tiled, first + i / query.num_terms, is_sample) * TILE_DOCS;
        const u32 last_doc = min(lists.num_docs, first_doc + TILE_DOCS) - 1;
        const QueryTerm& term = shared.terms[t];
        const BlockRange range(lists, term, first_doc, last_doc);
        float impact = 0.0f;
        for (u32 block = range.begin + lane; block < range.end; block += WARP) {
            const Header header(lists.blocks + (term.first_block + block));
            impact = fmaxf(impact, header.max_impact);
            if (scores_all && header.row < lists.num_resident) header.prefetch_rows(lists.rows);
        }
        impact = warp_max(impact);
        if (lane == 0) {
            blocks.begins[t] = range.begin;
            blocks.first_items[t] = range.end - range.begin;
            blocks.bounds[t] = term.weight * impact;
        }
    }
    __syncthreads();
    if (warp < count) {
        TileBlocks& blocks = shared.tiles[warp];
        float bound = 0.0f;
        u32 num_items = 0;
        for (u32 base = 0; base < query.num_terms; base += WARP) {
            const u32 t = base + lane;
            const bool is_term = t < query.num_terms;
            const u32 of_term = is_term ? blocks.first_items[t] : 0;
            if (is_term) bound += blocks.bounds[t];
            const u32 with_own = warp_prefix(of_term, lane);
            if (is_term) blocks.first_items[t] = num_items + with_own - of_term;
            num_items += __shfl_sync(FULL_WARP, with_own, WARP - 1);
        }
        bound = warp_sum(bound);
        if (lane == 0) {
            blocks.first_items[query.num_terms] = num_items;
            blocks.bounds[0] = bound;
        }
    }
    __syncthreads();
}

// Makes candidates of a tile's best documents. Returns whether it may have written to the state.
__device__ __forceinline__ bool score_tile(
    const Lists& lists, const Query& query, u32 tile, const TileBlocks& blocks, bool scores_all, State* state, u64* candidates,
    TileShared& shared
) {
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 first_doc = tile * TILE_DOCS;
    const u32 num_items = blocks.first_items[query.num_terms];
    if (num_items == 0) return false;
    if (threadIdx.x == 0) {
        shared.floor = read_threshold(state, query.seed);
        shared.skip = !scores_all && make_key(blocks.bounds[0] * BOUND_SLACK, first_doc) < shared.floor;
        shared.num_candidates = 0;
        shared.next_slot = 0;
    }
    __syncthreads();
    if (shared.skip) return false;

    // Sums only grow, so a document is marked at most once: by the addition that reaches the floor. Without a floor all are.
    u64 cut = shared.floor;
    const int floor = __float_as_int(key_score(cut));
    shared.marks[threadIdx.x] = 0;
    const float none = __uint_as_float(NO_SCORE);
    float4* quads = reinterpret_cast<float4*>(shared.scores);
#pragma unroll
    for (u32 j = 0; j < TILE_QUADS_A_THREAD; ++j) {
        quads[j * TILE_THREADS + threadIdx.x] = make_float4(none, none, none, none);
    }

    // Warps take the blocks of all terms round-robin, so that as many reads are in flight as there are warps. Each block is
    // decoded before the barrier that ends the additions of the wave before, or the clearing.
    u32 own_term = 0, first_term = 0;
    for (u32 wave = 0; wave < num_items; wave += TILE_WARPS) {
        const u32 item = wave + warp;
        TilePostings postings;
        if (item < num_items) {
            own_term = term_of_item(blocks.first_items, item, own_term);
            const u32 block = blocks.begins[own_term] + (item - blocks.first_items[own_term]);
            postings.decode(lists, shared.terms[own_term], block, first_doc, lane);
        } else {
            own_term = NO_TERM;
        }
        __syncthreads();
        first_term = term_of_item(blocks.first_items, wave, first_term);
        const u32 last = term_of_item(blocks.first_items, min(wave + TILE_WARPS, num_items) - 1, first_term);
        for (u32 t = first_term; t <= last; ++t) {
            if (blocks.first_items[t] == blocks.first_items[t + 1]) continue;
            if (own_term == t) add_postings(postings, floor, shared);
            if (t != last) __syncthreads();
        }
    }
    __syncthreads();

    TileKeys keys = {shared.scores, first_doc, shared.marks[threadIdx.x]};
    keys.keep_from(cut);
    u32 count = count_in_block(keys.reaching, shared.num_candidates);
    const bool are_many = count > MANY_CANDIDATES;
    if (are_many) {
        __syncthreads();  // all threads have read the number before it is cleared
        if (warp == 0) {
            raise_threshold(state, query, lane);
            __syncwarp();
            if (lane == 0) {
                shared.floor = read_threshold(state, query.seed);
                shared.num_candidates = 0;
            }
        }
        __syncthreads();
        if (shared.floor > cut) {
            cut = shared.floor;
            keys.keep_from(cut);
        }
        count = count_in_block(keys.reaching, shared.num_candidates);
    }
    if (count == 0) return are_many;
    if (count >= query.k) {
        cut = select_cut<BlockGroup<TILE_THREADS>>(keys, query.k, cut, shared.selection);
        count = query.k;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (count == query.k) raise_to(state, cut);
        shared.next_slot = add_found(state, count);
    }
    __syncthreads();
    for (u32 left = keys.reaching; left != 0; left &= left - 1) {
        const u64 key = keys.key(__ffs(left) - 1);
        if (key >= cut) {
            candidates[atomicAdd(&shared.next_slot, 1)] = key;
            count_in_bin(state, score_bin(query, key_score(key)));
        }
    }
    // Other tiles start at a threshold that the candidates of all tiles give.
    __syncthreads();
    const u32 found = shared.next_slot;
    if (warp == 0 && found / query.k != (found - count) / query.k) raise_threshold(state, query, lane);
    return true;
}

// A group of tiles per thread block. With `is_sample`, every sample_stride-th tile of queries with a sample, which the second
// launch omits. The gate is that of batch.cu.
extern "C" __global__ void __launch_bounds__(TILE_THREADS, TILE_RESIDENT) score_tiles(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch, Run* run, State* states, u64* candidates,
    u64* results, u32 is_sample
) {
    typedef BlockGroup<TILE_THREADS> Block;
    __shared__ union Shared {
        TileShared tile;
        Merge<SORT_LEN> merge;
    } shared;
    __shared__ u64 progress;
    if (batch.num_items == 0) return;  // the launch only loads the kernel
    if (batch.is_first != 0 && blockIdx.x == 0 && threadIdx.x == 0) run->started_ns = clock_ns();
    const BatchInput input(batch, batch.input);
    // All queries have the same tiles. A group of tiles of all queries after another: its norms then stay in the L2 cache, and
    // the first tiles give each query a threshold.
    const TileQuery& tiled = input.tiles[blockIdx.x % batch.num_tiled];
    const u32 first = blockIdx.x / batch.num_tiled * batch.tiles_a_block;
    const u32 count = min(batch.tiles_a_block, batch.num_items / batch.num_tiled - first);
    const BatchQuery& entry = input.queries[tiled.query];
    Query query = entry.query;
    State* state = states + tiled.query;
    State* gate = entry.gate == NO_GATE ? nullptr : states + entry.gate;
    const bool had_all = gate != nullptr && num_found(gate) >= query.k;  // enough documents have all terms
    u64* own_candidates = candidates + entry.candidates;
    bool is_touched = blockIdx.x == 0;  // its start of the batch
    if (!had_all) {
        const u32* terms = reinterpret_cast<const u32*>(input.terms + query.first_term);
        for (u32 i = threadIdx.x; i < query.num_terms * sizeof(QueryTerm) / sizeof(u32); i += TILE_THREADS) {
            reinterpret_cast<u32*>(shared.tile.terms)[i] = terms[i];
        }
        __syncthreads();
        find_blocks(lists, query, tiled, first, count, is_sample != 0, entry.scores_all(), shared.tile);
        for (u32 i = 0; i < count; ++i) {
            const u32 tile = tile_of(tiled, first + i, is_sample != 0);
            const bool is_done = is_sample == 0 && tiled.sample_stride != 0 && tile % tiled.sample_stride == 0;
            if (is_done) continue;
            is_touched |= score_tile(
                lists, query, tile, shared.tile.tiles[i], entry.scores_all(), state, own_candidates, shared.tile
            );
            __syncthreads();
        }
    }
    if (is_sample != 0) return;

    // Most tiles have no candidate, and so no writes to order.
    __syncthreads();
    const u64 more = SIGN_OFF * count;
    if (threadIdx.x == 0) progress = is_touched ? sign_off(&state->progress, more) : atomicAdd(&state->progress, more);
    __syncthreads();
    if ((progress >> 32) + count != entry.num_items) return;
    __threadfence();
    // If enough documents have all terms, the stage before has written the results, unless they were too many for it.
    if (!had_all || query.k > WARP_K) {
        if (had_all) query.need_all();
        State* sorted = had_all ? gate : state;
        merge_candidates<Block, 2>(
            query, sorted, own_candidates, num_found(sorted), entry.capacity, results + entry.result, nullptr,
            shared.merge
        );
        if (threadIdx.x == 0) finish_query(batch, run, state, gate, results);
    }
    __syncthreads();
    clear_state<Block>(state);
    if (gate != nullptr) clear_state<Block>(gate);
}
