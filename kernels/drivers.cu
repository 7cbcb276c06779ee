// drivers.cu: the best documents with all of a query's terms (AND) or any of them (OR), without reading most of its lists.
// In:   the lists; the queries of a batch, or a lone one; which lists drive. Out: candidates, counted in the query's state.
//
// A list drives: a warp goes through blocks of it, and looks the documents that may be among the best up in the other lists,
// a document a thread. For AND the shortest list drives and a document must be found everywhere. For OR every list drives
// that could bring a document among the best by itself and those after it: a document is taken up by the first of its
// lists, adds its scores in the query's order, and is dropped where what it has and all that is left cannot reach the
// threshold. This is MaxScore with the lists in ascending order of frequency, which is about the descending one of bounds.
//
// The threshold begins at a score that the host knows k documents to reach, so that the first block is pruned already. A
// block is passed over by the bound of its impacts; a posting by the byte that bounds its own. Survivors wait in a queue in
// shared memory until there are 32: lanes stay busy however few survive.
//
// score_drivers scores the queries of a batch, for topk.cu to sort. score_lone is the whole of a single query: its last thread
// block sorts what all have found.
//
// Exactness: what is dropped has a bound (sums and products of upper bounds, times a slack that covers all roundings) below
// a score that k documents reach. Twin on the host: exec/cpu/exhaustive.rs.
// Limits: MAX_TERMS terms; documents below 2^31. Shared memory: 10 KiB, 18 KiB alone. Launch bounds: 128 threads, 8 blocks a
// multiprocessor: 56 and 62 registers; 10 blocks would spill a few. Asking for the next list's directory before it is known to
// be needed gained nothing.

#include "histogram.cuh"
#include "lists.cuh"
#include "merge.cuh"

constexpr u32 DRIVE_WARPS = DRIVE_THREADS / WARP;
constexpr u32 QUEUE_LEN = WARP - 1 + BLOCK_LEN;  // fewer than a warp wait while a block is read

// Shared memory of a warp.
struct Queue {
    QueryTerm terms[MAX_TERMS];
    u32 docs[QUEUE_LEN];
    u32 places[QUEUE_LEN];  // of the posting in the driving list
};

// The driver of an item: the last one whose first item is not after it. The whole warp asks alike.
__device__ __forceinline__ u32 find_driver(const Driver* drivers, u32 num_drivers, u32 item, u32 lane) {
    u32 first = 0, count = num_drivers;
    while (count > 1) {
        const u32 step = (count + WARP - 1) / WARP;
        const u32 probe = lane * step;
        const u32 hits = __ballot_sync(FULL_WARP, probe < count && drivers[first + probe].first_item <= item);
        const u32 skipped = (__popc(hits) - 1) * step;
        first += skipped;
        count = min(step, count - skipped);
    }
    return first;
}

// A warp's way through a list.
struct Drive {
    const Lists& lists;
    const Query& query;
    Queue& queue;
    State* state;
    u64* candidates;
    u32 capacity;
    u32 driver;     // the term whose list drives
    bool needs_all;
    u32 lane;
    u32 waiting;    // in the queue
    float floor;    // a score that k documents reach

    __device__ __forceinline__ bool can_enter(float bound) const { return bound * BOUND_SLACK >= floor; }
    // What the terms after the driver add at most.
    __device__ __forceinline__ float rest() const {
        return driver + 1 < query.num_terms ? queue.terms[driver + 1].rest : 0.0f;
    }

