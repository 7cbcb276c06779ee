// ranges.cu: the kernels that answer queries by document ranges as one compile unit. kernels/build.py compiles it.

#include "ranges/and.cu"
#include "ranges/bmw.cu"
#include "ranges/or.cu"
#include "ranges/wand.cu"
