// drive.cuh: finds the best documents with all terms (AND) or any term (OR) of a query and reads only parts of its lists.
//
// A warp scans blocks of a driving list and looks up documents that may be among the best in the other lists, one document per
// thread. For AND the shortest list drives, and a document must be found in all others. For OR a list drives if it could bring
// a document among the best by itself and later lists. The first list of a document scores it in the query's order, and the
// document is dropped once its score and the remaining bounds cannot reach the threshold. This is MaxScore (Turtle and Flood,
// 1995), whose essential lists are the driving ones, with lists in ascending order of frequency.
//
// The threshold starts at a score that the host knows k documents to reach, so the first block is already pruned. The bound of
// its impacts skips a block; the byte that bounds its impact skips a posting, sixteen per lane at a time. Survivors wait in a
// queue in shared memory until there are 32, which keeps lanes busy. Only then are their documents read and looked up in the
// next list. Few are not excluded by that. They wait in a second queue until there are 32, and only then are their scores
// computed and looked up in all other lists. Warps of a thread block share nothing, so __syncwarp is the only barrier.
//
// lone.cu runs a single query, batch.cu many.
//
// Exactness: dropped documents have a bound (sums and products of upper bounds, times a slack for all roundings) below a score
// that k documents reach. The threshold only rises. So the set of candidates depends on timing, but the best k do not. Twin on
// the host: search/cpu/or/exhaustive.rs.
// Limits: MAX_TERMS terms; documents below 2^31; fewer than 2^27 items a launch, of at most 512 blocks each.
// Prefetching the directory of the next list gained nothing.
#pragma once

#include "histogram.cuh"
#include "lists.cuh"

constexpr u32 EIGHTH = 8;                               // lanes that read a block's impacts: 16 postings per lane
constexpr u32 GROUP = WARP / EIGHTH;                    // blocks that a warp reads at a time
constexpr float IMPACT_STEP = 1.00001f / 255.0f;        // one step of an impact's byte, with a margin for rounding
constexpr u32 QUEUE_LEN = WARP - 1 + GROUP * BLOCK_LEN;  // fewer postings than lanes wait while blocks are read
constexpr u32 SURVIVORS = 2 * WARP - 1;                  // fewer survivors than lanes wait while postings are looked up

// Shared memory of a warp.
struct Queue {
    Query query;
    QueryTerm terms[MAX_TERMS];
    unsigned short places[QUEUE_LEN];  // postings of the driving list: their places less the first one
    struct {                // postings that the first look-up did not exclude
        u32 doc;
        u32 place;          // in the driving list
        u32 position;       // in the list after it, or NOT_FOUND
    } survivors[SURVIVORS];
    u32 first_place;        // the item's first place in the driving list
    bool is_touched;        // whether the warp wrote to the state
    u32 scored;             // scored postings
    u32 capacity;           // capacity for candidates
    u64* candidates;        // candidates; in shared memory to save registers
};

// The driver of an item: the last one whose first item is not after it. The whole warp asks for one item and reads 32 drivers
// at a time.
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

// The scan of a list by a warp.
template <bool KEEPS_COUNTS>
struct Drive {
    const Lists& lists;
    const Query& query;
    Queue& queue;
    State* state;
    u32 driver;     // the driving term
    bool needs_all;
    u32 lane;
    u32 waiting;    // postings in the queue
    u32 surviving;  // survivors in the queue
    float floor;    // a score that k documents reach: the threshold at its last read

    __device__ __forceinline__ bool can_enter(float bound) const { return bound * BOUND_SLACK >= floor; }
    // Upper bound of the sum of the terms after a term, and after the driver.
    __device__ __forceinline__ float rest_after(u32 t) const {
        return t + 1 < query.num_terms ? queue.terms[t + 1].rest : 0.0f;
    }
    __device__ __forceinline__ float rest() const { return rest_after(driver); }

    // The least byte of an impact in a block with which a posting may be among the best, at least 1, since free places have 0;
    // 256 if there is none. The floor is lowered by 2^-15, more than the slack, and a hundredth of a step for rounding.
    __device__ __forceinline__ u32 least_impact(float max_impact) const {
        const float own = floor * (1.0f - 1.0f / 32768.0f) - rest();
        const float needed = own / (queue.terms[driver].weight * max_impact) * 255.0f - 0.01f;
        return needed > 1.0f ? min(__float2uint_ru(needed), 256u) : 1;
    }

    // Whether a posting of the driving list may be among the best.
    __device__ __forceinline__ bool posting_can_enter(u32 place) const {
        const Header header(lists.blocks + (queue.terms[driver].first_block + place / BLOCK_LEN));
        const u32 least = least_impact(header.max_impact);
        return least <= 1 || header.impact_at(lists.rows_from(header.row), place % BLOCK_LEN) >= least;
    }

