// union.cu: documents with any of the terms (OR), one thread block a tile of TILE_DOCS documents.
// In:   the index; the query. Out: at most k candidates a tile into `candidates`, counted in state->union_.
// A tile's scores lie in shared memory. Terms are added one after another, with a barrier between, because floating-point
// sums must have the order of the host's; within a term every document occurs once, so that no atomics are needed.
// Tiles without postings exit after the search of the last documents, and so do tiles whose bound (sum of weight x largest impact of
// the blocks that they meet) is below the threshold that earlier tiles have set.
// Limits: MAX_TERMS terms; documents below 2^31. Shared memory: 34 KiB. Twin on the host: exec/cpu/exhaustive.rs.
// Launch bounds: 256 threads, 5 blocks a multiprocessor: 48 registers and no spills (6 blocks would spill a few).
// Twice the threads a tile were no faster on dense lists and slower on sparse ones.

#include "block_codec.cuh"
#include "histogram.cuh"
#include "select.cuh"

// Turing's multiprocessors hold 1,024 threads; on Ampere and Ada 48 registers would spill a few.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr u32 UNION_BLOCKS = 4;
#else
constexpr u32 UNION_BLOCKS = 5;
#endif
constexpr u32 UNION_WARPS = UNION_THREADS / WARP;
constexpr u32 TILE_QUADS_A_THREAD = TILE_DOCS / 4 / UNION_THREADS;
static_assert(TILE_QUADS_A_THREAD * 4 <= 32, "a thread notes its candidates in 32 bits");

// A tile with more candidates than this looks at the histogram of those that other tiles have emitted.
constexpr u32 MANY_CANDIDATES = 32;

// No score yet. It is also the neutral element: -0 + x is x for every x, +0 too.
constexpr u32 NO_SCORE = 0x80000000u;

// Bounds are rounded sums and products, as are scores: fewer than MAX_TERMS + 16 roundings of 2^-24 each.
constexpr float BOUND_SLACK = 1.0f + 1.0f / 65536.0f;
static_assert(MAX_TERMS + 16 < (1 << 24) / 65536, "the slack must cover all roundings");

// The keys of those of a thread's documents that are set in `reaching`: bit 4j + i is part i of the thread's quad j.
struct TileKeys {
    const float* scores;
    u32 first_doc;
    u32 reaching;

