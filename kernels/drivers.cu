// drivers.cu: the best documents with all of a query's terms (AND) or any of them (OR), without reading most of its lists.
// In:   the lists; the queries of a batch, or a lone one; which lists drive. Out: candidates, counted in the query's state.
//
// A list drives: a warp goes through blocks of it, and looks the documents that may be among the best up in the other lists,
// a document a thread. For AND the shortest list drives and a document must be found everywhere. For OR every list drives
// that could bring a document among the best by itself and those after it: a document is taken up by the first of its
// lists, adds its scores in the query's order, and is dropped where what it has and all that is left cannot reach the
// threshold. This is MaxScore (Turtle and Flood, 1995; its essential lists are those that drive) with the lists in ascending
// order of frequency, which is about the descending one of bounds.
//
// The threshold begins at a score that the host knows k documents to reach, so that the first block is pruned already. A
// block is passed over by the bound of its impacts; a posting by the byte that bounds its own, sixteen a lane at a time.
// Survivors wait in a queue in shared memory until there are 32: lanes stay busy however few survive. Their documents are
// read only then. A warp shares nothing with the others of its thread block: no barrier but __syncwarp is needed.
//
// A lone query's time is that of reads that wait for each other: block, document, norm, then four for each list it is looked
// up in. So few blocks are shared out by quarters, 32 postings a warp, that no warp goes this way twice.
//
// score_drivers scores the queries of a batch, for topk.cu to sort. score_lone is the whole of a single query: its last thread
// block sorts what all have found. score_lone_long is the same for queries of more than FEW_TERMS terms.
//
// Exactness: what is dropped has a bound (sums and products of upper bounds, times a slack that covers all roundings) below
// a score that k documents reach. The threshold only rises, whoever reads it, and however late; so which documents become
// candidates depends on timing, but the best k among them do not. Twin on the host: exec/cpu/exhaustive.rs.
// Limits: MAX_TERMS terms; documents below 2^31; fewer than 2^27 items a launch. Shared memory: 14 KiB; score_lone 17 KiB.
// Launch bounds: 128 threads, 8 blocks a multiprocessor: 61 and 64 registers; 10 blocks would spill some.
// Bound by: a lone query by latency, a batch by instructions and latency (docs/gpu.md). Asking for the next list's directory
// before it is known to be needed gained nothing, nor did submitting score_lone as a captured graph.

#include "histogram.cuh"
#include "lists.cuh"
#include "merge.cuh"

constexpr u32 DRIVE_WARPS = DRIVE_THREADS / WARP;
constexpr u32 OCTET = 8;                                // lanes that read a block's impacts: 16 postings each
constexpr u32 GROUP = WARP / OCTET;                     // blocks that a warp reads at a time
constexpr u32 QUEUE_LEN = WARP - 1 + GROUP * BLOCK_LEN;  // fewer than a warp wait while blocks are read

// Shared memory of a warp.
struct Queue {
    QueryTerm terms[MAX_TERMS];
    u32 places[QUEUE_LEN];  // of postings in the driving list
};

