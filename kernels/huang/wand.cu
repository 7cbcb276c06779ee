// wand.cu: OR that skips documents excluded by the lists' best scores.
// Warps have few active threads and wait for the slowest range at a barrier. Twin on the host: crates/papers/src/huang/ranges/strategy.rs.

#include "huang/order.cuh"

struct Wand {
    template <class Scan>
    __device__ __forceinline__ static void run(Scan& scan) {
        auto order = start_order(scan);
        u32 pivot, doc;
        while (order.find_pivot(pivot, doc)) {
            u32 begin = 0, last;
            if (order.at(0).doc == doc) {
                order.take(doc, last);
            } else {
                begin = last = order.shortest_behind(pivot, doc);
                order.next_geq(begin, doc);
            }
            order.restore(begin, last);
        }
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1) ranges_wand(const __grid_constant__ RangeBatch batch) {
    answer_query<Wand>(batch);
}
