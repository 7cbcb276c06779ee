// cursor.cuh: a thread's cursors, one per term, within its range of documents.
//
// Their state is in device memory, word by word for all threads of a query, so that a converged warp reads whole lines: no
// thread indexes an array of its own. Opening a block reads its exceptions only; each document and frequency is then cut out of
// the block's words in place. Twin on the host: crates/papers/src/huang/ranges/cursor.rs.
#pragma once

#include "huang/new_pfd.cuh"

// The words of a cursor.
enum CursorWord : u32 {
    DOC,           // the current document, or END_DOC
    AHEAD,         // the block under inspection
    OPENED,        // the decoded block
    LAST_OPENED,   // greatest document of the decoded block
    PLACE,         // the document's place in the block
    SHAPE,         // bits 0 to 7: width of the documents' slots; 8 to 15: of the frequencies'; 16 to 23: postings; 24: whether
                   // the frequencies have been opened
    DOC_SLOTS,     // first words of slots in the list; for frequencies, their header until they are opened
    FREQ_SLOTS,
    DOC_PLACES,    // places of exceptions, two words each
    DOC_PLACES_HIGH,
    FREQ_PLACES,
    FREQ_PLACES_HIGH,
    DOC_OVERFLOWS,
    FREQ_OVERFLOWS = DOC_OVERFLOWS + MAX_EXCEPTIONS,
    ORDER = FREQ_OVERFLOWS + MAX_EXCEPTIONS,  // terms ordered by document: the term at each place (order.cuh)
};
static_assert(ORDER + 1 == CURSOR_WORDS, "the host makes room for as many");
constexpr u32 HAS_FREQS = 1u << 24;

// A thread with its range and its cursors.
struct Owner {
    u32* state;              // the thread's word of the first cursor; the next word is `stride` further
    const RangeTerm* terms;
    u32 num_terms;
    u32 stride;              // threads of the query
    u32 end;                 // the document after the range
    u32 blocks_decoded;

    __device__ __forceinline__ u32& word(u32 term, u32 which) { return state[(term * CURSOR_WORDS + which) * stride]; }
    __device__ __forceinline__ u32 doc(u32 term) { return word(term, DOC); }

    // The addition of an exception to slot `place` of a column, or 0.
    __device__ __forceinline__ u32 overflow(u32 term, u32 places, u32 overflows, u32 width, u32 place) {
        const u64 mask = static_cast<u64>(word(term, places + 1)) << 32 | word(term, places);
        if ((mask >> place & 1) == 0) return 0;
        return word(term, overflows + __popcll(mask & ((1ull << place) - 1))) << width;
    }

    // Sets the cursor to document `doc` at `place`, or past the range.
    __device__ __forceinline__ void stand(u32 term, u32 place, u32 doc) {
        word(term, PLACE) = place;
        word(term, DOC) = doc < end ? doc : END_DOC;
    }

    // Advances from `doc` at `place` of the decoded block to its first document from `target` on, which must exist.
    __device__ __forceinline__ void scan(u32 term, u32 place, u32 doc, u32 target) {
        const u32* slots = terms[term].words + word(term, DOC_SLOTS);
        const u32 width = word(term, SHAPE) & 0xff;
        const u64 mask = static_cast<u64>(word(term, DOC_PLACES_HIGH)) << 32 | word(term, DOC_PLACES);
        while (doc < target) {
            ++place;
            u32 gap = read_slot(slots, width, place);
            if ((mask >> place & 1) != 0) {
                gap += word(term, DOC_OVERFLOWS + __popcll(mask & ((1ull << place) - 1))) << width;
            }
            doc += gap + 1;
        }
        stand(term, place, doc);
    }

