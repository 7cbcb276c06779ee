// tandem.cu: compile unit of the kernels that answer queries. kernels/build.py compiles it.

#include "transcode.cu"
#include "lone.cu"
#include "batch.cu"
#include "tiles.cu"
#include "topk.cu"

// Sizes and offsets of the arguments of transcode.cu, which the host compares.
extern "C" __constant__ const u32 transcode_layout[4] = {
    TRANSCODE_THREADS, SCAN_THREADS, sizeof(LongList), sizeof(FilePart),
};
extern "C" __constant__ const u32 transcode_offsets[21] = {
    OFFSET(FilePart, lists), OFFSET(FilePart, last_docs), OFFSET(FilePart, entries), OFFSET(FilePart, payload),
    OFFSET(FilePart, slots), OFFSET(FilePart, short_lists), OFFSET(FilePart, norms), OFFSET(FilePart, num_lists),
    OFFSET(FilePart, num_blocks), OFFSET(FilePart, first_block), OFFSET(FilePart, num_terms), OFFSET(FilePart, num_long_blocks),
    OFFSET(FilePart, num_docs), OFFSET(FilePart, directory_stride),
    OFFSET(LongList, payload_word), OFFSET(LongList, first_block), OFFSET(LongList, doc_freq), OFFSET(LongList, max_impact),
    OFFSET(LongList, kth_impacts), OFFSET(LongList, probe_row), OFFSET(LongList, rows),
};
