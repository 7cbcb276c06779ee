// tiles.cu: documents with any term (OR), by tiles of TILE_DOCS documents. It serves queries of a batch with many terms, for
// which drive.cuh would look up nearly every document in nearly every list.
// In:   the lists; the batch's input.
// Out:  at most k candidates per tile, counted in the state; then results as in batch.cu, by the last thread block of a query.
//
// A thread block takes one tile after another of a group of consecutive tiles, whose blocks it finds together. The scores of a
// tile are in shared memory. Terms are added one after another, with a barrier between, because floating-point
// sums must have the host's order. Within a term every document occurs once, so no atomics are needed. Tiles without postings
// exit early. So do tiles whose bound (sum of weight x largest impact of their blocks) is below the threshold of earlier tiles.
// An addition that takes a document to the threshold marks it, so no tile is searched for candidates.
//
// Scores of impacts are integers, whose sums need no order: warps add them by atomic operations, without a barrier between
// terms.
//
// Limits: MAX_TERMS terms; documents below 2^31; room for all candidates, which is not checked: the host provides it. Shared
// memory: 42 KiB. Twin on the host: search/cpu/or/exhaustive.rs.
// Launch bounds: 256 threads, at least 5 blocks per multiprocessor of compute capability 9.0 (results/gpu/kernels.csv).
// score_tiles is bound by instructions and by the barriers between lists, score_impact_tiles by the barriers at the ends of
// tiles and by latency of rows. Twice the threads per tile were no faster on dense lists and slower on sparse ones.

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

// The place in the tile of a thread's document with this bit. Bit 4j + i is part i of the thread's quad j, and neighbouring
// threads have neighbouring quads.
__device__ __forceinline__ u32 place_of_bit(u32 bit) { return 4 * (bit / 4 * TILE_THREADS + threadIdx.x) + bit % 4; }

// A source for select_cut: the keys of a thread's documents with set bits in `reaching`.
struct TileKeys {
    const float* scores;
    u32 first_doc;
    u32 reaching;

    __device__ __forceinline__ u64 key(u32 bit) const {
        const u32 place = place_of_bit(bit);
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
    __align__(16) float scores[TILE_DOCS];  // in score_impact_tiles integers, until a document is a candidate
    // The query is in shared memory because registers are scarce.
    Query query;
    State* state;
    u64* candidates;
    bool scores_all;
    QueryTerm terms[MAX_TERMS];
    TileBlocks tiles[GROUP_TILES];
    u32 marks[TILE_THREADS];         // by thread: bits of documents that reached the floor when they were scored
    Selection selection;
    // Neighbouring tiles have different ones, so that no barrier ends a tile without candidates.
    struct Progress {
        bool skip;
        u64 floor;
        u32 num_candidates, next_slot;
    } progress[2];

    // Marks the document at a place of the tile.
    __device__ __forceinline__ void mark(u32 place) {
        const u32 quad = place / 4;
        atomicOr(&marks[quad % TILE_THREADS], 1u << (4 * (quad / TILE_THREADS) + place % 4));
    }
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
    // The postings stay in registers only if no index depends on `reaching`.
    for (; reaching != 0; reaching &= reaching - 1) {
        u32 place = postings.places[0];
        if ((reaching & 1) == 0) place = postings.places[1];
        if ((reaching & 3) == 0) place = postings.places[2];
        if ((reaching & 7) == 0) place = postings.places[3];
        shared.mark(place);
    }
}

// Adds the postings of all terms, in their order. Warps take the blocks of all terms round-robin, so that as many reads are in
// flight as there are warps. Each block is decoded before the barrier that ends the additions of the wave before.
__device__ __forceinline__ void add_in_order(
    const Lists& lists, const TileBlocks& blocks, u32 num_items, u32 first_doc, float floor, TileShared& shared
) {
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
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
        if (wave != 0) __syncthreads();
        first_term = term_of_item(blocks.first_items, wave, first_term);
        const u32 last = term_of_item(blocks.first_items, min(wave + TILE_WARPS, num_items) - 1, first_term);
        for (u32 t = first_term; t <= last; ++t) {
            if (blocks.first_items[t] == blocks.first_items[t + 1]) continue;
            if (own_term == t) add_postings(postings, __float_as_int(floor), shared);
            if (t != last) __syncthreads();
        }
    }
}

