// drive.cuh: finds the best documents with all terms (AND) or any term (OR) of a query and reads only parts of its lists.
//
// A warp scans blocks of a driving list and looks up documents that may be among the best in the other lists, one document per
// thread. For AND the shortest list drives, and a document must be found in all others. For OR a list drives if it could bring
// a document among the best by itself and later lists. The first list of a document scores it in the query's order, and the
// document is dropped once its score and the remaining bounds cannot reach the threshold. This is MaxScore (Turtle and Flood,
// 1995), whose essential lists are the driving ones, with lists in ascending order of frequency.
//
// The threshold starts at a score that the host knows k documents to reach, so the first block is already pruned. The bound of
// its impacts skips a block; the byte that bounds its impact skips a posting, sixteen per lane at a time. Then come three stages,
// each of 32 postings that wait in shared memory, which keeps lanes busy:
//
//     look up  their documents are read, and the directory of the next list excludes most of those that it lacks
//     find     the others are looked up in that list, which excludes nearly all of them
//     score    scores are computed, and documents are looked up in all other lists
//
// Small batches and single queries find postings when they look them up: their time is that of reads one after another. What the
// next stage probably reads is prefetched: documents, headers, norms.
// Warps of a thread block share nothing, so __syncwarp is the only barrier.
//
// lone.cu runs a single query, batch.cu many.
//
// Exactness: dropped documents have a bound (sums and products of upper bounds, times a slack for all roundings) below a score
// that k documents reach. The threshold only rises. So the set of candidates depends on timing, but the best k do not. Twin on
// the host: search/cpu/or/exhaustive.rs.
// Limits: MAX_TERMS terms; documents below 2^31; fewer than 2^31 items a launch, of at most 512 blocks each.
// Prefetching the directory of the next list gained nothing.
#pragma once

#include "histogram.cuh"
#include "lists.cuh"

constexpr u32 EIGHTH = 8;                               // lanes that read a block's impacts: 16 postings per lane
constexpr u32 GROUP = WARP / EIGHTH;                    // blocks that a warp reads at a time
constexpr float IMPACT_STEP = 1.00001f / 255.0f;        // one step of an impact's byte, with a margin for rounding
constexpr u32 QUEUE_LEN = WARP - 1 + GROUP * BLOCK_LEN;  // fewer postings than lanes wait while blocks are read
// Fewer postings than lanes wait to be found while others are probed, and fewer survivors than lanes while others are found.
constexpr u32 STACK_LEN = 3 * WARP - 2;

// What a warp knows of its item.
struct Item {
    State* state;
    u32 driver;             // the driving term
    u32 end;                // the end of its blocks
    bool needs_all;
};

// Shared memory of a warp.
struct Queue {
    Query query;
    QueryTerm terms[MAX_TERMS];
    unsigned short places[QUEUE_LEN];  // postings of the driving list: their places less the first one
    struct {                // postings to find, from the beginning on, and survivors, from the end on
        u32 doc;
        u32 place;          // in the driving list
        u32 next;           // of a posting to find: the bits of the bound of its score, or IS_ABSENT;
                            // of a survivor: its position in the list after the driving one, or NOT_FOUND
    } stack[STACK_LEN];
    u32 first_place;        // the item's first place in the driving list
    bool is_touched;        // whether the warp wrote to the state
    u32 scored;             // scored postings
    u32 capacity;           // capacity for candidates
    u64* candidates;
    Item item;              // with PROBES
};

// The sign of a bound: the list after the driving one lacks the document.
constexpr u32 IS_ABSENT = 1u << 31;

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

constexpr u32 FIND_BIT = 16, SURVIVOR_BIT = 24;  // of the counts of a Drive

// The scan of a list by a warp. IS_LONE is for single queries, whose items find documents at the same time: one raises the
// threshold, the others wait. With PROBES, which is for many queries, more warps are resident: the counts of the queues share a
// register, and the item is in shared memory.
template <bool IS_LONE, bool PROBES>
struct Drive {
    const Lists& lists;
    const Query& query;
    Queue& queue;
    const Item& item;
    u32 lane;
    u32 counts;     // of postings in the queue, from bit 16 of postings to find, from bit 24 of survivors
    float floor;    // a score that k documents reach: the threshold at its last read

    __device__ __forceinline__ u32 waiting() const { return counts & 0xffff; }
    __device__ __forceinline__ u32 to_find() const { return counts >> FIND_BIT & 0xff; }
    __device__ __forceinline__ u32 surviving() const { return counts >> SURVIVOR_BIT; }

