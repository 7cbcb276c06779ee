// and.cu: documents with all terms. The shortest list proposes, the others confirm or propose a later document.
// Bound by latency of a thread's cursors. Twin on the host: crates/papers/src/huang/ranges/strategy.rs.

#include "huang/query.cuh"

extern "C" __global__ void __launch_bounds__(RANGE_THREADS, 1) ranges_and(const __grid_constant__ RangeBatch batch) {
    answer_query(batch, [](RangeScan& scan) {
        Owner& owner = scan.owner;
        u32 doc = owner.doc(0);
        while (doc != END_DOC) {
            u32 found = doc;
            for (u32 term = 1; term < owner.num_terms && found == doc; ++term) {
                owner.next_geq(term, doc);
                found = owner.doc(term);
            }
            if (found == END_DOC) return;
            if (found == doc) scan.take(doc);
            else owner.next_geq(0, found);
            doc = owner.doc(0);
        }
    });
}
