// topk.cu: the best k candidates of queries of a batch that ask for more results than a warp sorts: merge.cuh, one thread block
// per query.
// In:   candidates, their histogram by score, and the threshold of earlier launches.
// Out:  the number of results and their keys, best first, of each query, written straight to pinned host memory; clear states.
// Limits: k up to MAX_K. Shared memory: 17 KiB. Launch bounds: 512 threads, at least 2 blocks per multiprocessor.
// Twin on the host: search/topk.rs.

#include "batch.cuh"

extern "C" __global__ void __launch_bounds__(MERGE_THREADS, 2) merge_topk(
    const __grid_constant__ Batch batch, Run* run, State* states, const u64* candidates, u64* results
) {
    typedef BlockGroup<MERGE_THREADS> Block;
    __shared__ Merge<SORT_LEN> shared;
    if (batch.num_queries == 0) return;  // the launch only loads the kernel
    const BatchInput input(batch, batch.input);
    const u32 number = input.later[blockIdx.x];
    const BatchQuery& entry = input.queries[number];
    Query query = entry.query;
    State* own = states + number;
    // For AND+OR: if enough documents have all terms, the union was not searched.
    State* gate = gate_of(entry, states);
    const bool had_all = gate != nullptr && num_found(gate) >= query.k;
    if (had_all || entry.needs_all()) query.need_all();
    State* state = had_all ? gate : own;
    merge_candidates<Block>(
        query, state, candidates + entry.candidates, num_found(state), entry.capacity, results + entry.result, nullptr,
        shared
    );
    if (threadIdx.x == 0) finish_query(batch, run, own, gate, results);
    __syncthreads();
    clear_state<Block>(own);
    if (gate != nullptr) clear_state<Block>(gate);
}
