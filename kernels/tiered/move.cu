// move.cu: pages of blocks that come from the host's memory, while searches run beside.
//
// Searches read one array of headers, the map, while another one is made: nothing that these kernels write is read by a search
// that runs (src/exec/gpu/tiered/online.rs says when each may start). A page is of some kilobytes: a warp reads it 512 bytes at a
// time, eight reads under way, which fills the bus with few warps, so that searches keep the multiprocessors.
// In:   pages in the host's memory, one behind the other; moves. Out: frames in device memory; headers.
// Launch bounds: 128 threads. Bound by the bus. Twin on the host: the test of src/exec/gpu/tiered/online.rs.

#include "tiered/tiered.cuh"

// Copies pages of `page_rows` rows to frames.
extern "C" __global__ void __launch_bounds__(MOVE_THREADS) copy_pages(
    const uint4* pages, uint4* frames, const PageMove* moves, u32 num_moves, u32 page_rows
) {
    const u32 lane = threadIdx.x % WARP;
    const u32 num_warps = gridDim.x * (MOVE_THREADS / WARP);
    for (u32 i = (blockIdx.x * MOVE_THREADS + threadIdx.x) / WARP; i < num_moves; i += num_warps) {
        const PageMove move = moves[i];
        const uint4* from = pages + static_cast<u64>(move.page) * page_rows;
        uint4* to = frames + static_cast<u64>(move.frame) * page_rows;
#pragma unroll 8
        for (u32 row = lane; row < page_rows; row += WARP) to[row] = from[row];
    }
}

// Moves the rows that headers name.
extern "C" __global__ void __launch_bounds__(MOVE_THREADS) move_blocks(
    BlockRow* blocks, const RunMove* moves, u32 num_moves
) {
    const u32 lane = threadIdx.x % WARP;
    const u32 num_warps = gridDim.x * (MOVE_THREADS / WARP);
    for (u32 i = (blockIdx.x * MOVE_THREADS + threadIdx.x) / WARP; i < num_moves; i += num_warps) {
        const RunMove move = moves[i];
        for (u32 j = lane; j < move.num_blocks; j += WARP) blocks[move.first_block + j].row += move.rows_on;
    }
}
