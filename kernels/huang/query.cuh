// query.cuh: a query by one thread block: initialisation, scoring by a strategy, barrier, merging.
#pragma once

#include "huang/cursor.cuh"
#include "huang/merge.cuh"
#include "huang/top_k.cuh"

// A thread's data for the scan of its range.
struct RangeScan {
    Owner owner;
    ThreadTopK best;
    const float* norms;
    float norm;
    u32 postings_scored;

    // Scores document `doc` by all cursors at it, offers it, and advances these. Returns the least document of all cursors.
    __device__ __forceinline__ u32 take(u32 doc) {
        const float doc_norm = norms == nullptr ? norm : __ldg(norms + doc);
        float score = 0.0f;
        u32 least = END_DOC;
        for (u32 term = 0; term < owner.num_terms; ++term) {
            u32 now = owner.doc(term);
            if (now == doc) {
                score = __fadd_rn(score, owner.score(term, doc_norm));
                postings_scored += 1;
                owner.next(term);
                now = owner.doc(term);
            }
            least = min(least, now);
        }
        best.offer(doc, score);
        return least;
    }
};

// Answers the thread block's query. Dynamic shared memory: k merged keys; k keys per thread unless they are elsewhere; a count
// per thread.
template <class Strategy>
__device__ __forceinline__ void answer_query(const RangeBatch& batch, Strategy strategy) {
    extern __shared__ __align__(16) u64 shared_keys[];
    __shared__ u64 postings_scored, blocks_decoded;
    __shared__ u32 reached;
    // Threads of a warp take different paths, one after another. So the query's threads are spread over more warps, of which they
    // are every `spread`-th thread.
    const u32 threads = blockDim.x / batch.spread, thread = threadIdx.x / batch.spread, k = batch.k;
    const bool is_owner = threadIdx.x % batch.spread == 0;
    const u64 began = clock64();
    const RangeQuery query = batch.queries[blockIdx.x];
    u64* keys = batch.local_keys == nullptr ? shared_keys + k
                                            : batch.local_keys + static_cast<u64>(blockIdx.x) * threads * k;
    u32* counts = reinterpret_cast<u32*>(batch.local_keys == nullptr ? keys + static_cast<u64>(threads) * k : shared_keys + k);
    if (threadIdx.x == 0) {
        postings_scored = blocks_decoded = 0;
        reached = 0;
    }

    // The host refuses collections whose documents and threads together exceed 2^32.
    const u32 each = batch.num_docs / threads + (batch.num_docs % threads != 0);
    const bool is_even = query.cuts != nullptr;
    const u32 begin = is_even ? query.cuts[thread] : min(thread * each, batch.num_docs);
    const u32 end = is_even ? query.cuts[thread + 1] : min(begin + each, batch.num_docs);
    RangeScan scan = {
        {batch.state + query.state + thread, batch.terms + query.first_term, query.num_terms, threads, end, 0},
        {keys + thread, threads, k, 0, 0.0f, is_even ? &reached : nullptr},
        batch.norms,
        batch.norm,
        0,
    };
    if (is_owner) {
        for (u32 term = 0; term < query.num_terms; ++term) scan.owner.start(term, begin);
    }
    __syncthreads();
    const u64 started = clock64();

    if (is_owner) {
        strategy(scan);
        scan.best.sort();
        counts[thread] = scan.best.len;
        atomicAdd(&postings_scored, static_cast<u64>(scan.postings_scored));
        atomicAdd(&blocks_decoded, static_cast<u64>(scan.owner.blocks_decoded));
    }
    __syncthreads();
    const u32 lane = threadIdx.x;
    if (lane >= WARP) return;

    const u64 scored = clock64();
    const u32 found = merge_keys(shared_keys, k, keys, counts, threads, lane);
    for (u32 i = lane; i < found; i += WARP) batch.results[static_cast<u64>(blockIdx.x) * k + i] = shared_keys[i];
    if (lane == 0) {
        const u64 merged = clock64();
        batch.reports[blockIdx.x] = {
            {started - began, scored - started, merged - scored}, postings_scored, blocks_decoded, found, 0,
        };
    }
}
