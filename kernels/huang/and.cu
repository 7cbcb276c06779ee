// and.cu: documents with all terms. The shortest list proposes, the others confirm or propose a later document.
// Warps have few active threads and wait for the slowest range at a barrier. Twin on the host: crates/papers/src/huang/ranges/strategy.rs.

#include "huang/query.cuh"

// Threads of a warp are kept together: in a round each of them moves one cursor, whichever term it is of.
struct And {
    template <class Scan>
    __device__ __forceinline__ static void run(Scan& scan) {
        auto& owner = scan.owner;
        // Cursors before `term` are at `doc`.
        u32 doc = owner.doc(0), term = 1;
        while (doc != END_DOC) {
            if (term >= owner.num_terms) {
                const float norm = scan.norm_of(doc);
                float score = 0.0f;
                for (term = 0; term < owner.num_terms; ++term) owner.doc(term) = owner.take(term, doc, norm, score);
                scan.postings_scored += owner.num_terms;
                scan.best.offer(doc, score);
                doc = owner.doc(0);
                term = 1;
            }
            if (term < owner.num_terms && doc != END_DOC) {
                const u32 found = owner.next_geq(term, owner.doc(term), doc);
                owner.doc(term) = found;
                if (found == doc) term += 1;
                else term = term == 0 ? 1 : 0;
                doc = found;
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1) ranges_and(const __grid_constant__ RangeBatch batch) {
    answer_query<And>(batch);
}
