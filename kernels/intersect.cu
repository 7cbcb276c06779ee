// intersect.cu: documents with all of two or more terms (AND), driven by the shortest list.
// In:   the index; the query. Out: at most k candidates a thread block into `candidates`, counted in
//       state->intersection; state->matches is the number of documents with all terms.
// A warp takes a block of the shortest list, or a slice of one when that list is too short to keep the machine busy. Its
// documents stay in registers, four a lane, with their partial scores, while it goes through the other lists in the query's
// order. In each it looks up the block of its smallest open document, decodes that block once for all documents that fall
// into it, and goes on from there: a block that no document falls into is never read.
// Limits: MAX_TERMS terms; documents below 2^31. Shared memory: 20 KiB. Twin on the host: exec/cpu/exhaustive.rs.
// Launch bounds: 128 threads, 6 blocks a multiprocessor: 80 registers and no spills (7 blocks would spill a few).

#include "block_codec.cuh"
#include "select.cuh"

constexpr u32 INTERSECT_WARPS = INTERSECT_THREADS / WARP;
constexpr u32 MATCH_BUFFER = 2048;  // keys that a thread block collects before it drops all but the best k
constexpr u32 MATCHES_A_ROUND = INTERSECT_WARPS * BLOCK_LEN;
static_assert(MAX_K + MATCHES_A_ROUND <= MATCH_BUFFER, "the best k and one more round must fit");

struct BufferKeys {
    const u64* keys;
    __device__ __forceinline__ u64 operator()(u32 i) const { return keys[i]; }
};

// Where `doc`, at most the last of the 128 ascending documents, is among them, or would be.
__device__ __forceinline__ u32 lower_bound(const u32 (&docs)[BLOCK_LEN], u32 doc) {
    u32 position = 0;
#pragma unroll
    for (u32 step = BLOCK_LEN / 2; step > 0; step /= 2) {
        if (docs[position + step - 1] < doc) position += step;
    }
    return position;
}

// The lane's documents that are in all lists so far: bit i of `alive` is docs[i].
struct Matches {
    u32 docs[4];
    float scores[4];
    u32 alive;

    // The smallest of the lane's documents in `open`, which is not empty.
    __device__ __forceinline__ u32 smallest(u32 open) const {
        u32 doc = docs[3];
        if (open & 4) doc = docs[2];
        if (open & 2) doc = docs[1];
        if (open & 1) doc = docs[0];
        return doc;
    }

    // Keeps the documents that are in `list` too, and calls score(i, header, position) for each of them.
    template <class Score>
    __device__ __forceinline__ void keep_common(const List& list, u32 (&block_docs)[BLOCK_LEN], u32 lane, Score score) {
        u32 open = alive, block = 0;
        bool first = true;
        alive = 0;
        for (;;) {
            const u32 lanes = __ballot_sync(FULL_WARP, open != 0);
            if (lanes == 0) return;
            // Documents ascend from lane to lane: the first lane that has one has the smallest.
            const u32 doc = __shfl_sync(FULL_WARP, smallest(open), __ffs(lanes) - 1);
            block = first ? find_block<false>(list, 0, doc, lane) : find_block<true>(list, block, doc, lane);
            if (block == list.num_blocks) return;
            first = false;

            const BlockHeader header = list.header(block);
            u32 decoded[4];
            decode_docs(header, lane, decoded);
            *reinterpret_cast<uint4*>(&block_docs[4 * lane]) = make_uint4(decoded[0], decoded[1], decoded[2], decoded[3]);
            __syncwarp();
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                if ((open >> i & 1) != 0 && docs[i] <= header.last_doc) {
                    open &= ~(1u << i);
                    const u32 position = lower_bound(block_docs, docs[i]);
                    if (block_docs[position] == docs[i]) {
                        alive |= 1u << i;
                        score(i, header, position);
                    }
                }
            }
            __syncwarp();
            block += 1;
        }
    }
};

