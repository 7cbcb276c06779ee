// wand.cu: OR that skips documents excluded by the lists' best scores.
// Bound by latency of a thread's cursors. Twin on the host: crates/papers/src/huang/ranges/strategy.rs.


#include "huang/order.cuh"
#include "huang/query.cuh"

extern "C" __global__ void __launch_bounds__(RANGE_THREADS, 1) ranges_wand(const __grid_constant__ RangeBatch batch) {
    answer_query(batch, [](RangeScan& scan) {
        Owner& owner = scan.owner;
        start_order(owner);
        u32 pivot, doc;
        while (find_pivot(owner, scan.best, pivot, doc)) {
            if (owner.doc(ordered(owner, 0)) == doc) scan.take(doc);
            else owner.next_geq(shortest_behind(owner, pivot, doc), doc);
            restore_order(owner);
        }
    });
}
