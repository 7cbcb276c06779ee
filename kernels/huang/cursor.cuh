// cursor.cuh: a thread's cursors, one per term, within its range of documents.
//
// A cursor is some vectors of four words, in shared memory if it has room for those of all threads, else in device memory. What
// one step needs lies together, because a step waits for one read after another. Opening a block reads its exceptions only; each
// document and frequency is then cut out of the block's words in place. Twin on the host:
// crates/papers/src/huang/ranges/cursor.rs.
#pragma once

#include "huang/new_pfd.cuh"

// The vectors of a cursor.
enum CursorVector : u32 {
    SLOTS,      // x, in bytes: the document's place in the block, with HAS_FREQS; width of the documents' slots; width of the
                // frequencies'; postings. y, z: address of the documents' slots. w: words from there to the frequencies' slots,
                // or to their header until they are opened
    PLACES,     // places of exceptions: two words of the documents, two of the frequencies
    BLOCKS,     // x: the decoded block. y: the block under inspection. z: greatest document of the decoded block
    OVERFLOWS,  // of the documents' exceptions, then of the frequencies', each in its place above the slot
    OWN_VECTORS = OVERFLOWS + 2 * MAX_EXCEPTIONS / 4,
};
// After the cursors of all terms, one more vector each: their documents, as single words, or their order (order.cuh).
static_assert(OWN_VECTORS + 1 == CURSOR_VECTORS && 2 * MAX_EXCEPTIONS % 4 == 0, "the host makes room for as many");
constexpr u32 HAS_FREQS = 0x80;  // whether the frequencies of the decoded block have been opened
constexpr u32 SCANNED = 4;       // documents of a block that are read at once

extern __shared__ __align__(16) uint4 shared_vectors[];

// A thread's vectors in shared memory.
struct SharedCells {
    u32 first;

    __device__ __forceinline__ uint4& vector(u32 place) const { return shared_vectors[first + place]; }
    // Word `i` from a vector on.
    __device__ __forceinline__ u32& word(u32 place, u32 i) const {
        return reinterpret_cast<u32*>(shared_vectors)[(first + place) * 4 + i];
    }
};

// A thread's vectors in device memory, between those of the query's other threads, so that a converged warp reads whole lines.
struct DeviceCells {
    uint4* first;
    u32 stride;

    __device__ __forceinline__ uint4& vector(u32 place) const { return first[place * stride]; }
    __device__ __forceinline__ u32& word(u32 place, u32 i) const { return reinterpret_cast<u32*>(&vector(place + i / 4))[i % 4]; }
};

// Brings the words at a global address nearer.
__device__ __forceinline__ void prefetch(const u32* words) {
    asm volatile("prefetch.global.L1 [%0];" ::"l"(__cvta_generic_to_global(words)));
}

__device__ __forceinline__ u64 as_mask(u32 low, u32 high) { return static_cast<u64>(high) << 32 | low; }
__device__ __forceinline__ u32 byte_of(u32 word, u32 byte) { return __byte_perm(word, 0, 0x4440 + byte); }
__device__ __forceinline__ const u32* slots_of(uint4 slots) { return reinterpret_cast<const u32*>(as_mask(slots.y, slots.z)); }

// A thread with its range and its cursors.
template <class Cells>
struct Owner {
    Cells cells;
    const RangeTerm* terms;
    u32 num_terms;
    u32 end;                 // the document after the range
    u32 blocks_decoded;

    // The document of a term's cursor, or END_DOC, for strategies that keep no order.
    __device__ __forceinline__ u32& doc(u32 term) { return cells.word(num_terms * OWN_VECTORS, term); }

    // Those of four terms from a multiple of four on, where END_DOC follows the last one.
    __device__ __forceinline__ uint4 docs(u32 term) const { return cells.vector(num_terms * OWN_VECTORS + term / 4); }

    // The overflow of a cursor's exception; those of frequencies follow those of documents.
    __device__ __forceinline__ u32& overflow(u32 cursor, u32 number) { return cells.word(cursor + OVERFLOWS, number); }

    // Reads the exceptions of a column of `width` bits from `words` on. The overflows of a cursor begin at `first`.
    __device__ __forceinline__ u64 open_exceptions(const u32* words, u32 count, u32 cursor, u32 first, u32 width) {
        return read_exceptions(words, count, [&](u32 number, u32 value) { overflow(cursor, first + number) = value << width; });
    }