    __device__ __forceinline__ bool can_enter(float bound) const { return bound * BOUND_SLACK >= floor; }
    // Upper bound of the sum of the terms after a term, and after the driver.
    __device__ __forceinline__ float rest_after(u32 t) const {
        return t + 1 < query.num_terms ? queue.terms[t + 1].rest : 0.0f;
    }
    __device__ __forceinline__ float rest() const { return rest_after(item.driver); }

    // The least byte of an impact in a block with which a posting may be among the best, at least 1, since free places have 0;
    // 256 if there is none. The floor is lowered by 2^-15, more than the slack, and a hundredth of a step for rounding.
    __device__ __forceinline__ u32 least_impact(float max_impact) const {
        const float own = floor * (1.0f - 1.0f / 32768.0f) - rest();
        const float needed = __fdividef(own, queue.terms[item.driver].weight * max_impact) * 255.0f - 0.01f;
        return needed > 1.0f ? min(__float2uint_ru(needed), 256u) : 1;
    }

    // Whether a posting of the driving list may be among the best.
    __device__ __forceinline__ bool posting_can_enter(u32 place) const {
        const Header header(lists.blocks + (queue.terms[item.driver].first_block + place / BLOCK_LEN));
        const u32 least = least_impact(header.max_impact);
        if (least > 255) return false;
        header.prefetch_doc(lists.rows_from(header.row), place % BLOCK_LEN);
        return least <= 1 || header.impact_at(lists.rows_from(header.row), place % BLOCK_LEN) >= least;
    }

    // Enqueues the postings that may be among the best of up to GROUP blocks. Eight lanes take one block, if it `exists`, sixteen
    // postings per lane.
    __device__ __forceinline__ void enqueue(u32 block, bool exists) {
        const u32 part = lane % EIGHTH;
        u32 entering = 0;
        if (exists) {
            const Header header(lists.blocks + (queue.terms[item.driver].first_block + block));
            const u32 least = least_impact(header.max_impact);
            if (least <= 255 && part < byte_rows(header.len())) {
                if (least > 1) {
                    const uint4* rows = reinterpret_cast<const uint4*>(lists.rows_from(header.row));
                    const uint4 bytes = __ldg(rows + (header.impact_row() + part));
                    entering = reaching(bytes.x, least) | reaching(bytes.y, least) << 4 | reaching(bytes.z, least) << 8 |
                               reaching(bytes.w, least) << 12;
                } else {
                    entering = 0xffffu >> (16 - min(header.len() - 16 * part, 16u));
                }
                if (entering != 0) header.prefetch_doc(lists.rows_from(header.row), 16 * part);
            }
        }
        const u32 count = __popc(entering);
        const u32 upto = warp_prefix(count, lane);
        u32 slot = waiting() + upto - count;
        const u32 first = block * BLOCK_LEN + 16 * part - queue.first_place;
        for (; entering != 0; entering &= entering - 1) {
            queue.places[slot++] = first + __ffs(entering) - 1;
        }
        counts += __shfl_sync(FULL_WARP, upto, WARP - 1);
        __syncwarp();
    }

    // Bits of the four bytes that reach `least` (1 to 255). The product gathers bits 0, 8, 16 and 24.
    __device__ static __forceinline__ u32 reaching(u32 bytes, u32 least) {
        return (__vcmpgeu4(bytes, least * 0x01010101u) & 0x01010101u) * 0x01020408u >> 24;
    }

    // A list's score of `doc`, its posting at `position`. The norm is read each time, since registers are scarce.
    __device__ __forceinline__ float score_at(const QueryTerm& term, u32 position, u32 doc) const {
        const Header header(lists.blocks + (term.first_block + position / BLOCK_LEN));
        const float norm = __ldg(lists.norms + doc);
        return posting_score(term.weight, header.freq_at(lists.rows_from(header.row), position % BLOCK_LEN), norm);
    }