// The driver of an item: the last one whose first item is not after it. The whole warp asks for one item, and looks at 32
// drivers at a time.
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
    float floor;    // a score that k documents reach: the threshold's, when it was last read

    __device__ __forceinline__ bool can_enter(float bound) const { return bound * BOUND_SLACK >= floor; }
    // What the terms after the driver add at most.
    __device__ __forceinline__ float rest() const {
        return driver + 1 < query.num_terms ? queue.terms[driver + 1].rest : 0.0f;
    }

    // The least byte of an impact in a block that can bring a document among the best; at least 1, which all postings have and
    // the places behind the last one have not; 256 if none can. One in 2^15 is taken off the floor, which is more than the
    // slack, and a hundredth of a step for what is rounded here.
    __device__ __forceinline__ u32 least_impact(float max_impact) const {
        const float own = floor * (1.0f - 1.0f / 32768.0f) - rest();
        const float needed = own / (queue.terms[driver].weight * max_impact) * 255.0f - 0.01f;
        return needed > 1.0f ? min(__float2uint_ru(needed), 256u) : 1;
    }

    // Whether a posting of the driving list may be among the best.
    __device__ __forceinline__ bool posting_can_enter(u32 place) const {
        const Header header(lists.blocks + (queue.terms[driver].first_block + place / BLOCK_LEN));
        const u32 least = least_impact(header.max_impact);
        return least <= 1 || header.impact_at(lists.rows, place % BLOCK_LEN) >= least;
    }

    // Puts those postings into the queue that may be among the best, of up to GROUP blocks: an octet of lanes takes the block
    // whose header it is given, if `exists`, a lane sixteen of its postings.
    __device__ __forceinline__ void enqueue(const Header& header, u32 block, bool exists) {
        const u32 part = lane % OCTET;
        u32 entering = 0;
        if (exists && part < byte_rows(header.len())) {
            const u32 least = least_impact(header.max_impact);
            if (least > 1) {
                const uint4 bytes = __ldg(reinterpret_cast<const uint4*>(lists.rows) + (header.impact_row() + part));
                entering = least > 255 ? 0
                                       : reaching(bytes.x, least) | reaching(bytes.y, least) << 4 |
                                             reaching(bytes.z, least) << 8 | reaching(bytes.w, least) << 12;
            } else {
                entering = 0xffffu >> (16 - min(header.len() - 16 * part, 16u));
            }
        }
        const u32 count = __popc(entering);
        const u32 upto = warp_prefix(count, lane);
        u32 slot = waiting + upto - count;
        for (; entering != 0; entering &= entering - 1) {
            queue.places[slot++] = block * BLOCK_LEN + 16 * part + __ffs(entering) - 1;
        }
        waiting += __shfl_sync(FULL_WARP, upto, WARP - 1);
        __syncwarp();
    }

    // Which of four bytes reach the least one, 1 to 255: a bit each. The product moves bits 0, 8, 16 and 24 next to each other.
    __device__ static __forceinline__ u32 reaching(u32 bytes, u32 least) {
        return (__vcmpgeu4(bytes, least * 0x01010101u) & 0x01010101u) * 0x01020408u >> 24;
    }

    // Takes up to 32 postings from the queue's end and scores them.
    __device__ __forceinline__ void score_waiting() {
        const u32 count = min(waiting, WARP);
        waiting -= count;
        const bool exists = lane < count;
        const u32 place = exists ? queue.places[waiting + lane] : 0;
        __syncwarp();
        score(place, exists);
    }

    // Scores the lane's posting of the driving list, if `alive`: its document becomes a candidate if it reaches the threshold.
    __device__ __forceinline__ void score(u32 place, bool alive) {
        const u64 least = read_threshold(state, query.seed);
        floor = key_score(least);
        u32 doc = 0;
        float norm = 1.0f, score = 0.0f;
        if (alive) {
            const QueryTerm& term = queue.terms[driver];
            const Header header(lists.blocks + (term.first_block + place / BLOCK_LEN));
            doc = header.doc_at(lists.rows, place % BLOCK_LEN);
            const u32 freq = header.freq_at(lists.rows, place % BLOCK_LEN);
            norm = __ldg(lists.norms + doc);
            score = posting_score(term.weight, freq, norm);
        }
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
        if (__any_sync(FULL_WARP, alive)) emit(alive, key);
    }

    // Makes candidates of documents that reach the threshold as it is now: they are counted first, which may raise it. What has
    // been counted and is dropped then had k others above it. Candidates without room are counted only: the host sees that.
    __device__ __forceinline__ void emit(bool emits, u64 key) {
        emits = emits && key >= read_threshold(state, query.seed);
        u32 emitting = __ballot_sync(FULL_WARP, emits);
        if (emitting == 0) return;
        const u32 found = num_found(state);
        if (emits) atomicAdd(&state->bins[score_bin(query, key_score(key))], 1);
        // With many results, not every few more are worth a look at the histogram.
        const u32 step = max(query.k / 8, 1u);
        const u32 more = found + __popc(emitting);
        if (more >= query.k && more / step != found / step) {
            __syncwarp();
            raise_threshold(state, query, lane);
            __syncwarp();
            emits = emits && key >= read_threshold(state, query.seed);
            emitting = __ballot_sync(FULL_WARP, emits);
            if (emitting == 0) return;
        }
        u32 first = 0;
        if (lane == 0) first = add_found(state, __popc(emitting));
        first = __shfl_sync(FULL_WARP, first, 0);
        const u32 slot = first + __popc(emitting & (1u << lane) - 1);
        if (emits && slot < capacity) candidates[slot] = key;
    }

    // Blocks [begin, end) of the driving list, up to 32 of them.
    __device__ __forceinline__ void go(u32 begin, u32 end) {
        const QueryTerm& term = queue.terms[driver];
        Header own;
        bool enters = false;
        if (begin + lane < end) {
            own = Header(lists.blocks + (term.first_block + begin + lane));
            enters = can_enter(term.weight * own.max_impact + rest());
        }
        for (u32 left = __ballot_sync(FULL_WARP, enters); left != 0;) {
            // Octet i takes the i-th block that is left, if there are so many.
            u32 octets = left;
#pragma unroll
            for (u32 i = 0; i < GROUP; ++i) {
                if (lane / OCTET == i) octets = left;
                left &= left - 1;
            }
            const u32 source = octets != 0 ? __ffs(octets) - 1 : 0;
            Header header;
            header.row = __shfl_sync(FULL_WARP, own.row, source);
            header.first_doc = 0;
            header.packing = __shfl_sync(FULL_WARP, own.packing, source);
            header.max_impact = __shfl_sync(FULL_WARP, own.max_impact, source);
            enqueue(header, begin + source, octets != 0);
            while (waiting >= WARP) score_waiting();
        }
    }
};