    // Enqueues the postings that may be among the best of up to GROUP blocks. Eight lanes take the block of `header` if
    // `exists`, sixteen postings per lane.
    __device__ __forceinline__ void enqueue(const Header& header, u32 block, bool exists) {
        const u32 part = lane % EIGHTH;
        u32 entering = 0;
        if (exists && part < byte_rows(header.len())) {
            const u32 least = least_impact(header.max_impact);
            if (least > 1) {
                const uint4* rows = reinterpret_cast<const uint4*>(lists.rows_from(header.row));
                const uint4 bytes = __ldg(rows + (header.impact_row() + part));
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
        const u32 first = block * BLOCK_LEN + 16 * part - queue.first_place;
        for (; entering != 0; entering &= entering - 1) {
            queue.places[slot++] = first + __ffs(entering) - 1;
        }
        waiting += __shfl_sync(FULL_WARP, upto, WARP - 1);
        __syncwarp();
    }

    // Bits of the four bytes that reach `least` (1 to 255). The product gathers bits 0, 8, 16 and 24.
    __device__ static __forceinline__ u32 reaching(u32 bytes, u32 least) {
        return (__vcmpgeu4(bytes, least * 0x01010101u) & 0x01010101u) * 0x01020408u >> 24;
    }

    // A list's score of its posting at `position`.
    __device__ __forceinline__ float score_at(const QueryTerm& term, u32 position, float norm) const {
        const Header header(lists.blocks + (term.first_block + position / BLOCK_LEN));
        return posting_score(term.weight, header.freq_at(lists.rows_from(header.row), position % BLOCK_LEN), norm);
    }

    // Removes up to 32 postings from the queue's end and looks them up in the first list after the driver. Those that may still
    // be among the best become survivors. The byte of its impact bounds the posting's own score, which saves most random reads
    // of norms.
    __device__ __forceinline__ void look_up() {
        const u32 count = min(waiting, WARP);
        waiting -= count;
        if (lane == 0) queue.scored += count;
        __syncwarp();
        floor = key_score(read_threshold(state, query.seed));
        bool alive = lane < count;
        u32 doc = 0, place = 0, position = NOT_FOUND;
        if (alive) {
            const QueryTerm& own = queue.terms[driver];
            place = queue.first_place + queue.places[waiting + lane];
            const Header header(lists.blocks + (own.first_block + place / BLOCK_LEN));
            const u32* rows = lists.rows_from(header.row);
            doc = header.doc_at(rows, place % BLOCK_LEN);
            if (driver + 1 < query.num_terms) {
                const QueryTerm& term = queue.terms[driver + 1];
                const float impact = __uint2float_rn(header.impact_at(rows, place % BLOCK_LEN));
                const float bound = own.weight * header.max_impact * impact * IMPACT_STEP;
                alive = can_enter(bound + term.rest);
                if (alive) {
                    position = find_doc(lists, term, doc, bound + rest_after(driver + 1), floor);
                    if (position == NOT_FOUND) alive = !needs_all && can_enter(bound + rest_after(driver + 1));
                }
            }
        }
        const u32 entering = __ballot_sync(FULL_WARP, alive);
        if (alive) queue.survivors[surviving + __popc(entering & (1u << lane) - 1)] = {doc, place, position};
        surviving += __popc(entering);
        __syncwarp();
    }

    // Removes up to 32 survivors and scores them. Those that reach the threshold become candidates.
    __device__ __forceinline__ void score_survivors() {
        const u32 count = min(surviving, WARP);
        surviving -= count;
        floor = key_score(read_threshold(state, query.seed));
        bool alive = lane < count;
        u32 doc = 0;
        float norm = 1.0f, score = 0.0f;
        if (alive) {
            const auto survivor = queue.survivors[surviving + lane];
            doc = survivor.doc;
            norm = __ldg(lists.norms + doc);
            score = score_at(queue.terms[driver], survivor.place, norm);
            if (survivor.position != NOT_FOUND) {
                score = __fadd_rn(score, score_at(queue.terms[driver + 1], survivor.position, norm));
            }
        }
        for (u32 t = driver + 2; t < query.num_terms; ++t) {
            const QueryTerm& term = queue.terms[t];
            alive = alive && can_enter(score + term.rest);
            if (!__any_sync(FULL_WARP, alive)) return;
            if (alive) {
                const u32 position = find_doc(lists, term, doc, score + rest_after(t), floor);
                if (position != NOT_FOUND) score = __fadd_rn(score, score_at(term, position, norm));
                else alive = !needs_all && can_enter(score + rest_after(t));
            }
        }
        alive = alive && score >= floor;
        // The driver of an earlier list scores a document of that list.
        for (u32 t = 0; t < driver; ++t) {
            if (!__any_sync(FULL_WARP, alive)) return;
            if (alive) alive = find_doc(lists, queue.terms[t], doc, 0.0f, 0.0f) == NOT_FOUND;
        }
        if (__any_sync(FULL_WARP, alive)) emit(alive, make_key(score, doc));
    }

    // Makes candidates of documents that reach the current threshold. Counting them first may raise it. A document that is
    // counted and then dropped has k better ones. Candidates without room are counted only, which the host detects.
    __device__ __forceinline__ void emit(bool emits, u64 key) {
        emits = emits && key >= read_threshold(state, query.seed);
        u32 emitting = __ballot_sync(FULL_WARP, emits);
        if (emitting == 0) return;
        if (lane == 0) queue.is_touched = true;
        const u32 found = uniform(num_found(state));
        if (emits) atomicAdd(&state->bins[score_bin(query, key_score(key))], 1);
        // With many results, the histogram is read only after a number of new candidates.
        const u32 step = max(query.k / 8, 1u);
        const u32 more = found + __popc(emitting);
        if (more >= query.k && more / step != found / step) {
            __syncwarp();
            raise_threshold<KEEPS_COUNTS>(state, query, lane);
            __syncwarp();
            emits = emits && key >= read_threshold(state, query.seed);
            emitting = __ballot_sync(FULL_WARP, emits);
            if (emitting == 0) return;
        }
        u32 first = 0;
        if (lane == 0) first = add_found(state, __popc(emitting));
        first = __shfl_sync(FULL_WARP, first, 0);
        const u32 slot = first + __popc(emitting & (1u << lane) - 1);
        if (emits && slot < queue.capacity) queue.candidates[slot] = key;
    }

    // Scores the postings in the queue and those of blocks [next, end) of the driving list. This is the only call of either
    // stage, because both are long code.
    __device__ __forceinline__ void go(u32 next, u32 end) {
        const QueryTerm& term = queue.terms[driver];
        Header own;                // the lane's block, of 32 that are inspected together
        u32 base = 0, left = 0;    // the first of them, and those still to read
        for (;;) {
            while (waiting < WARP && (left != 0 || next < end)) {
                if (left == 0) {
                    bool enters = false;
                    if (next + lane < end) {
                        own = Header(lists.blocks + (term.first_block + next + lane));
                        enters = can_enter(term.weight * own.max_impact + rest());
                    }
                    left = __ballot_sync(FULL_WARP, enters);
                    base = next;
                    next += WARP;
                    continue;
                }
                // The i-th eight lanes take the i-th remaining block, if it exists.
                u32 mine = left;
#pragma unroll
                for (u32 i = 0; i < GROUP; ++i) {
                    if (lane / EIGHTH == i) mine = left;
                    left &= left - 1;
                }
                const u32 source = mine != 0 ? __ffs(mine) - 1 : 0;
                Header header;
                header.row = __shfl_sync(FULL_WARP, own.row, source);
                header.first_doc = 0;
                header.packing = __shfl_sync(FULL_WARP, own.packing, source);
                header.max_impact = __shfl_sync(FULL_WARP, own.max_impact, source);
                enqueue(header, base + source, mine != 0);
            }
            if (waiting != 0) look_up();
            const bool is_last = waiting == 0 && left == 0 && next >= end;
            if (surviving >= WARP || (is_last && surviving != 0)) score_survivors();
            if (is_last && surviving == 0) return;
        }
    }
};

// Copies a query and its terms to shared memory, to save registers.
__device__ __forceinline__ void copy_query(
    const Query& query, bool needs_all, const QueryTerm* terms, u64* candidates, u32 capacity, Queue& queue, u32 lane
) {
    const u32 num_terms = query.num_terms;
    const u32* words = reinterpret_cast<const u32*>(terms);
    for (u32 i = lane; i < num_terms * sizeof(QueryTerm) / sizeof(u32); i += WARP) {
        reinterpret_cast<u32*>(queue.terms)[i] = words[i];
    }
    if (lane == 0) {
        queue.query = query;
        if (needs_all) queue.query.need_all();
        queue.scored = 0;
        queue.is_touched = false;
        queue.capacity = capacity;
        queue.candidates = candidates;
    }
    __syncwarp();
}

// One item of a driver, by one warp.
template <bool KEEPS_COUNTS>
__device__ __forceinline__ void drive_item(
    const Lists& lists, const Query& query, const Driver& driver, u32 item, bool needs_all, Queue& queue, State* state,
    u32 lane
) {
    // Other warps raise the threshold, so lane 0's value counts for the whole warp.
    const float floor = __shfl_sync(FULL_WARP, key_score(read_threshold(state, query.seed)), 0);
    const QueryTerm& term = queue.terms[driver.term];
    const u32 num_blocks = (term.doc_freq + BLOCK_LEN - 1) / BLOCK_LEN;
    Drive<KEEPS_COUNTS> drive = {lists, query, queue, state, driver.term, needs_all, lane, 0, 0, floor};
    if (!drive.can_enter(term.rest)) return;  // the threshold now exceeds everything that this list can begin

    const u32 number = item - driver.first_item;
    u32 next = 0, end = 0;
    if (driver.blocks_an_item == 0) {
        const u32 place = number * WARP + lane;
        const bool enters = place < term.doc_freq && drive.posting_can_enter(place);
        const u32 entering = __ballot_sync(FULL_WARP, enters);
        if (lane == 0) queue.first_place = number * WARP;
        if (enters) queue.places[__popc(entering & (1u << lane) - 1)] = lane;
        drive.waiting = __popc(entering);
    } else {
        next = number * driver.blocks_an_item;
        end = min(next + driver.blocks_an_item, num_blocks);
        if (lane == 0) queue.first_place = next * BLOCK_LEN;
    }
    __syncwarp();
    drive.go(next, end);
}
