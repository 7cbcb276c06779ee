// order.cuh: a thread's cursors in the order of their documents, for WAND and Block-Max WAND. Twin on the host: `Scan` in
// crates/papers/src/huang/ranges/search.rs.
#pragma once

#include "huang/cursor.cuh"
#include "huang/top_k.cuh"

// The term whose cursor is at `place` of the order.
__device__ __forceinline__ u32& ordered(Owner& owner, u32 place) { return owner.word(place, ORDER); }

// Restores the order after a few cursors have moved, by insertion.
__device__ __forceinline__ void restore_order(Owner& owner) {
    for (u32 sorted = 1; sorted < owner.num_terms; ++sorted) {
        const u32 moving = ordered(owner, sorted), doc = owner.doc(moving);
        u32 place = sorted;
        while (place > 0) {
            const u32 before = ordered(owner, place - 1), doc_before = owner.doc(before);
            if (doc_before < doc || (doc_before == doc && before < moving)) break;
            ordered(owner, place) = before;
            place -= 1;
        }
        ordered(owner, place) = moving;
    }
}

// Orders all cursors.
__device__ __forceinline__ void start_order(Owner& owner) {
    for (u32 place = 0; place < owner.num_terms; ++place) ordered(owner, place) = place;
    restore_order(owner);
}

// Whether a document with this score bound may enter, despite rounding.
__device__ __forceinline__ bool would_enter(const ThreadTopK& best, float bound) {
    const float most = __fmul_rn(bound, BOUND_SLACK);
    return most > best.threshold && !best.is_out(most);
}

// The pivot: the first place of the order at which the lists' best scores exceed the threshold, and its document. False if no
// remaining document can enter.
__device__ __forceinline__ bool find_pivot(Owner& owner, const ThreadTopK& best, u32& pivot, u32& doc) {
    float bound = 0.0f;
    for (pivot = 0; pivot < owner.num_terms; ++pivot) {
        const u32 term = ordered(owner, pivot);
        doc = owner.doc(term);
        if (doc == END_DOC) return false;
        bound = __fadd_rn(bound, owner.terms[term].max_score);
        if (would_enter(best, bound)) return true;
    }
    return false;
}

// The cursor of the shortest list among those before a pivot with documents before `doc`. There is one.
__device__ __forceinline__ u32 shortest_behind(Owner& owner, u32 pivot, u32 doc) {
    u32 shortest = ordered(owner, 0);
    for (u32 place = 1; place < pivot; ++place) {
        const u32 term = ordered(owner, place);
        if (owner.doc(term) < doc) shortest = min(shortest, term);
    }
    return shortest;
}