extern "C" __global__ void __launch_bounds__(INTERSECT_THREADS, 6) score_intersect(
    const __grid_constant__ Index index, const __grid_constant__ Query query, State* state, u64* candidates
) {
    __shared__ u64 buffer[MATCH_BUFFER];
    __shared__ __align__(16) u32 block_docs[INTERSECT_WARPS][BLOCK_LEN];
    __shared__ Selection selection;
    __shared__ u64 floor;
    __shared__ u32 filled, num_matches, next_slot;

    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const List driver(index, query.terms[0]);
    const u32 num_chunks = driver.num_blocks << query.slice_bits;
    u32 own_matches = 0;
    if (threadIdx.x == 0) {
        filled = 0;
        num_matches = 0;
        floor = read_threshold(state);
    }
    __syncthreads();

    for (u32 round = blockIdx.x * INTERSECT_WARPS; round < num_chunks; round += gridDim.x * INTERSECT_WARPS) {
        const u32 chunk = round + warp;
        if (chunk < num_chunks) {
            const u32 driver_block = chunk >> query.slice_bits;
            const u32 slice = chunk & ((1u << query.slice_bits) - 1);
            const BlockHeader driver_header = driver.header(driver_block);
            Matches matches;
            decode_docs(driver_header, lane, matches.docs);
            matches.alive = 0;
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                const bool is_own = lane >> (5 - query.slice_bits) == slice && matches.docs[i] != NO_DOC;
                matches.alive |= static_cast<u32>(is_own) << i;
            }
            for (u32 t = 1; t < query.num_terms; ++t) {
                const List list(index, query.terms[t]);
                const float weight = query.terms[t].weight;
                matches.keep_common(list, block_docs[warp], lane, [&](u32 i, const BlockHeader& header, u32 position) {
                    const float norm = __ldg(index.norms + matches.docs[i]);
                    if (t == 1) {
                        // Only now is it worth reading what the shortest list says of this document.
                        const u32 freq = freq_at(driver_header, 4 * lane + i);
                        matches.scores[i] = posting_score(query.terms[0].weight, freq, norm);
                    }
                    const float more = posting_score(weight, freq_at(header, position), norm);
                    matches.scores[i] = __fadd_rn(matches.scores[i], more);
                });
            }
            own_matches += __popc(matches.alive);
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                if (matches.alive >> i & 1) {
                    const u64 key = make_key(matches.scores[i], matches.docs[i]);
                    if (key >= floor) buffer[atomicAdd(&filled, 1)] = key;
                }
            }
        }
        __syncthreads();
        const u32 n = filled;
        __syncthreads();
        if (n > MATCH_BUFFER - MATCHES_A_ROUND) {
            const u64 cut = select_cut(Dealt<INTERSECT_THREADS, BufferKeys>{{buffer}, n}, query.k, 1, selection);
            if (threadIdx.x == 0) {
                filled = 0;
                const u64 before = atomicMax(&state->threshold, cut);
                floor = max(before, cut);
            }
            __syncthreads();
            // What is kept moves to the front, which has been read by then.
            for (u32 first = 0; first < n; first += INTERSECT_THREADS) {
                const u32 i = first + threadIdx.x;
                const u64 key = i < n ? buffer[i] : 0;
                __syncthreads();
                if (key >= cut) buffer[atomicAdd(&filled, 1)] = key;
                __syncthreads();
            }
        }
    }

    own_matches = warp_sum(own_matches);
    if (lane == 0 && own_matches != 0) atomicAdd(&num_matches, own_matches);
    __syncthreads();
    const u32 n = filled;
    u32 count = n;
    u64 cut = 1;
    if (n >= query.k) {
        cut = select_cut(Dealt<INTERSECT_THREADS, BufferKeys>{{buffer}, n}, query.k, 1, selection);
        count = query.k;
    }
    if (threadIdx.x == 0) {
        if (num_matches != 0) atomicAdd(&state->matches, num_matches);
        if (n >= query.k) atomicMax(&state->threshold, cut);
        next_slot = count != 0 ? atomicAdd(&state->intersection.count, count) : 0;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < n; i += INTERSECT_THREADS) {
        const u64 key = buffer[i];
        if (key >= cut) {
            candidates[atomicAdd(&next_slot, 1)] = key;
            atomicAdd(&state->intersection.bins[score_bin(key, query.bins_per_score)], 1);
        }
    }
}