    // Puts those of a block's postings into the queue that may be among the best. Of the lane's four, those of `parts`.
    __device__ __forceinline__ void enqueue(const Header& header, u32 block, u32 parts) {
        const QueryTerm& term = queue.terms[driver];
        u32 docs[4];
        const u32 impacts = header.impacts_of_lane(lists.rows, lane);
        header.docs_of_lane(lists.rows, lane, docs);
        // An impact byte below this cannot enter. One in 2^16 is taken off for the slack, a hundredth of a step for rounding.
        const float own = floor * (1.0f - 1.0f / 32768.0f) - rest();
        const float needed = own / (term.weight * header.max_impact) * 255.0f - 0.01f;
        const u32 least = needed > 0.0f ? __float2uint_ru(needed) : 0;
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            const bool enters = (parts >> i & 1) != 0 && docs[i] != NO_DOC && (impacts >> 8 * i & 255) >= least;
            const u32 entering = __ballot_sync(FULL_WARP, enters);
            if (enters) {
                const u32 slot = waiting + __popc(entering & (1u << lane) - 1);
                queue.docs[slot] = docs[i];
                queue.places[slot] = block * BLOCK_LEN + 4 * lane + i;
            }
            waiting += __popc(entering);
        }
        __syncwarp();
    }

    // Takes up to 32 documents from the queue's end, scores them and makes candidates of those that reach the threshold.
    __device__ __forceinline__ void score_waiting() {
        const u32 count = min(waiting, WARP);
        waiting -= count;
        const u64 least = read_threshold(state, query.seed);
        floor = key_score(least);
        bool alive = lane < count;
        u32 doc = 0;
        float norm = 1.0f, score = 0.0f;
        if (alive) {
            doc = queue.docs[waiting + lane];
            const u32 place = queue.places[waiting + lane];
            const QueryTerm& term = queue.terms[driver];
            norm = __ldg(lists.norms + doc);
            const Header header(lists.blocks + (term.first_block + place / BLOCK_LEN));
            score = posting_score(term.weight, header.freq_at(lists.rows, place % BLOCK_LEN), norm);
        }
        __syncwarp();
        for (u32 t = driver + 1; t < query.num_terms; ++t) {
            const QueryTerm& term = queue.terms[t];
            alive = alive && can_enter(score + term.rest);
            if (!__any_sync(FULL_WARP, alive)) return;
            if (alive) {
                const Place place = find_doc(lists, term, doc);
                if (place.found) {
                    const u32 freq = place.header.freq_at(lists.rows, place.position);
                    score = __fadd_rn(score, posting_score(term.weight, freq, norm));
                } else if (needs_all) {
                    alive = false;
                }
            }
        }
        const u64 key = make_key(score, doc);
        alive = alive && key >= least;
        // A document of an earlier list is taken up there.
        for (u32 t = 0; t < driver; ++t) {
            if (!__any_sync(FULL_WARP, alive)) return;
            if (alive) alive = !find_doc(lists, queue.terms[t], doc).found;
        }
        emit(alive, key);
    }

    __device__ __forceinline__ void emit(bool emits, u64 key) {
        const u32 emitting = __ballot_sync(FULL_WARP, emits);
        if (emitting == 0) return;
        const u32 count = __popc(emitting);
        u32 first = 0;
        if (lane == 0) first = atomicAdd(&state->count, count);
        first = __shfl_sync(FULL_WARP, first, 0);
        if (emits) {
            const u32 slot = first + __popc(emitting & (1u << lane) - 1);
            if (slot < capacity) candidates[slot] = key;
            atomicAdd(&state->bins[score_bin(query, key_score(key))], 1);
        }
        // With many results, not every few more are worth a look at the histogram.
        const u32 step = max(query.k / 8, 1u);
        if (first + count >= query.k && (first + count) / step != first / step) {
            __syncwarp();
            raise_threshold(state, query, lane);
        }
    }

    // Blocks [begin, end) of the driving list, up to 32 of them.
    __device__ __forceinline__ void go(u32 begin, u32 end, u32 parts) {
        const QueryTerm& term = queue.terms[driver];
        Header own;
        bool enters = false;
        if (begin + lane < end) {
            own = Header(lists.blocks + (term.first_block + begin + lane));
            enters = can_enter(term.weight * own.max_impact + rest());
        }
        for (u32 left = __ballot_sync(FULL_WARP, enters); left != 0; left &= left - 1) {
            const u32 source = __ffs(left) - 1;
            Header header;
            header.row = __shfl_sync(FULL_WARP, own.row, source);
            header.first_doc = __shfl_sync(FULL_WARP, own.first_doc, source);
            header.packing = __shfl_sync(FULL_WARP, own.packing, source);
            header.max_impact = __shfl_sync(FULL_WARP, own.max_impact, source);
            enqueue(header, begin + source, parts);
            while (waiting >= WARP) score_waiting();
        }
    }
};

