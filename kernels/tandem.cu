// tandem.cu: the kernels that answer queries as one compile unit. kernels/build.py compiles it.

#include "transcode.cu"
#include "lone.cu"
#include "batch.cu"
#include "tiles.cu"
#include "topk.cu"

// sizeof what the host passes to the kernels of transcode.cu.
extern "C" __constant__ const u32 transcode_layout[4] = {
    TRANSCODE_THREADS, SCAN_THREADS, sizeof(LongList), sizeof(FilePart),
};