    __device__ __forceinline__ u64 key(u32 bit) const {
        const u32 place = 4 * (bit / 4 * UNION_THREADS + threadIdx.x) + bit % 4;
        return make_key(scores[place], first_doc + place);
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

// The lane's postings of one block: places in the tile (TILE_DOCS or more: outside) and scores.
struct TilePostings {
    u32 places[4];
    float scores[4];

    __device__ __forceinline__ void decode(
        const Index& index, const List& list, float weight, u32 block, u32 first_doc, u32 lane
    ) {
        const BlockHeader header = list.header(block);
        u32 freqs[4];
        decode_docs(header, lane, places);
        decode_freqs(header, lane, freqs);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            const u32 doc = places[i];
            places[i] = doc - first_doc;
            const float norm = places[i] < TILE_DOCS ? __ldg(index.norms + doc) : 1.0f;
            scores[i] = posting_score(weight, freqs[i], norm);
        }
    }
};

// The number of bits set in all threads' `bits`. `total` is shared and 0 before; a barrier ends it.
__device__ __forceinline__ u32 count_in_block(u32 bits, u32& total) {
    const u32 in_warp = warp_sum(__popc(bits));
    if (threadIdx.x % WARP == 0 && in_warp != 0) atomicAdd(&total, in_warp);
    __syncthreads();
    return total;
}

extern "C" __global__ void __launch_bounds__(UNION_THREADS, UNION_BLOCKS) score_union(
    const __grid_constant__ Index index, const __grid_constant__ Query query, State* state, u64* candidates,
    u32 sample_stride, u32 is_sample
) {
    __shared__ __align__(16) float scores[TILE_DOCS];
    __shared__ u32 begins[MAX_TERMS], ends[MAX_TERMS];
    __shared__ float bounds[MAX_TERMS];
    __shared__ Selection selection;
    __shared__ BinSearch<UNION_THREADS> bin_search;
    __shared__ bool skip;
    __shared__ u64 floor;
    __shared__ u32 num_candidates, next_slot;

    if (query.mode == MODE_AND_OR && state->matches >= query.k) return;  // the intersection was enough

    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 tile = is_sample != 0 ? blockIdx.x * sample_stride : blockIdx.x;
    if (is_sample == 0 && sample_stride != 0 && tile % sample_stride == 0) return;  // done with the sample
    const u32 first_doc = tile * TILE_DOCS;
    const u32 last_doc = min(index.num_docs, first_doc + TILE_DOCS) - 1;

    // Which blocks of each list meet the tile, and the best that they can contribute.
    for (u32 t = warp; t < query.num_terms; t += UNION_WARPS) {
        const List list(index, query.terms[t]);
        u32 begin = 0, end = 0;
        if (list.is_short()) {
            u32 docs[4];
            decode_docs(list.header(0), lane, docs);
            bool meets = false;
#pragma unroll
            for (u32 i = 0; i < 4; ++i) meets |= first_doc <= docs[i] && docs[i] <= last_doc;
            end = __any_sync(FULL_WARP, meets);
        } else {
            begin = find_block<false>(list, 0, first_doc, lane);
            end = min(find_block<true>(list, begin, last_doc, lane) + 1, list.num_blocks);
        }
        float impact = 0.0f;
        for (u32 block = begin + lane; block < end; block += WARP) impact = fmaxf(impact, list.max_impact(block));
#pragma unroll
        for (u32 distance = WARP / 2; distance > 0; distance /= 2) {
            impact = fmaxf(impact, __shfl_xor_sync(FULL_WARP, impact, distance));
        }
        if (lane == 0) {
            begins[t] = begin;
            ends[t] = end;
            bounds[t] = query.terms[t].weight * impact;
        }
    }
    __syncthreads();
    if (warp == 0) {
        bool meets = false;
        float bound = 0.0f;
        for (u32 t = lane; t < query.num_terms; t += WARP) {
            meets |= begins[t] < ends[t];
            bound += bounds[t];
        }
        const bool any = __any_sync(FULL_WARP, meets);
#pragma unroll
        for (u32 distance = WARP / 2; distance > 0; distance /= 2) bound += __shfl_xor_sync(FULL_WARP, bound, distance);
        if (lane == 0) {
            const u64 best = make_key(bound * BOUND_SLACK, first_doc);
            skip = !any || (query.use_bounds != 0 && best < read_threshold(state));
            num_candidates = 0;
            next_slot = 0;
        }
    }
    __syncthreads();
    if (skip) return;

    const float none = __uint_as_float(NO_SCORE);
    float4* quads = reinterpret_cast<float4*>(scores);
#pragma unroll
    for (u32 j = 0; j < TILE_QUADS_A_THREAD; ++j) quads[j * UNION_THREADS + threadIdx.x] = make_float4(none, none, none, none);

    for (u32 t = 0; t < query.num_terms; ++t) {
        u32 block = begins[t] + warp;
        const u32 end = ends[t];
        if (begins[t] >= end) continue;
        const List list(index, query.terms[t]);
        const float weight = query.terms[t].weight;
        TilePostings postings;
        // A warp decodes its first block before the barrier: memory is awaited while other warps finish the term before.
        if (block < end) postings.decode(index, list, weight, block, first_doc, lane);
        __syncthreads();
        while (block < end) {
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                const u32 place = postings.places[i];
                if (place < TILE_DOCS) scores[place] = __fadd_rn(scores[place], postings.scores[i]);
            }
            block += UNION_WARPS;
            if (block < end) postings.decode(index, list, weight, block, first_doc, lane);
        }
    }
    if (threadIdx.x == 0) floor = read_threshold(state);
    __syncthreads();

    // The documents that reach the threshold.
    TileKeys keys = {scores, first_doc, 0};
    u64 cut = floor;
#pragma unroll
    for (u32 j = 0; j < TILE_QUADS_A_THREAD; ++j) {
        const u32 place = 4 * (j * UNION_THREADS + threadIdx.x);
        const float4 quad = quads[place / 4];
        const float parts[4] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            const bool reaches =
                __float_as_uint(parts[i]) != NO_SCORE && make_key(parts[i], first_doc + place + i) >= cut;
            keys.reaching |= static_cast<u32>(reaches) << (4 * j + i);
        }
    }
    u32 count = count_in_block(keys.reaching, num_candidates);
    if (count > MANY_CANDIDATES) {
        const u32 cut_bin = find_cut_bin<UNION_THREADS>(state->union_.bins, query.k, bin_search);
        if (cut_bin > 0) {
            for (u32 left = keys.reaching; left != 0; left &= left - 1) {
                const u32 bit = __ffs(left) - 1;
                if (score_bin(keys.key(bit), query.bins_per_score) < cut_bin) keys.reaching &= ~(1u << bit);
            }
            if (threadIdx.x == 0) num_candidates = 0;
            __syncthreads();
            count = count_in_block(keys.reaching, num_candidates);
        }
    }
    if (count == 0) return;
    if (count >= query.k) {
        cut = select_cut(keys, query.k, cut, selection);
        count = query.k;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (count == query.k) atomicMax(&state->threshold, cut);
        next_slot = atomicAdd(&state->union_.count, count);
    }
    __syncthreads();
    for (u32 left = keys.reaching; left != 0; left &= left - 1) {
        const u64 key = keys.key(__ffs(left) - 1);
        if (key >= cut) {
            candidates[atomicAdd(&next_slot, 1)] = key;
            atomicAdd(&state->union_.bins[score_bin(key, query.bins_per_score)], 1);
        }
    }
}
