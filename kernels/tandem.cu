// tandem.cu: all kernels as one compile unit. kernels/build.py compiles it.

#include "union.cu"
#include "intersect.cu"
#include "topk.cu"
#include "decode.cu"

// sizeof what the host passes to the kernels of decode.cu.
extern "C" __constant__ const u32 decode_layout[3] = {DECODE_THREADS, DECODE_BLOCKS, sizeof(DecodeList)};
