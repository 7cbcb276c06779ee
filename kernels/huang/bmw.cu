// bmw.cu: Block-Max WAND: WAND that also uses the best scores of the blocks that could hold the pivot's document.
// Bound by latency of a thread's cursors. Twin on the host: crates/papers/src/huang/ranges/strategy.rs.

#include "huang/order.cuh"
#include "huang/query.cuh"

extern "C" __global__ void __launch_bounds__(RANGE_THREADS, 1) ranges_bmw(const __grid_constant__ RangeBatch batch) {
    answer_query(batch, [](RangeScan& scan) {
        Owner& owner = scan.owner;
        start_order(owner);
        u32 pivot, doc;
        while (find_pivot(owner, scan.best, pivot, doc)) {
            // All lists at the document belong to the pivot; `next` is the first document of the others.
            u32 next = END_DOC;
            while (pivot + 1 < owner.num_terms) {
                const u32 after = owner.doc(ordered(owner, pivot + 1));
                if (after != doc) {
                    next = after;
                    break;
                }
                pivot += 1;
            }
            float bound = 0.0f;
            u32 least_end = END_DOC, shortest = END_DOC;
            for (u32 place = 0; place <= pivot; ++place) {
                const u32 term = ordered(owner, place);
                const RangeTerm& list = owner.terms[term];
                const u32 block = owner.look(term, doc);
                shortest = min(shortest, term);
                if (block >= list.num_blocks) continue;
                const uint4 head = __ldg(reinterpret_cast<const uint4*>(list.blocks + block));
                bound = __fadd_rn(bound, __fmul_rn(list.weight, __uint_as_float(head.w)));
                least_end = min(least_end, head.y);
            }
            if (!would_enter(scan.best, bound)) owner.next_geq(shortest, min(next, least_end == END_DOC ? END_DOC : least_end + 1));
            else if (owner.doc(ordered(owner, 0)) == doc) scan.take(doc);
            else owner.next_geq(shortest_behind(owner, pivot, doc), doc);
            restore_order(owner);
        }
    });
}
