// query.cuh: a query by one thread block: initialisation, scoring by a strategy, barrier, merging.
#pragma once

#include "huang/cursor.cuh"
#include "huang/merge.cuh"
#include "huang/top_k.cuh"

// A thread's data for the scan of its range.
template <class Cells>
struct RangeScan {
    Owner<Cells> owner;
    ThreadTopK best;
    const float* norms;
    float norm;
    u32 postings_scored;

    __device__ __forceinline__ float norm_of(u32 doc) const { return norms == nullptr ? norm : __ldg(norms + doc); }

    // Sets all cursors to their first documents from `begin` on. Vectors of documents are filled up with END_DOC.
    __device__ __forceinline__ void start(u32 begin) {
        for (u32 term = 0; term < owner.num_terms; ++term) owner.doc(term) = owner.start(term, begin);
        for (u32 term = owner.num_terms; term % 4 != 0; ++term) owner.doc(term) = END_DOC;
    }
};

// What the threads of a query share.
struct Shared {
    RangeTerm terms[MAX_TERMS];
    u64 postings_scored;
    u64 blocks_decoded;
    u32 reached;
};

// Scans the ranges of all threads that are owners, of which this one's begins at `begin`. Returns when scoring began. Sets the
// number of the thread's keys, which are then sorted.
template <class Strategy, class Cells>
__device__ __forceinline__ u64 scan_ranges(RangeScan<Cells> scan, bool is_owner, u32 begin, Shared& shared, u32& count) {
    if (is_owner) scan.start(begin);
    __syncthreads();
    const u64 started = clock64();
    if (is_owner) {
        Strategy::run(scan);
        scan.best.sort();
        count = scan.best.len;
        atomicAdd(&shared.postings_scored, static_cast<u64>(scan.postings_scored));
        atomicAdd(&shared.blocks_decoded, static_cast<u64>(scan.owner.blocks_decoded));
    }
    __syncthreads();
    return started;
}

// Answers the thread block's query. Dynamic shared memory: room for cursors; k merged keys; k keys per thread unless they are
// elsewhere; a count per thread.
template <class Strategy>
__device__ __forceinline__ void answer_query(const RangeBatch& batch) {
    __shared__ Shared shared;
    // Threads of a warp take different paths, one after another. So the query's threads are spread over more warps, of which they
    // are every `spread`-th thread.
    const u32 threads = blockDim.x / batch.spread, thread = threadIdx.x / batch.spread, k = batch.k;
    const bool is_owner = threadIdx.x % batch.spread == 0;
    const u64 began = clock64();
    const RangeQuery query = batch.queries[blockIdx.x];
    u64* shared_keys = reinterpret_cast<u64*>(shared_vectors + batch.room);
    u64* keys = batch.local_keys == nullptr ? shared_keys + k
                                            : batch.local_keys + static_cast<u64>(blockIdx.x) * threads * k;
    u32* counts = reinterpret_cast<u32*>(batch.local_keys == nullptr ? keys + static_cast<u64>(threads) * k : shared_keys + k);
    if (threadIdx.x == 0) {
        shared.postings_scored = shared.blocks_decoded = 0;
        shared.reached = 0;
    }
    for (u32 term = threadIdx.x; term < query.num_terms; term += blockDim.x) {
        shared.terms[term] = batch.terms[query.first_term + term];
    }
    __syncthreads();

    // The host refuses collections whose documents and threads together exceed 2^32.
    const u32 each = batch.num_docs / threads + (batch.num_docs % threads != 0);
    const bool is_even = query.cuts != nullptr;
    const u32 begin = is_even ? query.cuts[thread] : min(thread * each, batch.num_docs);
    const u32 end = is_even ? query.cuts[thread + 1] : min(begin + each, batch.num_docs);
    const ThreadTopK best = {keys + thread, threads, k, 0, 0.0f, is_even ? &shared.reached : nullptr};
    const u32 num_terms = query.num_terms, vectors = shared_vectors_of(num_terms);
    u64 started;
    if (vectors * threads <= batch.room) {
        const SharedCells cells = {thread * vectors};
        const RangeScan<SharedCells> scan = {{cells, shared.terms, num_terms, end, 0}, best, batch.norms, batch.norm, 0};
        started = scan_ranges<Strategy>(scan, is_owner, begin, shared, counts[thread]);
    } else {
        const DeviceCells cells = {reinterpret_cast<uint4*>(batch.state + query.state) + thread, threads};
        const RangeScan<DeviceCells> scan = {{cells, shared.terms, num_terms, end, 0}, best, batch.norms, batch.norm, 0};
        started = scan_ranges<Strategy>(scan, is_owner, begin, shared, counts[thread]);
    }
    const u32 lane = threadIdx.x;
    if (lane >= WARP) return;

    const u64 scored = clock64();
    const u32 found = merge_keys(shared_keys, k, keys, counts, threads, lane);
    for (u32 i = lane; i < found; i += WARP) batch.results[static_cast<u64>(blockIdx.x) * k + i] = shared_keys[i];
    if (lane == 0) {
        const u64 merged = clock64();
        batch.reports[blockIdx.x] = {
            {started - began, scored - started, merged - scored}, shared.postings_scored, shared.blocks_decoded, found, 0,
        };
    }
}
