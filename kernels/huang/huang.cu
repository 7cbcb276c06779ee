// huang.cu: the kernels that answer queries by document ranges as one compile unit. kernels/build.py compiles it.

#include "huang/and.cu"
#include "huang/bmw.cu"
#include "huang/or.cu"
#include "huang/wand.cu"