// Adds the impacts of all terms, in any order: their scores and all sums are integers below 2^24 (Bm25::IMPACTS on the host),
// of which single precision has each.
__device__ __forceinline__ void add_impacts(
    const Lists& lists, const TileBlocks& blocks, u32 num_items, u32 first_doc, float floor, TileShared& shared
) {
    const u32 lane = threadIdx.x % WARP;
    const u32 least = max(__float2uint_ru(floor), 1u);
    u32* sums = reinterpret_cast<u32*>(shared.scores);
    u32 t = 0;
    for (u32 item = threadIdx.x / WARP; item < num_items; item += TILE_WARPS) {
        t = term_of_item(blocks.first_items, item, t);
        const QueryTerm& term = shared.terms[t];
        const Header header(lists.blocks + (term.first_block + blocks.begins[t] + (item - blocks.first_items[t])));
        const u32* rows = lists.rows_from(header.row);
        const u32 count = impact_count(term.weight);
        u32 docs[4], impacts[4];
        header.docs_of_lane(rows, lane, docs);
        header.freqs_of_lane(rows, lane, impacts);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            const u32 place = docs[i] - first_doc;
            if (place >= TILE_DOCS) continue;
            const u32 score = count * impacts[i], before = atomicAdd(sums + place, score);
            if (before < least && before + score >= least) shared.mark(place);
        }
    }
}

// The tile of a number: with `is_sample` every stride-th one.
__device__ __forceinline__ u32 tile_of(const TileQuery& tiled, u32 number, bool is_sample) {
    return is_sample ? number * tiled.sample_stride : number;
}

