// tandem.cu: compile unit of the kernels that answer queries. kernels/build.py compiles it.

#include "transcode.cu"
#include "lone.cu"
#include "batch.cu"
#include "tiles.cu"
#include "topk.cu"

// Sizes of the arguments of transcode.cu, which the host compares.
extern "C" __constant__ const u32 transcode_layout[4] = {
    TRANSCODE_THREADS, SCAN_THREADS, sizeof(LongList), sizeof(FilePart),
};
