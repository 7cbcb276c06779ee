// topk.cu: the best k of the candidates of each query of a launch, sorted: merge.cuh, a thread block a query.
// In:   candidates, their histogram by score, the threshold, as an earlier launch has left them. Out: for each query how many
//       results, and their keys, best first, written straight into the host's pinned memory.
// Limits: k up to MAX_K. Shared memory: 17 KiB. Launch bounds: 512 threads, 2 blocks a multiprocessor: 50 registers.
// Twin on the host: exec/topk.rs.

#include "merge.cuh"

extern "C" __global__ void __launch_bounds__(MERGE_THREADS, 2) merge_topk(
    const __grid_constant__ Batch batch, const __grid_constant__ LoneQuery<MAX_TERMS> lone, State* states, State* gates,
    const u64* candidates, u64* results, u32 result_stride
) {
    __shared__ Merge shared;
    const u32 number = blockIdx.x;
    Query query = batch.queries != nullptr ? batch.queries[number] : lone.query;
    // For AND+OR: where enough documents have all terms, the union was not looked for.
    const bool had_all = gates != nullptr && num_found(gates + number) >= query.k;
    if (had_all || batch.needs_all != 0) query.need_all();
    State* state = had_all ? gates + number : states + number;
    merge_candidates<MERGE_THREADS>(
        query, state, candidates + static_cast<u64>(number) * batch.capacity, num_found(state), batch.capacity,
        results + static_cast<u64>(number) * result_stride, nullptr, shared
    );
}
