// indexing.cu: compile unit of the kernels that invert text.
#include "indexing/cut.cu"
#include "indexing/sort.cu"
#include "indexing/encode.cu"
