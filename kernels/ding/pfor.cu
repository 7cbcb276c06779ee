// pfor.cu: PForDelta with one width per list and exceptions in two separate arrays, after Ding et al. 2009, section 6.2.
//
//     gaps - 1    5  1  9  2  30  3       b = 3
//     slots       5  1  1  2   6  3       the lower three bits of each
//     exceptions  at 2 and 4, overflows 1 and 3
//
// The two arrays of exceptions (positions as gaps, overflows as they are) are packed in the same way, over a number of levels
// that the host chooses; the deepest are raw. Levels are decoded from the deepest up, all arrays of a level in one launch.
// In:   arrays with decoded exceptions. Out: values; for ascending arrays, their prefix sums from the base of each block.
//
// A warp takes a block of 512: it scatters exceptions into its 2 KiB of shared memory, then unpacks slots 128 at a time, adds
// the overflows, and sums by a scan per 128.
// Shared memory: 16 KiB. Launch bounds: 256 threads. Bound by latency of reads.
// Twin on the host: the decoder in crates/papers/src/codec/pfor_delta.rs.

#include "ding/ding.cuh"

constexpr u32 PFOR_WARPS = PUBLISHED_THREADS / WARP;

// Decodes a block into `output`, which is aligned to sixteen bytes. The whole warp calls it with `overflow` in shared memory.
__device__ __forceinline__ void decode_block(
    const PforArray& array, u32 block, bool with_sums, u32* output, u32 (&overflow)[PFOR_BLOCK_LEN], u32 lane
) {
    const u32 width = array.width;
    const u32 len = min(array.len - block * PFOR_BLOCK_LEN, PFOR_BLOCK_LEN);
    const u32* section = array.slots + block * (PFOR_BLOCK_LEN / 32) * width;
    u32 exception = 0, end = 0;
    if (array.num_exceptions != 0) {
        exception = array.starts[block];
        end = array.starts[block + 1];
    }
    const bool has_exceptions = exception != end;
    if (has_exceptions) {
#pragma unroll
        for (u32 i = 0; i < PFOR_BLOCK_LEN; i += 4 * WARP) {
            *reinterpret_cast<uint4*>(&overflow[i + 4 * lane]) = make_uint4(0, 0, 0, 0);
        }
        __syncwarp();
        for (exception += lane; exception < end; exception += WARP) {
            // Places differ, so no two lanes write the same word.
            overflow[array.positions[exception] - block * PFOR_BLOCK_LEN] = array.overflows[exception] << width;
        }
        __syncwarp();
    }
    const bool sums = with_sums && array.bases != nullptr;
    u32 base = sums ? __ldg(array.bases + block) : 0;
#pragma unroll
    for (u32 first = 0; first < PFOR_BLOCK_LEN; first += 4 * WARP) {
        const u32 place = first + 4 * lane;
        u32 values[4];
        unpack_group(section + first / 32 * width, width, len > first ? len - first : 0, lane, values);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) values[i] += 1;
        if (has_exceptions) {
            const uint4 more = *reinterpret_cast<const uint4*>(&overflow[place]);
            values[0] += more.x;
            values[1] += more.y;
            values[2] += more.z;
            values[3] += more.w;
        }
        if (sums) {
#pragma unroll
            for (u32 i = 1; i < 4; ++i) values[i] += values[i - 1];
            const u32 sum = warp_prefix(values[3], lane);
            const u32 before = base + sum - values[3];
#pragma unroll
            for (u32 i = 0; i < 4; ++i) values[i] += before;
            base += __shfl_sync(FULL_WARP, sum, WARP - 1);
        }
        // Places past the end are stored, too: outputs have room for whole blocks.
        *reinterpret_cast<uint4*>(output + place) = make_uint4(values[0], values[1], values[2], values[3]);
    }
}

// Decodes whole arrays, one warp per block. Without `with_sums`, ascending arrays stay gaps.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) pfor_decode(
    const PforArray* arrays, u32 num_arrays, u32 num_blocks, u32 with_sums
) {
    __shared__ __align__(16) u32 overflow[PFOR_WARPS][PFOR_BLOCK_LEN];
    const u32 unit = thread_index() / WARP;
    if (unit >= num_blocks) return;
    const PforArray& array = arrays[find_owner(arrays, num_arrays, &PforArray::first_block, unit)];
    const u32 block = unit - array.first_block, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    decode_block(array, block, with_sums != 0, array.output + block * PFOR_BLOCK_LEN, overflow[warp], lane);
}

// Decodes the blocks of one array that an intersection needs, side by side.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) pfor_decode_needed(
    const __grid_constant__ PforArray array, const u32* needed_blocks, const __grid_constant__ Count num_needed
) {
    __shared__ __align__(16) u32 overflow[PFOR_WARPS][PFOR_BLOCK_LEN];
    const u32 slot = thread_index() / WARP, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (slot >= num_needed.get()) return;
    decode_block(array, needed_blocks[slot], true, array.output + slot * PFOR_BLOCK_LEN, overflow[warp], lane);
}