// What the warp has to do: an item of the batch.
__device__ __forceinline__ void drive_item(
    const Lists& lists, const Batch& batch, const LoneQuery& lone, State* states, const State* gates, u64* candidates,
    Queue& queue
) {
    const u32 lane = threadIdx.x % WARP;
    const u32 item = (blockIdx.x * DRIVE_THREADS + threadIdx.x) / WARP;
    if (item >= batch.num_items) return;
    const Driver* drivers = batch.drivers != nullptr ? batch.drivers : lone.drivers;
    const Driver driver = drivers[find_driver(drivers, batch.num_drivers, item, lane)];
    Query query = batch.queries != nullptr ? batch.queries[driver.query] : lone.query;
    if (batch.needs_all != 0) query.need_all();
    if (gates != nullptr && gates[driver.query].count >= query.k) return;  // documents with all terms were enough

    const u32* terms = reinterpret_cast<const u32*>(batch.terms != nullptr ? batch.terms + query.first_term : lone.terms);
    for (u32 i = lane; i < query.num_terms * sizeof(QueryTerm) / sizeof(u32); i += WARP) {
        reinterpret_cast<u32*>(queue.terms)[i] = terms[i];
    }
    __syncwarp();
    State* state = states + driver.query;
    const float floor = key_score(read_threshold(state, query.seed));
    const QueryTerm& term = queue.terms[driver.term];
    const u32 num_blocks = (term.doc_freq + BLOCK_LEN - 1) / BLOCK_LEN;
    Drive drive = {
        lists, query, queue, state, candidates + static_cast<u64>(driver.query) * batch.capacity, batch.capacity,
        driver.term, batch.needs_all != 0, lane, 0, floor,
    };
    if (!drive.can_enter(term.rest)) return;  // meanwhile the threshold is above all that this list can begin

    const u32 number = item - driver.first_item;
    if (driver.blocks_an_item == 0) {
        drive.go(number / 4, number / 4 + 1, 1u << number % 4);
    } else {
        const u32 end = min((number + 1) * driver.blocks_an_item, num_blocks);
        for (u32 begin = number * driver.blocks_an_item; begin < end; begin += WARP) {
            drive.go(begin, min(begin + WARP, end), 15);
        }
    }
    while (drive.waiting != 0) drive.score_waiting();
}

extern "C" __global__ void __launch_bounds__(DRIVE_THREADS, 8) score_drivers(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch, const __grid_constant__ LoneQuery lone,
    State* states, const State* gates, u64* candidates
) {
    __shared__ Queue queues[DRIVE_WARPS];
    drive_item(lists, batch, lone, states, gates, candidates, queues[threadIdx.x / WARP]);
}

// The whole of a lone query, or a stage of one, in one launch: the thread block that is done last sorts the results, writes
// them to the host's memory, and clears what the next query will find.
extern "C" __global__ void __launch_bounds__(DRIVE_THREADS, 8) score_lone(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch, const __grid_constant__ LoneQuery lone,
    State* state, State* gate, u64* candidates, u64* results, u32 is_last_stage
) {
    __shared__ union Shared {
        Queue queues[DRIVE_WARPS];
        Merge merge;
    } shared;
    __shared__ bool is_last;
    if (blockIdx.x == 0 && threadIdx.x == 0) state->started_ns = clock_ns();
    drive_item(lists, batch, lone, state, gate, candidates, shared.queues[threadIdx.x / WARP]);

    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(&state->tickets, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!is_last) return;
    Query query = lone.query;
    if (batch.needs_all != 0) query.need_all();
    const bool had_all = gate != nullptr && gate->count >= query.k;  // then the stage before has written the results
    if (!had_all && (is_last_stage != 0 || __ldcg(&state->count) >= query.k)) {
        const u64* started_ns = gate != nullptr ? &gate->started_ns : &state->started_ns;
        merge_candidates<DRIVE_THREADS>(query, state, candidates, batch.capacity, results, started_ns, shared.merge);
    }
    if (is_last_stage == 0) return;
    __syncthreads();
    for (u32 i = threadIdx.x; i < sizeof(State) / sizeof(u32); i += DRIVE_THREADS) {
        reinterpret_cast<u32*>(state)[i] = 0;
        if (gate != nullptr) reinterpret_cast<u32*>(gate)[i] = 0;
    }
}