    // Opens a block at its first posting. Returns this one's document, or END_DOC past the list or the range.
    __device__ __forceinline__ u32 open(u32 term, u32 block) {
        const RangeTerm& list = terms[term];
        if (block >= list.num_blocks) return END_DOC;
        const RangeBlock* heads = list.blocks + block;
        const uint4 head = __ldg(reinterpret_cast<const uint4*>(heads));
        if (head.x >= end) return END_DOC;
        // The next block is probably needed soon.
        if (block + 1 < list.num_blocks) prefetch(list.words + __ldg(&heads[1].offset));
        blocks_decoded += 1;
        const u32 cursor = term * OWN_VECTORS;
        const u32 len = min(list.doc_freq - block * RANGE_BLOCK_LEN, RANGE_BLOCK_LEN);
        const u32* words = list.words + head.z;
        const u32 column = __ldg(words), header = __ldg(words + 1);
        const u32 width = header & 0xff, exceptions = header >> 8;
        const u64 address = reinterpret_cast<u64>(words + 2);
        u64 places = 0;
        if (exceptions != 0) places = open_exceptions(words + 2 + (len * width + 31) / 32, exceptions, cursor, 0, width);
        cells.vector(cursor + SLOTS) = make_uint4(
            width << 8 | len << 24, static_cast<u32>(address), static_cast<u32>(address >> 32), column - 1
        );
        cells.vector(cursor + PLACES) = make_uint4(static_cast<u32>(places), static_cast<u32>(places >> 32), 0, 0);
        cells.vector(cursor + BLOCKS) = make_uint4(block, block, head.y, 0);
        return head.x;
    }

    // Opens the frequencies of the decoded block, of whose vectors it gets copies.
    __device__ __forceinline__ void open_freqs(u32 cursor, uint4& slots, uint4& places) {
        const u32* words = slots_of(slots) + slots.w;
        const u32 header = __ldg(words), width = header & 0xff, exceptions = header >> 8, len = byte_of(slots.x, 3);
        slots.x |= width << 16 | HAS_FREQS;
        slots.w += 1;
        if (exceptions != 0) {
            const u64 found = open_exceptions(words + 1 + (len * width + 31) / 32, exceptions, cursor, MAX_EXCEPTIONS, width);
            places.z = static_cast<u32>(found);
            places.w = static_cast<u32>(found >> 32);
            cells.vector(cursor + PLACES) = places;
        }
        cells.vector(cursor + SLOTS) = slots;
    }

    // The first document from `target` on in the decoded block, which has one, from the current place with `doc` on.
    __device__ __forceinline__ u32 scan(u32 cursor, u32 doc, u32 target) {
        const uint4 slots = cells.vector(cursor + SLOTS);
        const u32 width = byte_of(slots.x, 1), before = slots.x & 0x7f;
        const u64 places = as_mask(cells.word(cursor + PLACES, 0), cells.word(cursor + PLACES, 1));
        u64 rest = places >> before >> 1;
        u32 place = before, next = __popcll(places) - __popcll(rest), bit = before * width;
        while (doc < target) {
            u32 gaps[SCANNED];
#pragma unroll
            for (u32 i = 0; i < SCANNED; ++i) gaps[i] = read_slot(slots_of(slots), bit + (i + 1) * width, width);
#pragma unroll
            for (u32 i = 0; i < SCANNED; ++i) {
                if ((rest >> i & 1) != 0) gaps[i] += overflow(cursor, next++);
            }
#pragma unroll
            for (u32 i = 0; i < SCANNED; ++i) {
                if (doc < target) {
                    doc += gaps[i] + 1;
                    place += 1;
                }
            }
            rest >>= SCANNED;
            bit += SCANNED * width;
        }
        cells.word(cursor + SLOTS, 0) = slots.x + (place - before);
        return doc < end ? doc : END_DOC;
    }

    // Whether block `place` of a list ends before `target`.
    __device__ __forceinline__ static bool ends_before(const RangeTerm& list, u32 place, u32 target) {
        return place < list.num_blocks && __ldg(&list.blocks[place].greatest) < target;
    }

