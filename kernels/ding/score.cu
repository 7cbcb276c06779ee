// score.cu: BM25 one term at a time, after Ding et al. 2009, sections 8.2 and 8.3.
//
// score_candidates fetches single frequencies: the slot at its fixed place, and the overflow if the place is an exception.
// accumulate adds a whole list to one accumulator per document. Both add terms in launch order and round like Bm25::score, so
// scores have the host's bits.
// In:   a term's frequencies, packed or decoded, and their documents. Out: scores of candidates or by document.
// Launch bounds: 256 threads. Bound by latency and by scattered reads. Twin on the host: search/cpu/or/exhaustive.rs.

#include "ding/ding.cuh"

// A single value of an array without gaps.
__device__ __forceinline__ u32 value_at(const PforArray& array, u32 place) {
    u32 value = read_slot(array.slots, array.width, array.len, place) + 1;
    if (array.num_exceptions != 0) {
        const u32 block = place / PFOR_BLOCK_LEN;
        const u32 end = array.starts[block + 1];
        const u32 exception = binary_search(array.positions, array.starts[block], end, place);
        if (exception < end && array.positions[exception] == place) value += array.overflows[exception] << array.width;
    }
    return value;
}

// Adds one term to the candidates' scores. `places` are theirs in the term's list; null: candidate i is posting i.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) score_candidates(
    const __grid_constant__ PforArray freqs, const u32* docs, const u32* places, const __grid_constant__ Count num_docs,
    const float* norms, float weight, u32 is_first, float* scores
) {
    const u32 i = thread_index();
    if (i >= num_docs.get()) return;
    const u32 freq = value_at(freqs, places == nullptr ? i : places[i]);
    const float score = posting_score(weight, freq, __ldg(norms + docs[i]));
    scores[i] = is_first != 0 ? score : __fadd_rn(scores[i], score);
}

// Sets every accumulator to NO_SCORE.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) clear_accumulators(float* accumulators, u32 num_docs) {
    const u32 first = 4 * thread_index();
    const float none = __uint_as_float(NO_SCORE);
    if (first + 3 < num_docs) {
        *reinterpret_cast<float4*>(accumulators + first) = make_float4(none, none, none, none);
    } else {
        for (u32 i = first; i < num_docs; ++i) accumulators[i] = none;
    }
}

// Adds one term. No document occurs twice in its list, so no atomics are needed.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) accumulate(
    const u32* docs, const u32* freqs, u32 len, const float* norms, float weight, float* accumulators
) {
    const u32 i = thread_index();
    if (i >= len) return;
    const u32 doc = docs[i];
    const float score = posting_score(weight, freqs[i], __ldg(norms + doc));
    accumulators[doc] = __fadd_rn(accumulators[doc], score);
}
