// tandem.cu: the kernels that answer queries as one compile unit. kernels/build.py compiles it.

#include "union.cu"
#include "intersect.cu"
#include "topk.cu"