    // Removes up to 32 postings from the queue's end. With PROBES, it looks for them in the directory of the first list after the
    // driver, and those that may still be among the best are to be found. Otherwise it finds them at once, and they become
    // survivors. The byte of its impact bounds the posting's own score, which saves most random reads of norms.
    __device__ __forceinline__ void look_up() {
        const u32 count = min(waiting(), WARP);
        counts -= count;
        if (lane == 0) queue.scored += count;
        __syncwarp();
        floor = key_score(read_threshold(item.state, query.seed));
        bool alive = lane < count;
        u32 doc = 0, place = 0, next = PROBES ? 0 : NOT_FOUND;
        if (alive) {
            const QueryTerm& own = queue.terms[item.driver];
            place = queue.first_place + queue.places[waiting() + lane];
            const Header header(lists.blocks + (own.first_block + place / BLOCK_LEN));
            const u32* rows = lists.rows_from(header.row);
            doc = header.doc_at(rows, place % BLOCK_LEN);
            if (item.driver + 1 < query.num_terms) {
                const QueryTerm& term = queue.terms[item.driver + 1];
                const float impact = __uint2float_rn(header.impact_at(rows, place % BLOCK_LEN));
                const float bound = own.weight * header.max_impact * impact * IMPACT_STEP;
                alive = can_enter(bound + term.rest);
                if (PROBES) next = __float_as_uint(bound);
                if (alive) {
                    bool is_absent;
                    if (PROBES) {
                        is_absent = !may_have(lists, term, doc);
                        if (is_absent) next |= IS_ABSENT;
                    } else {
                        next = find_doc(lists, term, doc, bound + rest_after(item.driver + 1), floor);
                        is_absent = next == NOT_FOUND;
                    }
                    if (is_absent) alive = !item.needs_all && can_enter(bound + rest_after(item.driver + 1));
                }
            }
        }
        if (!PROBES && alive) prefetch(lists.norms + doc);
        const u32 entering = __ballot_sync(FULL_WARP, alive);
        const u32 before = __popc(entering & (1u << lane) - 1);
        if (alive) queue.stack[PROBES ? to_find() + before : STACK_LEN - 1 - surviving() - before] = {doc, place, next};
        counts += __popc(entering) << (PROBES ? FIND_BIT : SURVIVOR_BIT);
        __syncwarp();
    }

    // Removes up to 32 postings to find and finds them in the first list after the driver, if there is one. Those that may still
    // be among the best become survivors.
    __device__ __forceinline__ void find() {
        const u32 count = min(to_find(), WARP);
        counts -= count << FIND_BIT;
        floor = key_score(read_threshold(item.state, query.seed));
        bool alive = lane < count;
        u32 doc = 0, place = 0, position = NOT_FOUND;
        if (alive) {
            const auto posting = queue.stack[to_find() + lane];
            doc = posting.doc;
            place = posting.place;
            if (item.driver + 1 < query.num_terms) {
                const float others = __uint_as_float(posting.next & ~IS_ABSENT) + rest_after(item.driver + 1);
                if ((posting.next & IS_ABSENT) == 0) position = find_doc(lists, queue.terms[item.driver + 1], doc, others, floor);
                if (position == NOT_FOUND) alive = !item.needs_all && can_enter(others);
            }
        }
        if (alive) prefetch(lists.norms + doc);
        const u32 entering = __ballot_sync(FULL_WARP, alive);
        __syncwarp();
        if (alive) {
            const u32 before = surviving() + __popc(entering & (1u << lane) - 1);
            queue.stack[STACK_LEN - 1 - before] = {doc, place, position};
        }
        counts += __popc(entering) << SURVIVOR_BIT;
        __syncwarp();
    }

    // Removes up to 32 survivors and scores them. Those that reach the threshold become candidates.
    __device__ __forceinline__ void score_survivors() {
        const u32 count = min(surviving(), WARP);
        counts -= count << SURVIVOR_BIT;
        floor = key_score(read_threshold(item.state, query.seed));
        bool alive = lane < count;
        u32 doc = 0;
        float score = 0.0f;
        if (alive) {
            const auto survivor = queue.stack[STACK_LEN - 1 - surviving() - lane];
            doc = survivor.doc;
            score = score_at(queue.terms[item.driver], survivor.place, doc);
            if (survivor.next != NOT_FOUND) score = __fadd_rn(score, score_at(queue.terms[item.driver + 1], survivor.next, doc));
        }
        for (u32 t = item.driver + 2; t < query.num_terms; ++t) {
            const QueryTerm& term = queue.terms[t];
            alive = alive && can_enter(score + term.rest);
            if (!__any_sync(FULL_WARP, alive)) return;
            if (alive) {
                const u32 position = find_doc(lists, term, doc, score + rest_after(t), floor);
                if (position != NOT_FOUND) score = __fadd_rn(score, score_at(term, position, doc));
                else alive = !item.needs_all && can_enter(score + rest_after(t));
            }
        }
        alive = alive && score >= floor;
        // The driver of an earlier list scores a document of that list.
        for (u32 t = 0; t < item.driver; ++t) {
            if (!__any_sync(FULL_WARP, alive)) return;
            if (alive) alive = find_doc(lists, queue.terms[t], doc, 0.0f, 0.0f) == NOT_FOUND;
        }
        if (__any_sync(FULL_WARP, alive)) emit(alive, make_key(score, doc));
    }

