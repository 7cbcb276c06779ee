// or.cu: documents with any term, with every posting scored, in ascending order.
// Bound by latency of a thread's cursors. Twin on the host: crates/papers/src/huang/ranges/strategy.rs.

#include "huang/query.cuh"

extern "C" __global__ void __launch_bounds__(RANGE_THREADS, 1) ranges_or(const __grid_constant__ RangeBatch batch) {
    answer_query(batch, [](RangeScan& scan) {
        u32 doc = END_DOC;
        for (u32 term = 0; term < scan.owner.num_terms; ++term) doc = min(doc, scan.owner.doc(term));
        while (doc != END_DOC) doc = scan.take(doc);
    });
}
