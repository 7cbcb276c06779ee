// ding.cu: the kernels of published methods as one compile unit. kernels/build.py compiles it.

#include "ding/rice.cu"
#include "ding/pfor.cu"
#include "ding/merge_find.cu"
#include "ding/intersect.cu"
#include "ding/score.cu"
#include "ding/heap.cu"
