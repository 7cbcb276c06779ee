// merge_find.cu: Parallel Merge Find with levels of recursion, after Ding et al. 2009, section 7.
//
// It finds the number of elements of B below each element of A. Without recursion every thread searches all of B. A level of
// recursion first searches splitters of A (every stride-th element). Their results cut B into segments, and the level below
// searches its own segment only. One launch per level, the coarsest first.
// In:   two ascending lists. Out: one place of B per (stride-th) element of A.
// Launch bounds: 256 threads. Bound by latency of dependent reads. Twin on the host: crates/papers/src/ding/gpu/twin.rs.

#include "ding/ding.cuh"

struct Place {
    u32 element;  // of A
    u32 found;    // number of elements of B below it
};

// The place of element number `i` of the level, which must exist.
__device__ __forceinline__ Place find_place(const MergeFind& task, u32 i, u32 num_a) {
    const u32 element = (i + 1) * task.stride - 1;
    u32 low = 0, high = task.num_b.get();
    if (task.coarse != nullptr) {
        const u32 segment = element / task.coarse_stride;
        if (segment != 0) low = task.coarse[segment - 1];
        if (segment < num_a / task.coarse_stride) high = task.coarse[segment];
    }
    return {element, binary_search(task.b, low, high, __ldg(task.a + element))};
}

extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) merge_find(const __grid_constant__ MergeFind task) {
    const u32 num_a = task.num_a.get();
    const u32 i = thread_index();
    if (i < num_a / task.stride) task.found[i] = find_place(task, i, num_a).found;
}

// The last level of an intersection: for each element of A its place in B plus one, or 0 if B lacks it.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) merge_match(const __grid_constant__ MergeFind task) {
    const u32 num_a = task.num_a.get();
    const u32 i = thread_index();
    if (i >= num_a) return;
    const Place place = find_place(task, i, num_a);
    const bool matches = place.found < task.num_b.get() && task.b[place.found] == task.a[place.element];
    task.found[i] = matches ? place.found + 1 : 0;
}
