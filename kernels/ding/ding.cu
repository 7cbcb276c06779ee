// ding.cu: compile unit of the kernels of Ding et al. 2009. kernels/build.py compiles it.

#include "ding/rice.cu"
#include "ding/pfor.cu"
#include "ding/merge_find.cu"
#include "ding/intersect.cu"
#include "ding/score.cu"
#include "ding/heap.cu"
