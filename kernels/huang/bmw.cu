// bmw.cu: Block-Max WAND: WAND that also uses the best scores of the blocks that could hold the pivot's document.
// Warps have few active threads and wait for the slowest range at a barrier. Twin on the host: crates/papers/src/huang/ranges/strategy.rs.

#include "huang/order.cuh"

struct Bmw {
    template <class Scan>
    __device__ __forceinline__ static void run(Scan& scan) {
        auto order = start_order(scan);
        u32 pivot, doc;
        while (order.find_pivot(pivot, doc)) {
            // All lists at the document belong to the pivot; `next` is the first document of the others.
            u32 next = END_DOC;
            while (pivot + 1 < order.num_terms) {
                const u32 after = order.at(pivot + 1).doc;
                if (after != doc) {
                    next = after;
                    break;
                }
                pivot += 1;
            }
            float bound = 0.0f;
            u32 least_end = END_DOC, shortest = END_DOC, begin = 0, last;
            for (u32 place = 0; place <= pivot; ++place) {
                const u32 term = order.at(place).term;
                if (term < shortest) {
                    shortest = term;
                    begin = place;
                }
                uint4 head;
                if (!scan.owner.inspect(term, doc, head)) continue;
                bound = __fadd_rn(bound, __fmul_rn(scan.owner.terms[term].weight, __uint_as_float(head.w)));
                least_end = min(least_end, head.y);
            }
            if (order.would_enter(bound)) {
                if (order.at(0).doc == doc) {
                    begin = 0;
                    order.take(doc, last);
                    order.restore(begin, last);
                    continue;
                }
                begin = order.shortest_behind(pivot, doc);
                next = doc;
            } else {
                next = min(next, least_end == END_DOC ? END_DOC : least_end + 1);
            }
            order.next_geq(begin, next);
            order.restore(begin, begin);
        }
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1) ranges_bmw(const __grid_constant__ RangeBatch batch) {
    answer_query<Bmw>(batch);
}