    // Makes candidates of documents that reach the current threshold. Counting them first may raise it. A document that is
    // counted and then dropped has k better ones. Candidates without room are counted only, which the host detects.
    __device__ __forceinline__ void emit(bool emits, u64 key) {
        emits = emits && key >= read_threshold(item.state, query.seed);
        u32 emitting = __ballot_sync(FULL_WARP, emits);
        if (emitting == 0) return;
        if (lane == 0) queue.is_touched = true;
        const u32 found = uniform(num_found(item.state));
        if (emits) count_in_bin(item.state, score_bin(query, key_score(key)));
        // With many results, the histogram is read only after a number of new candidates.
        const u32 step = max(query.k / 8, 1u);
        const u32 more = found + __popc(emitting);
        if (more >= query.k && more / step != found / step) {
            __syncwarp();
            if (IS_LONE) raise_in_turn(item.state, query, lane);
            else raise_threshold<false>(item.state, query, lane);
            __syncwarp();
            emits = emits && key >= read_threshold(item.state, query.seed);
            emitting = __ballot_sync(FULL_WARP, emits);
            if (emitting == 0) return;
        }
        u32 first = 0;
        if (lane == 0) first = add_found(item.state, __popc(emitting));
        first = __shfl_sync(FULL_WARP, first, 0);
        const u32 slot = first + __popc(emitting & (1u << lane) - 1);
        if (emits && slot < queue.capacity) queue.candidates[slot] = key;
    }

    // Scores the postings in the queue and those of the item's blocks from `next` on. This is the only call of each stage,
    // because all are long code.
    __device__ __forceinline__ void go(u32 next) {
        const QueryTerm& term = queue.terms[item.driver];
        u32 left = 0;  // of the 32 blocks before `next`, which are inspected together, those that are still to read
        for (;;) {
            while (waiting() < WARP && (left != 0 || next < item.end)) {
                if (left == 0) {
                    bool enters = false;
                    if (next + lane < item.end) {
                        const float max_impact = __ldg(&lists.blocks[term.first_block + next + lane].max_impact);
                        enters = can_enter(term.weight * max_impact + rest());
                    }
                    left = __ballot_sync(FULL_WARP, enters);
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
                enqueue(next - WARP + source, mine != 0);
            }
            if (waiting() != 0) look_up();
            const bool all_looked_up = waiting() == 0 && left == 0 && next >= item.end;
            if (PROBES && (to_find() >= WARP || (all_looked_up && to_find() != 0))) find();
            const bool all_found = all_looked_up && to_find() == 0;
            if (surviving() >= WARP || (all_found && surviving() != 0)) score_survivors();
            if (all_found && surviving() == 0) return;
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
template <bool IS_LONE, bool PROBES>
__device__ __forceinline__ void drive_item(
    const Lists& lists, const Query& query, const Driver& driver, u32 item, bool needs_all, Queue& queue, State* state,
    u32 lane
) {
    const QueryTerm& term = queue.terms[driver.term];
    const u32 number = item - driver.first_item, each = driver.blocks_an_item;
    const u32 num_blocks = (term.doc_freq + BLOCK_LEN - 1) / BLOCK_LEN;
    const u32 next = each == 0 ? 0 : number * each;
    const Item own = {state, driver.term, each == 0 ? 0 : min(next + each, num_blocks), needs_all};
    if (lane == 0) {
        if (PROBES) queue.item = own;
        queue.first_place = each == 0 ? number * WARP : next * BLOCK_LEN;
    }
    __syncwarp();
    // Other warps raise the threshold, so lane 0's value counts for the whole warp.
    const float floor = __shfl_sync(FULL_WARP, key_score(read_threshold(state, query.seed)), 0);
    Drive<IS_LONE, PROBES> drive = {lists, query, queue, PROBES ? queue.item : own, lane, 0, floor};
    if (!drive.can_enter(term.rest)) return;  // the threshold now exceeds everything that this list can begin

    if (each == 0) {
        const u32 place = number * WARP + lane;
        const bool enters = place < term.doc_freq && drive.posting_can_enter(place);
        const u32 entering = __ballot_sync(FULL_WARP, enters);
        if (enters) queue.places[__popc(entering & (1u << lane) - 1)] = lane;
        drive.counts = __popc(entering);
        __syncwarp();
    }
    drive.go(next);
}
