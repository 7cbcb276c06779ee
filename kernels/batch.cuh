// batch.cuh: a batch of queries as the host writes it (crates/core/src/search/gpu/batch.rs): what the kernels that search one share.
#pragma once

#include "merge.cuh"

// The entries, terms, drivers, ... of a batch, where its input lies.
struct BatchInput {
    const BatchQuery* queries;
    const QueryTerm* terms;
    const Driver* drivers;
    const u32* hints;          // for every 32nd item, its driver
    const TileQuery* tiles;
    const u32* later;          // entries that merge_topk sorts

    __device__ __forceinline__ BatchInput(const Batch& batch, const u32* words)
        : queries(reinterpret_cast<const BatchQuery*>(words + batch.queries_at)),
          terms(reinterpret_cast<const QueryTerm*>(words + batch.terms_at)),
          drivers(reinterpret_cast<const Driver*>(words + batch.drivers_at)),
          hints(words + batch.hints_at),
          tiles(reinterpret_cast<const TileQuery*>(words + batch.tiles_at)),
          later(words + batch.later_at) {}
};

// Counts a query whose results are written, with what was scored for it. The last one of a batch notes what was for all, and
// when the batch began and ended, by the device's clock in nanoseconds. One thread calls it.
__device__ __forceinline__ void finish_query(
    const Batch& batch, Run* run, const State* state, const State* gate, u64* results
) {
    const u64 mask = (1ull << DONE_BIT) - 1;
    const u64 scored = (__ldcg(&state->done) & mask) + (gate != nullptr ? __ldcg(&gate->done) & mask : 0);
    const u64 before = atomicAdd(&run->finished, scored + (1ull << FINISHED_BIT));
    if (before >> FINISHED_BIT != batch.num_queries - 1) return;
    write_result(results + batch.end_at, (before & (1ull << FINISHED_BIT) - 1) + scored);
    write_result(results + batch.end_at + 1, __ldcg(&run->started_ns));
    write_result(results + batch.end_at + 2, clock_ns());
    run->finished = 0;
}
