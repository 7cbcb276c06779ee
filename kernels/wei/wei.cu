// wei.cu: the kernels that index, as one compile unit. kernels/build.py compiles it.

#include "wei/index.cu"
