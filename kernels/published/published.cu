// published.cu: the kernels of published methods as one compile unit. kernels/build.py compiles it.

#include "published/rice.cu"
#include "published/pfor.cu"
#include "published/merge_find.cu"
#include "published/intersect.cu"
#include "published/score.cu"
#include "published/heap.cu"