    // Opens the inspected block and moves to its first document from `target` on.
    __device__ __forceinline__ void open(u32 term, u32 target) {
        const RangeTerm& list = terms[term];
        const u32 block = word(term, AHEAD);
        if (block >= list.num_blocks) {
            word(term, DOC) = END_DOC;
            return;
        }
        const uint4 head = __ldg(reinterpret_cast<const uint4*>(list.blocks + block));
        if (head.x >= end) {
            word(term, DOC) = END_DOC;
            return;
        }
        blocks_decoded += 1;
        word(term, OPENED) = block;
        word(term, LAST_OPENED) = head.y;
        const u32 len = min(list.doc_freq - block * RANGE_BLOCK_LEN, RANGE_BLOCK_LEN);
        const u32* words = list.words + head.z;
        const u32 header = __ldg(words + 1);
        const u32 width = header & 0xff, exceptions = header >> 8;
        word(term, DOC_SLOTS) = head.z + 2;
        word(term, FREQ_SLOTS) = head.z + 1 + __ldg(words);
        word(term, SHAPE) = width | len << 16;
        u64 places = 0;
        if (exceptions != 0) {
            places = read_exceptions(words + 2 + (len * width + 31) / 32, exceptions, &word(term, DOC_OVERFLOWS), stride);
        }
        word(term, DOC_PLACES) = static_cast<u32>(places);
        word(term, DOC_PLACES_HIGH) = static_cast<u32>(places >> 32);
        scan(term, 0, head.x, target);
    }

    // Moves AHEAD to the first block whose greatest document is at least `target`, by doubling steps and then bisection.
    __device__ __forceinline__ u32 look(u32 term, u32 target) {
        const RangeTerm& list = terms[term];
        u32 low = word(term, AHEAD), step = 1;
        while (low + step <= list.num_blocks && __ldg(&list.blocks[low + step - 1].greatest) < target) {
            low += step;
            step *= 2;
        }
        u32 high = min(low + step, list.num_blocks);
        while (low < high) {
            const u32 middle = (low + high) / 2;
            if (__ldg(&list.blocks[middle].greatest) < target) low = middle + 1;
            else high = middle;
        }
        word(term, AHEAD) = low;
        return low;
    }

    // Sets the cursor to the first document of the range from `begin` on, by bisection over the whole list.
    __device__ __forceinline__ void start(u32 term, u32 begin) {
        const RangeTerm& list = terms[term];
        u32 low = 0, high = list.num_blocks;
        if (begin >= end) low = high;
        while (low < high) {
            const u32 middle = (low + high) / 2;
            if (__ldg(&list.blocks[middle].greatest) < begin) low = middle + 1;
            else high = middle;
        }
        word(term, AHEAD) = low;
        open(term, begin);
    }

    // Moves to the next document.
    __device__ __forceinline__ void next(u32 term) {
        const u32 shape = word(term, SHAPE);
        const u32 place = word(term, PLACE) + 1;
        if (place < (shape >> 16 & 0xff)) {
            const u32 width = shape & 0xff;
            const u32 gap = read_slot(terms[term].words + word(term, DOC_SLOTS), width, place);
            stand(term, place, word(term, DOC) + 1 + gap + overflow(term, DOC_PLACES, DOC_OVERFLOWS, width, place));
            return;
        }
        // The last inspected block may be a later one.
        word(term, AHEAD) = word(term, OPENED) + 1;
        open(term, 0);
    }

    // Moves to the first document from `target` on, but never backwards.
    __device__ __forceinline__ void next_geq(u32 term, u32 target) {
        const u32 doc = word(term, DOC);
        if (target <= doc) return;
        if (target <= word(term, LAST_OPENED)) {
            scan(term, word(term, PLACE), doc, target);
            return;
        }
        look(term, target);
        open(term, target);
    }

    // The term's score of the current document.
    __device__ __forceinline__ float score(u32 term, float norm) {
        u32 shape = word(term, SHAPE);
        const u32* words = terms[term].words;
        u32 slots = word(term, FREQ_SLOTS);
        if ((shape & HAS_FREQS) == 0) {
            const u32 header = __ldg(words + slots), len = shape >> 16 & 0xff, width = header & 0xff;
            slots += 1;
            u64 places = 0;
            if (header >> 8 != 0) {
                places = read_exceptions(
                    words + slots + (len * width + 31) / 32, header >> 8, &word(term, FREQ_OVERFLOWS), stride
                );
            }
            word(term, FREQ_PLACES) = static_cast<u32>(places);
            word(term, FREQ_PLACES_HIGH) = static_cast<u32>(places >> 32);
            shape |= width << 8 | HAS_FREQS;
            word(term, SHAPE) = shape;
            word(term, FREQ_SLOTS) = slots;
        }
        const u32 width = shape >> 8 & 0xff, place = word(term, PLACE);
        const u32 freq = 1 + read_slot(words + slots, width, place) + overflow(term, FREQ_PLACES, FREQ_OVERFLOWS, width, place);
        return posting_score(terms[term].weight, freq, norm);
    }
};
