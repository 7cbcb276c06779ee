// tiered.cuh: what the kernels of tiered lists share, and what the host checks of them.
#pragma once

#include "primitives.cuh"

constexpr u32 SCATTER_THREADS = 256;
constexpr u32 MOVE_THREADS = 128;

// A page, and the frame that it comes to.
struct PageMove {
    u32 page, frame;
};

// Consecutive blocks whose rows have moved so many rows on, modulo 2^32.
struct RunMove {
    u32 first_block, num_blocks, rows_on;
};

// A block's header, of which only the row is of interest here: Block in tandem.cuh.
struct BlockRow {
    u32 row, others[3];
};

extern "C" __constant__ const u32 tiered_layout[5] = {
    SCATTER_THREADS, MOVE_THREADS, sizeof(PageMove), sizeof(RunMove), sizeof(BlockRow),
};
