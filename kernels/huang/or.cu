// or.cu: documents with any term, with every posting scored, in ascending order.
// Warps have few active threads and wait for the slowest range at a barrier. Twin on the host: crates/papers/src/huang/ranges/strategy.rs.

#include "huang/query.cuh"

// Threads of a warp are kept together: in a round each of them scores one posting, whichever term and document it is of.
struct Or {
    // The first term with the least of all documents, which `least` becomes. Four documents are read at once.
    template <class Cells>
    __device__ __forceinline__ static u32 first_of(const Owner<Cells>& owner, u32& least) {
        u32 found = 0;
        least = END_DOC;
#pragma unroll 1
        for (u32 term = 0; term < owner.num_terms; term += 4) {
            const uint4 docs = owner.docs(term);
            const u32 doc = min(min(docs.x, docs.y), min(docs.z, docs.w));
            if (doc < least) {
                least = doc;
                found = term + (docs.x == doc ? 0 : docs.y == doc ? 1 : docs.z == doc ? 2 : 3);
            }
        }
        return found;
    }

    template <class Scan>
    __device__ __forceinline__ static void run(Scan& scan) {
        u32 doc = END_DOC;
        float norm = 0.0f, score = 0.0f;
        while (true) {
            u32 least;
            const u32 term = first_of(scan.owner, least);
            if (least != doc || least == END_DOC) {
                if (doc != END_DOC) scan.best.offer(doc, score);
                if (least == END_DOC) return;
                doc = least;
                norm = scan.norm_of(doc);
                score = 0.0f;
            }
            scan.owner.doc(term) = scan.owner.take(term, doc, norm, score);
            scan.postings_scored += 1;
        }
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1) ranges_or(const __grid_constant__ RangeBatch batch) {
    answer_query<Or>(batch);
}
