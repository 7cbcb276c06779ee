// rank.cu: AND of lists in GS order, the k best documents, and exact early termination, after Wang et al. 2017.
//
// A thread block answers a query in rounds of CACHED_THREADS documents of the shortest list, one per thread. A thread looks up
// its document in its bucket of each other list. C is the set of documents in all lists. Groups of 32 of C are sorted by a
// bitonic network of shuffles and cut to their k best, until one group is left, which is merged into K. The query ends after a
// round if K[k - 1] scores at least the GS of the next document. Lists may be prefixes: if the answer is incomplete, the host
// continues behind them, from K.
// In:   queries, terms, lists, priors, norms, GS. Out: for each query k keys and whether they are the answer.
// Launch bounds: 256 threads, 4 blocks per multiprocessor, without spilled registers. Bound by latency of dependent reads.
// Twin on the host: crates/papers/src/wang/ranker.rs, which takes the same steps with the same roundings.

#include "wang/wang.cuh"

// Sorts the warp's keys. The largest goes to lane 0.
__device__ __forceinline__ u64 sort_warp(u64 key, u32 lane) {
#pragma unroll
    for (u32 size = 2; size <= WARP; size *= 2) {
#pragma unroll
        for (u32 distance = size / 2; distance > 0; distance /= 2) {
            const u64 other = __shfl_xor_sync(FULL_WARP, key, distance);
            const bool keeps_larger = ((lane & distance) == 0) == ((lane & size) == 0);
            key = keeps_larger ? max(key, other) : min(key, other);
        }
    }
    return key;
}

// A posting's IR, bit for bit as on the host: every operation is rounded once.
__device__ __forceinline__ float impact(float ceiling, u32 freq, float norm) {
    const float f = __uint2float_rn(freq);
    return __fdiv_rn(__fmul_rn(ceiling, f), __fadd_rn(norm, f));
}

constexpr u32 NOT_FOUND = 0xffffffffu;

// The document's place in the list, or NOT_FOUND.
__device__ __forceinline__ u32 find(const CachedTerm& term, u32 doc) {
    const u32 bucket = doc >> term.shift;
    if (bucket >= term.num_buckets) return NOT_FOUND;
    u32 low = __ldg(term.table + bucket);
    const u32 end = __ldg(term.table + bucket + 1);
    u32 high = end;
    while (low < high) {
        const u32 middle = (low + high) / 2;
        if (__ldg(term.docs + middle) < doc) low = middle + 1; else high = middle;
    }
    return low < end && __ldg(term.docs + low) == doc ? low : NOT_FOUND;
}

// Documents order by score, higher first, then by number, smaller first. Scores are not negative.
__device__ __forceinline__ u64 key_of(float score, u32 doc) {
    return static_cast<u64>(__float_as_uint(score)) << 32 | ~doc;
}

__device__ __forceinline__ float score_of(u64 key) { return __uint_as_float(static_cast<u32>(key >> 32)); }

// The document's key if all lists have it, else 0.
__device__ __forceinline__ u64 rank_document(
    const CachedBatch& batch, const CachedTerm* terms, u32 num_terms, u32 place
) {
    const u32 doc = __ldg(terms[0].docs + place);
    const float norm = __ldg(batch.norms + doc);
    const float first = impact(batch.ceiling, __ldg(terms[0].freqs + place), norm);
    float score = __fadd_rn(__ldg(batch.priors + doc), __fmul_rn(terms[0].weight, first));
    for (u32 i = 1; i < num_terms; ++i) {
        const u32 found = find(terms[i], doc);
        if (found == NOT_FOUND) return 0;
        const float other = impact(batch.ceiling, __ldg(terms[i].freqs + found), norm);
        score = __fadd_rn(score, __fmul_rn(terms[i].weight, other));
    }
    return key_of(score, doc);
}

extern "C" __global__ void __launch_bounds__(CACHED_THREADS, 4) rank_cached(const __grid_constant__ CachedBatch batch) {
    __shared__ CachedTerm terms[CACHED_MAX_TERMS];
    __shared__ u64 candidates[CACHED_THREADS / WARP * CACHED_MAX_K];
    __shared__ u64 best[CACHED_MAX_K];
    const CachedQuery query = batch.queries[blockIdx.x];
    const u32 k = batch.k, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (threadIdx.x < query.num_terms) terms[threadIdx.x] = batch.terms[query.first_term + threadIdx.x];
    if (threadIdx.x < CACHED_MAX_K) best[threadIdx.x] = 0;
    __syncthreads();

    for (u32 first = 0; first < query.len; first += CACHED_THREADS) {
        const u32 place = first + threadIdx.x;
        u64 key = place < query.len ? rank_document(batch, terms, query.num_terms, place) : 0;
        if (key <= best[k - 1]) key = 0;
        // K changes only if some document of the round enters it.
        if (__syncthreads_or(key != 0)) {
            u32 num_groups = CACHED_THREADS / WARP;
            while (true) {
                if (warp < num_groups) {
                    const u64 sorted = sort_warp(key, lane);
                    if (lane < k) candidates[warp * k + lane] = sorted;
                }
                const u32 count = num_groups * k;
                __syncthreads();
                if (num_groups == 1) break;
                key = threadIdx.x < count ? candidates[threadIdx.x] : 0;
                num_groups = (count + WARP - 1) / WARP;
                __syncthreads();
            }
            if (warp == 0) {
                const u32 slot = lane % CACHED_MAX_K;
                u64 merged = 0;
                if (slot < k) merged = lane < CACHED_MAX_K ? best[slot] : candidates[slot];
                __syncwarp();
                merged = sort_warp(merged, lane);
                if (lane < k) best[lane] = merged;
            }
            __syncthreads();
        }
        const u32 next = first + CACHED_THREADS;
        if (next < query.len && score_of(best[k - 1]) >= __ldg(batch.global_scores + __ldg(terms[0].docs + next))) break;
    }
    u64* results = batch.results + static_cast<u64>(blockIdx.x) * (k + 1);
    if (threadIdx.x < k) results[threadIdx.x] = best[threadIdx.x];
    // An early end is based on the GS of a document before the one behind.
    if (threadIdx.x == 0) results[k] = score_of(best[k - 1]) >= query.behind ? 1 : 0;
}
