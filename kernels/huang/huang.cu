// huang.cu: compile unit of the kernels that answer queries by document ranges. kernels/build.py compiles it.

#include "huang/and.cu"
#include "huang/bmw.cu"
#include "huang/or.cu"
#include "huang/wand.cu"
