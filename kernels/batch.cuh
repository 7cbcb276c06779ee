// batch.cuh: a batch of queries as written by the host (crates/engine/src/search/gpu/batch.rs).
#pragma once

#include "merge.cuh"

// The sections of a batch's input.
struct BatchInput {
    const BatchQuery* queries;
    const QueryTerm* terms;
    const Driver* drivers;
    const u32* hints;          // the driver of every 32nd item
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

// The state of the stage before an entry, or null.
__device__ __forceinline__ State* gate_of(const BatchQuery& entry, State* states) {
    return entry.gate == NO_GATE ? nullptr : states + entry.gate;
}

// Counts a query with written results, and its scored postings. The last query of a batch writes the total and the start and
// end of the batch, in nanoseconds of the device's clock. One thread calls it.
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
