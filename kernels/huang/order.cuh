// order.cuh: a thread's cursors in the order of their documents, for WAND and Block-Max WAND. Twin on the host: `Scan` in
// crates/papers/src/huang/ranges/search.rs.
//
// A vector of the order holds a term, its document and its best score, which a step reads together.
#pragma once

#include "huang/query.cuh"

struct Entry {
    u32 term;
    u32 doc;
    float max_score;
};

template <class Scan>
struct Order {
    Scan& scan;
    u32 num_terms;
    u32 first;  // vector of the order

    __device__ __forceinline__ Entry at(u32 place) const {
        const uint4 vector = scan.owner.cells.vector(first + place);
        return {vector.x, vector.y, __uint_as_float(vector.z)};
    }

    __device__ __forceinline__ void set(u32 place, const Entry& entry) {
        scan.owner.cells.vector(first + place) = make_uint4(entry.term, entry.doc, __float_as_uint(entry.max_score), 0);
    }

    // Moves an entry from `place` back to where it belongs among the later ones, which are in order.
    __device__ __forceinline__ void settle(u32 place, const Entry& entry) {
#pragma unroll 1
        for (; place + 1 < num_terms; ++place) {
            const Entry after = at(place + 1);
            if (after.doc > entry.doc || (after.doc == entry.doc && after.term > entry.term)) break;
            set(place, after);
        }
        set(place, entry);
    }

    // Orders all cursors, whose documents are in the same vectors; those of later terms are not before their own vectors.
    __device__ __forceinline__ void start() {
        for (u32 term = num_terms; term-- > 0;) {
            const u32 doc = scan.owner.doc(term);
            settle(term, {term, doc, scan.owner.terms[term].max_score});
        }
    }

    // Whether a document with this score bound may enter, despite rounding.
    __device__ __forceinline__ bool would_enter(float bound) const {
        const float most = __fmul_rn(bound, BOUND_SLACK);
        return most > scan.best.threshold && !scan.best.is_out(most);
    }

    // The pivot: the first place of the order at which the lists' best scores exceed the threshold, and its document. False if no
    // remaining document can enter.
    __device__ __forceinline__ bool find_pivot(u32& pivot, u32& doc) const {
        float bound = 0.0f;
#pragma unroll 1
        for (pivot = 0; pivot < num_terms; ++pivot) {
            const Entry entry = at(pivot);
            doc = entry.doc;
            bound = __fadd_rn(bound, entry.max_score);
            // One branch, so that both words are read together.
            if (bool(doc == END_DOC) | would_enter(bound)) return doc != END_DOC;
        }
        return false;
    }

    // The place of the shortest list's cursor among those before a pivot with documents before `doc`. There is one.
    __device__ __forceinline__ u32 shortest_behind(u32 pivot, u32 doc) const {
        u32 shortest = at(0).term, found = 0;
#pragma unroll 1
        for (u32 place = 1; place < pivot; ++place) {
            const Entry entry = at(place);
            if (entry.doc < doc && entry.term < shortest) {
                shortest = entry.term;
                found = place;
            }
        }
        return found;
    }

    // Scores the document of the first cursors and advances these. `moved` becomes the last one's place.
    __device__ __forceinline__ void take(u32 doc, u32& moved) {
        const float norm = scan.norm_of(doc);
        float score = 0.0f;
        // Cursors at one document are in the query's order.
        u32 place = 0;
        Entry entry = at(0);
        do {
            entry.doc = scan.owner.take(entry.term, doc, norm, score);
            set(place++, entry);
            if (place < num_terms) entry = at(place);
        } while (place < num_terms && entry.doc == doc);
        scan.postings_scored += place;
        scan.best.offer(doc, score);
        moved = place - 1;
    }

    // Moves the cursor at `place` to its first document from `target` on.
    __device__ __forceinline__ void next_geq(u32 place, u32 target) {
        Entry entry = at(place);
        entry.doc = scan.owner.next_geq(entry.term, entry.doc, target);
        set(place, entry);
    }

    // Restores the order after the cursors at these places, and no others, have moved.
    __device__ __forceinline__ void restore(u32 begin, u32 last) {
        for (u32 place = last + 1; place-- > begin;) settle(place, at(place));
    }
};

template <class Scan>
__device__ __forceinline__ Order<Scan> start_order(Scan& scan) {
    Order<Scan> order = {scan, scan.owner.num_terms, scan.owner.num_terms * OWN_VECTORS};
    order.start();
    return order;
}
