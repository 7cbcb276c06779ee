// wang.cu: the kernel of pruned list caching as a compile unit of its own. kernels/build.py compiles it.

#include "wang/rank.cu"