// Finds the blocks of each list that meet the `count` tiles from number `first` on, and the bounds of their scores. If no tile is
// skipped, their rows are fetched ahead.
__device__ __forceinline__ void find_blocks(
    const Lists& lists, const TileQuery& tiled, u32 first, u32 count, bool is_sample, TileShared& shared
) {
    const Query& query = shared.query;
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
            if (shared.scores_all && header.row < lists.num_resident) header.prefetch_rows(lists.rows);
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

// Makes candidates of a tile's best documents. Returns whether it may have written to the state. `turn` changes with each tile.
template <bool IS_IMPACTS>
__device__ __forceinline__ bool score_tile(
    const Lists& lists, u32 tile, const TileBlocks& blocks, TileShared& shared, u32& turn
) {
    const Query query = shared.query;
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 first_doc = tile * TILE_DOCS;
    const u32 num_items = blocks.first_items[query.num_terms];
    if (num_items == 0) return false;
    TileShared::Progress& progress = shared.progress[turn];
    turn ^= 1;
    if (threadIdx.x == 0) {
        progress.floor = read_threshold(shared.state, query.seed);
        progress.skip = !shared.scores_all && make_key(blocks.bounds[0] * BOUND_SLACK, first_doc) < progress.floor;
        progress.num_candidates = 0;
        progress.next_slot = 0;
    }
    // The tile is cleared while the threshold is read.
    shared.marks[threadIdx.x] = 0;
    const float none = IS_IMPACTS ? 0.0f : __uint_as_float(NO_SCORE);
    float4* quads = reinterpret_cast<float4*>(shared.scores);
#pragma unroll
    for (u32 j = 0; j < TILE_QUADS_A_THREAD; ++j) {
        quads[j * TILE_THREADS + threadIdx.x] = make_float4(none, none, none, none);
    }
    __syncthreads();
    if (progress.skip) return false;

    // Sums only grow, so a document is marked at most once: by the addition that reaches the floor. Without a floor all are.
    u64 cut = progress.floor;
    const float floor = key_score(cut);
    if (IS_IMPACTS) add_impacts(lists, blocks, num_items, first_doc, floor, shared);
    else add_in_order(lists, blocks, num_items, first_doc, floor, shared);
    __syncthreads();
    const u32 reaching = shared.marks[threadIdx.x];
    if (IS_IMPACTS) {
        for (u32 left = reaching; left != 0; left &= left - 1) {
            float& score = shared.scores[place_of_bit(__ffs(left) - 1)];
            score = __uint2float_rn(__float_as_uint(score));
        }
    }

    TileKeys keys = {shared.scores, first_doc, reaching};
    keys.keep_from(cut);
    u32 count = count_in_block(keys.reaching, progress.num_candidates);
    const bool are_many = count > MANY_CANDIDATES;
    if (are_many) {
        __syncthreads();  // all threads have read the number before it is cleared
        if (warp == 0) {
            raise_threshold<false>(shared.state, query, lane);  // registers are scarce
            __syncwarp();
            if (lane == 0) {
                progress.floor = read_threshold(shared.state, query.seed);
                progress.num_candidates = 0;
            }
        }
        __syncthreads();
        if (progress.floor > cut) {
            cut = progress.floor;
            keys.keep_from(cut);
        }
        count = count_in_block(keys.reaching, progress.num_candidates);
    }
    if (count == 0) return are_many;
    if (count >= query.k) {
        cut = select_cut<BlockGroup<TILE_THREADS>>(keys, query.k, cut, shared.selection);
        count = query.k;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (count == query.k) raise_to(shared.state, cut);
        progress.next_slot = add_found(shared.state, count);
    }
    __syncthreads();
    for (u32 left = keys.reaching; left != 0; left &= left - 1) {
        const u64 key = keys.key(__ffs(left) - 1);
        if (key >= cut) {
            shared.candidates[atomicAdd(&progress.next_slot, 1)] = key;
            count_in_bin(shared.state, score_bin(query, key_score(key)));
        }
    }
    // Other tiles start at a threshold that the candidates of all tiles give.
    __syncthreads();
    const u32 found = progress.next_slot;
    if (warp == 0 && found / query.k != (found - count) / query.k) raise_threshold<false>(shared.state, query, lane);
    __syncthreads();
    return true;
}

// A group of tiles per thread block. With `is_sample`, every sample_stride-th tile of queries with a sample, which the second
// launch omits. The gate is that of batch.cu.
template <bool IS_IMPACTS>
__device__ __forceinline__ void score_groups(
    const Lists& lists, const Batch& batch, Run* run, State* states, u64* candidates, u64* results, u32 is_sample
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
    State* state = states + tiled.query;
    State* gate = gate_of(entry, states);
    const bool had_all = gate != nullptr && num_found(gate) >= entry.query.k;  // enough documents have all terms
    bool is_touched = blockIdx.x == 0;  // its start of the batch
    if (!had_all) {
        const u32* terms = reinterpret_cast<const u32*>(input.terms + entry.query.first_term);
        for (u32 i = threadIdx.x; i < entry.query.num_terms * sizeof(QueryTerm) / sizeof(u32); i += TILE_THREADS) {
            reinterpret_cast<u32*>(shared.tile.terms)[i] = terms[i];
        }
        if (threadIdx.x == 0) {
            shared.tile.query = entry.query;
            shared.tile.state = state;
            shared.tile.candidates = candidates + entry.candidates;
            shared.tile.scores_all = entry.scores_all();
        }
        __syncthreads();
        find_blocks(lists, tiled, first, count, is_sample != 0, shared.tile);
        u32 turn = 0;
        for (u32 i = 0; i < count; ++i) {
            const u32 tile = tile_of(tiled, first + i, is_sample != 0);
            const bool is_done = is_sample == 0 && tiled.sample_stride != 0 && tile % tiled.sample_stride == 0;
            if (is_done) continue;
            is_touched |= score_tile<IS_IMPACTS>(lists, tile, shared.tile.tiles[i], shared.tile, turn);
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
    Query query = entry.query;
    if (!had_all || query.k > WARP_K) {
        if (had_all) query.need_all();
        State* sorted = had_all ? gate : state;
        merge_candidates<Block, 2>(
            query, sorted, candidates + entry.candidates, num_found(sorted), entry.capacity, results + entry.result, nullptr,
            shared.merge
        );
        if (threadIdx.x == 0) finish_query(batch, run, state, gate, results);
    }
    __syncthreads();
    clear_state<Block>(state);
    if (gate != nullptr) clear_state<Block>(gate);
}

extern "C" __global__ void __launch_bounds__(TILE_THREADS, TILE_RESIDENT) score_tiles(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch, Run* run, State* states, u64* candidates,
    u64* results, u32 is_sample
) {
    score_groups<false>(lists, batch, run, states, candidates, results, is_sample);
}

// Equals score_tiles, for an index of impacts.
extern "C" __global__ void __launch_bounds__(TILE_THREADS, TILE_RESIDENT) score_impact_tiles(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch, Run* run, State* states, u64* candidates,
    u64* results, u32 is_sample
) {
    score_groups<true>(lists, batch, run, states, candidates, results, is_sample);
}
