// layout.cuh: offsets of fields, for arrays that the host compares with its own structures at load.
#pragma once

// NVRTC has no offsetof, only what other compilers define it by.
#define OFFSET(type, field) static_cast<u32>(__INTADDR__(&static_cast<type*>(nullptr)->field))