// What the warp has to do: its item of the batch, if it has one.
template <u32 TERMS>
__device__ __forceinline__ void drive_item(
    const Lists& lists, const Batch& batch, const LoneQuery<TERMS>& lone, State* states, const State* gates,
    u64* candidates, Queue& queue
) {
    const u32 lane = threadIdx.x % WARP;
    const u32 item = (blockIdx.x * DRIVE_THREADS + threadIdx.x) / WARP;
    if (item >= batch.num_items) return;
    const Driver* drivers = batch.drivers != nullptr ? batch.drivers : lone.drivers;
    const Driver driver = drivers[find_driver(drivers, batch.num_drivers, item, lane)];
    Query query = batch.queries != nullptr ? batch.queries[driver.query] : lone.query;
    if (batch.needs_all != 0) query.need_all();
    if (gates != nullptr && num_found(gates + driver.query) >= query.k) return;  // documents with all terms were enough

    const u32* terms =
        reinterpret_cast<const u32*>(batch.terms != nullptr ? batch.terms + query.first_term : lone.terms);
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
        const u32 place = number * WARP + lane;
        const bool enters = place < term.doc_freq && drive.posting_can_enter(place);
        if (__any_sync(FULL_WARP, enters)) drive.score(place, enters);
    } else {
        const u32 end = min((number + 1) * driver.blocks_an_item, num_blocks);
        for (u32 begin = number * driver.blocks_an_item; begin < end; begin += WARP) {
            drive.go(begin, min(begin + WARP, end));
        }
    }
    while (drive.waiting != 0) drive.score_waiting();
}

// A batch's queries, or a lone one's. `gates` are null, or the states of the stage before: where that has found k documents,
// this one has nothing to do.
extern "C" __global__ void __launch_bounds__(DRIVE_THREADS, 8) score_drivers(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch,
    const __grid_constant__ LoneQuery<MAX_TERMS> lone, State* states, const State* gates, u64* candidates
) {
    __shared__ Queue queues[DRIVE_WARPS];
    drive_item(lists, batch, lone, states, gates, candidates, queues[threadIdx.x / WARP]);
}

// The whole of a lone query, or a stage of one, in one launch: the thread block that is done last sorts the results, writes
// them to the host's memory, and clears what the next query will find.
template <u32 TERMS>
__device__ __forceinline__ void score_alone(
    const Lists& lists, const Batch& batch, const LoneQuery<TERMS>& lone, State* state, State* gate, u64* candidates,
    u64* results, u32 is_last_stage
) {
    __shared__ union Shared {
        Queue queues[DRIVE_WARPS];
        Merge merge;
    } shared;
    __shared__ u64 progress;
    if (blockIdx.x == 0 && threadIdx.x == 0) state->started_ns = clock_ns();
    drive_item(lists, batch, lone, state, gate, candidates, shared.queues[threadIdx.x / WARP]);

    // The barrier puts all of the block's candidates and counts before thread 0's fence, and the fence before its sign-off: the
    // block that signs off last sees those of every block.
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        progress = atomicAdd(&state->progress, 1ull << 32);
        __threadfence();
    }
    __syncthreads();
    if (progress >> 32 != gridDim.x - 1) return;
    const u32 found = static_cast<u32>(progress);
    const Times times = {gate != nullptr ? &gate->started_ns : &state->started_ns, clock_ns()};
    Query query = lone.query;
    if (batch.needs_all != 0) query.need_all();
    const bool had_all = gate != nullptr && num_found(gate) >= query.k;  // then the stage before has written the results
    if (!had_all && (is_last_stage != 0 || found >= query.k)) {
        merge_candidates<DRIVE_THREADS>(query, state, candidates, found, batch.capacity, results, &times, shared.merge);
    }
    if (is_last_stage == 0) return;
    __syncthreads();
    for (u32 i = threadIdx.x; i < sizeof(State) / sizeof(u32); i += DRIVE_THREADS) {
        reinterpret_cast<u32*>(state)[i] = 0;
        if (gate != nullptr) reinterpret_cast<u32*>(gate)[i] = 0;
    }
}

// For queries of up to FEW_TERMS terms.
extern "C" __global__ void __launch_bounds__(DRIVE_THREADS, 8) score_lone(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch,
    const __grid_constant__ LoneQuery<FEW_TERMS> lone, State* state, State* gate, u64* candidates, u64* results,
    u32 is_last_stage
) {
    score_alone(lists, batch, lone, state, gate, candidates, results, is_last_stage);
}

// The same for queries of more than FEW_TERMS terms.
extern "C" __global__ void __launch_bounds__(DRIVE_THREADS, 8) score_lone_long(
    const __grid_constant__ Lists lists, const __grid_constant__ Batch batch,
    const __grid_constant__ LoneQuery<MAX_TERMS> lone, State* state, State* gate, u64* candidates, u64* results,
    u32 is_last_stage
) {
    score_alone(lists, batch, lone, state, gate, candidates, results, is_last_stage);
}