    // The first block from `low` on, and up to `high`, whose greatest document is at least `target`. Each round reads three.
    __device__ __forceinline__ static u32 bisect(const RangeTerm& list, u32 low, u32 high, u32 target) {
        while (low < high) {
            const u32 len = high - low, a = low + len / 4, b = low + len / 2, c = low + len / 4 + len / 2;
            const bool before_a = ends_before(list, a, target), before_b = ends_before(list, b, target),
                       before_c = ends_before(list, c, target);
            low = before_c ? c + 1 : before_b ? b + 1 : before_a ? a + 1 : low;
            high = before_c ? high : before_b ? c : before_a ? b : a;
        }
        return low;
    }

    // The same without a bound, by steps that grow.
    __device__ __forceinline__ static u32 look(const RangeTerm& list, u32 low, u32 target) {
        for (u32 step = 1;; step *= 64) {
            const u32 a = low + step - 1, b = low + 4 * step - 1, c = low + 16 * step - 1;
            const bool before_a = ends_before(list, a, target), before_b = ends_before(list, b, target);
            if (!ends_before(list, c, target)) {
                low = before_b ? b + 1 : before_a ? a + 1 : low;
                return bisect(list, low, min(before_b ? c : before_a ? b : a, list.num_blocks), target);
            }
            low = c + 1;
        }
    }

    // Inspects the block of `target`, without opening it: reads its entry of the list. False if there is none.
    __device__ __forceinline__ bool inspect(u32 term, u32 target, uint4& head) {
        const RangeTerm& list = terms[term];
        const u32 ahead = cells.word(term * OWN_VECTORS + BLOCKS, 1);
        if (ahead < list.num_blocks) {
            head = __ldg(reinterpret_cast<const uint4*>(list.blocks + ahead));
            if (head.y >= target) return true;
        }
        const u32 found = look(list, ahead, target);
        cells.word(term * OWN_VECTORS + BLOCKS, 1) = found;
        if (found == list.num_blocks) return false;
        head = __ldg(reinterpret_cast<const uint4*>(list.blocks + found));
        return true;
    }

    // Sets the cursor to the first document of the range from `begin` on.
    __device__ __forceinline__ u32 start(u32 term, u32 begin) {
        if (begin >= end) return END_DOC;
        const u32 doc = open(term, bisect(terms[term], 0, terms[term].num_blocks, begin));
        return doc == END_DOC ? END_DOC : scan(term * OWN_VECTORS, doc, begin);
    }

    // Moves from `doc` to the first document from `target` on, but never backwards.
    __device__ __forceinline__ u32 next_geq(u32 term, u32 doc, u32 target) {
        if (target <= doc) return doc;
        const uint4 blocks = cells.vector(term * OWN_VECTORS + BLOCKS);
        if (target > blocks.z) {
            doc = open(term, look(terms[term], max(blocks.x + 1, blocks.y), target));
            if (doc == END_DOC) return END_DOC;
        }
        return scan(term * OWN_VECTORS, doc, target);
    }

    // Adds the term's score of `doc`, the current document, and moves to the next one. Both are read at once.
    __device__ __forceinline__ u32 take(u32 term, u32 doc, float norm, float& score) {
        const u32 cursor = term * OWN_VECTORS;
        uint4 slots = cells.vector(cursor + SLOTS), places = cells.vector(cursor + PLACES);
        if ((slots.x & HAS_FREQS) == 0) open_freqs(cursor, slots, places);
        const u32 place = slots.x & 0x7f, next = place + 1;
        const u32 width = byte_of(slots.x, 1), freq_width = byte_of(slots.x, 2);
        u32 gap = read_slot(slots_of(slots), next * width, width);
        u32 freq = read_slot(slots_of(slots) + slots.w, place * freq_width, freq_width);
        const u64 freqs = as_mask(places.z, places.w), freqs_on = freqs >> place;
        if ((freqs_on & 1) != 0) freq += overflow(cursor, MAX_EXCEPTIONS + __popcll(freqs) - __popcll(freqs_on));
        score = __fadd_rn(score, posting_score(terms[term].weight, freq + 1, norm));
        if (next == slots.x >> 24) return open(term, cells.word(cursor + BLOCKS, 0) + 1);
        const u64 docs = as_mask(places.x, places.y), docs_on = docs >> place >> 1;
        if ((docs_on & 1) != 0) gap += overflow(cursor, __popcll(docs) - __popcll(docs_on));
        cells.word(cursor + SLOTS, 0) = slots.x + 1;
        doc += gap + 1;
        return doc < end ? doc : END_DOC;
    }
};
