// tandem.cu: all kernels as one compile unit. kernels/build.py compiles it.

#include "transcode.cu"
#include "drivers.cu"
#include "union.cu"
#include "topk.cu"
#include "decode.cu"

// sizeof what the host passes to the kernels of transcode.cu and decode.cu.
extern "C" __constant__ const u32 transcode_layout[3] = {TRANSCODE_THREADS, SCAN_THREADS, sizeof(SourceList)};
extern "C" __constant__ const u32 decode_layout[3] = {DECODE_THREADS, DECODE_BLOCKS, sizeof(DecodeList)};
