// transcode.cu: lists as the index hands them out become lists as searches read them, when an index is uploaded.
// In:   a part of the index; the lists in it; where each block's rows begin. Out: blocks, rows, directory.
// A warp takes a block: measure_blocks tells how many rows it will take, scan_rows where they go, write_blocks writes them.
// The bounds of impacts are computed here, from the norms that searches use: they hold whatever BM25's parameters are.
// Twin on the host: exec/gpu/lists.rs. Shared memory: 2 KiB.

#include "batch.cuh"
#include "block_codec.cuh"
#include "lists.cuh"

constexpr u32 TRANSCODE_THREADS = 128;
constexpr u32 TRANSCODE_WARPS = TRANSCODE_THREADS / WARP;
constexpr u32 SCAN_THREADS = 1024;

// A list to be transcoded.
struct SourceList {
    Term term;        // its places are within the part that is on the device
    u32 first_unit;   // blocks of the lists before it, in this launch
    u32 first_block;  // of what it becomes
    u32 shift;
    u32 reserved;
};

// The lane's postings of one block, and what is common to the block.
struct SourceBlock {
    u32 docs[4], freqs[4];
    u32 len, before, first_doc, doc_width, freq_width;

    __device__ __forceinline__ SourceBlock(const Index& index, const Term& term, u32 block, u32 lane) {
        const List list(index, term);
        const BlockHeader header = list.header(block);
        decode_docs(header, lane, docs);
        decode_freqs(header, lane, freqs);
        len = header.len;
        before = header.base;
        u32 last = 0, most = 0;
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            if (4 * lane + i < len) {
                last = max(last, docs[i]);
                most = max(most, freqs[i] - 1);
            }
        }
        first_doc = __shfl_sync(FULL_WARP, docs[0], 0);
        doc_width = bit_width(warp_max(last) - first_doc);
        freq_width = bit_width(warp_max(most));
    }

    // The largest of all lanes' values.
    __device__ static __forceinline__ u32 warp_max(u32 value) {
#pragma unroll
        for (u32 distance = WARP / 2; distance > 0; distance /= 2) {
            value = max(value, __shfl_xor_sync(FULL_WARP, value, distance));
        }
        return value;
    }

    __device__ __forceinline__ u32 num_rows() const {
        return value_rows(len, doc_width) + byte_rows(len) + value_rows(len, freq_width);
    }
};

// Writes `len` values of a width from `row` on. A lane writes whole rows.
__device__ __forceinline__ void write_values(const u32 (&values)[BLOCK_LEN], u32 len, u32 width, uint4* row, u32 lane) {
    const u32 quads = (len + 3) / 4;
    for (u32 r = lane; r < value_rows(len, width); r += WARP) {
        uint4 packed = make_uint4(0, 0, 0, 0);
        for (u32 quad = 32 * r / width; quad < quads && quad * width < 32 * (r + 1); ++quad) {
            const uint4 four = *reinterpret_cast<const uint4*>(&values[4 * quad]);
            const int shift = static_cast<int>(quad * width) - static_cast<int>(32 * r);
            packed.x |= shift >= 0 ? four.x << shift : four.x >> -shift;
            packed.y |= shift >= 0 ? four.y << shift : four.y >> -shift;
            packed.z |= shift >= 0 ? four.z << shift : four.z >> -shift;
            packed.w |= shift >= 0 ? four.w << shift : four.w >> -shift;
        }
        row[r] = packed;
    }
}

extern "C" __global__ void __launch_bounds__(TRANSCODE_THREADS) measure_blocks(
    const __grid_constant__ Index index, const SourceList* lists, u32 num_lists, u32 num_units, u32* rows_of_blocks
) {
    const u32 lane = threadIdx.x % WARP;
    const u32 unit = (blockIdx.x * TRANSCODE_THREADS + threadIdx.x) / WARP;
    if (unit >= num_units) return;
    const SourceList& list = lists[find_item(lists, num_lists, &SourceList::first_unit, unit)];
    const u32 number = unit - list.first_unit;
    const SourceBlock block(index, list.term, number, lane);
    if (lane == 0) rows_of_blocks[list.first_block + number] = block.num_rows();
}

// Turns the number of rows of each block into that of all blocks before it. One thread block.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_rows(u32* rows_of_blocks, u32 num_blocks, u64* total) {
    __shared__ u32 warp_sums[SCAN_THREADS / WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u64 before = 0;
    for (u32 first = 0; first < num_blocks; first += SCAN_THREADS) {
        const u32 i = first + threadIdx.x;
        const u32 own = i < num_blocks ? rows_of_blocks[i] : 0;
        u32 upto = own;
#pragma unroll
        for (u32 distance = 1; distance < WARP; distance *= 2) {
            const u32 lower = __shfl_up_sync(FULL_WARP, upto, distance);
            if (lane >= distance) upto += lower;
        }
        if (lane == WARP - 1) warp_sums[warp] = upto;
        __syncthreads();
        u32 sum = 0;
        for (u32 w = 0; w < SCAN_THREADS / WARP; ++w) {
            if (w == warp) upto += sum;
            sum += warp_sums[w];
        }
        // Should it exceed 32 bits, the host sees it in the total and reads none of these.
        if (i < num_blocks) rows_of_blocks[i] = static_cast<u32>(before + upto - own);
        before += sum;
        __syncthreads();
    }
    if (threadIdx.x == 0) *total = before;
}

extern "C" __global__ void __launch_bounds__(TRANSCODE_THREADS) write_blocks(
    const __grid_constant__ Index index, const SourceList* lists, u32 num_lists, u32 num_units, const u32* first_rows,
    Block* blocks, uint4* rows, u32* directory
) {
    __shared__ __align__(16) u32 values[TRANSCODE_WARPS][BLOCK_LEN];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 unit = (blockIdx.x * TRANSCODE_THREADS + threadIdx.x) / WARP;
    if (unit >= num_units) return;
    const SourceList& list = lists[find_item(lists, num_lists, &SourceList::first_unit, unit)];
    const u32 number = unit - list.first_unit;
    const SourceBlock block(index, list.term, number, lane);

    float impacts[4], most = 0.0f;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const bool is_real = 4 * lane + i < block.len;
        impacts[i] = is_real ? posting_score(1.0f, block.freqs[i], __ldg(index.norms + block.docs[i])) : 0.0f;
        most = fmaxf(most, impacts[i]);
    }
#pragma unroll
    for (u32 distance = WARP / 2; distance > 0; distance /= 2) most = fmaxf(most, __shfl_xor_sync(FULL_WARP, most, distance));
    u32 bytes = 0;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        // One more than what is rounded down is above it, whatever the product's own rounding was.
        const u32 byte = min(__float2uint_rz(impacts[i] / most * 255.0f) + 1, 255u);
        bytes |= (4 * lane + i < block.len ? byte : 0) << 8 * i;
    }

    const u32 first_row = first_rows[list.first_block + number];
    const u32 doc_rows = value_rows(block.len, block.doc_width), impact_rows = byte_rows(block.len);
    uint4* row = rows + first_row;
    u32 stored[4];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) stored[i] = 4 * lane + i < block.len ? block.docs[i] - block.first_doc : 0;
    *reinterpret_cast<uint4*>(&values[warp][4 * lane]) = make_uint4(stored[0], stored[1], stored[2], stored[3]);
    __syncwarp();
    write_values(values[warp], block.len, block.doc_width, row, lane);
    if (lane < 4 * impact_rows) reinterpret_cast<u32*>(row + doc_rows)[lane] = bytes;
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < 4; ++i) stored[i] = 4 * lane + i < block.len ? block.freqs[i] - 1 : 0;
    *reinterpret_cast<uint4*>(&values[warp][4 * lane]) = make_uint4(stored[0], stored[1], stored[2], stored[3]);
    __syncwarp();
    write_values(values[warp], block.len, block.freq_width, row + doc_rows + impact_rows, lane);
    if (lane == 0) {
        const u32 packing = Header::pack(block.len, block.doc_width, block.freq_width);
        blocks[list.first_block + number] = {first_row, block.first_doc, packing, most};
    }

    // Entry j tells how many postings come before document j << shift: each posting writes those between it and the one before.
    if (list.shift == NO_DIRECTORY) return;
    u32* entries = directory + static_cast<u64>(DIRECTORY_STRIDE) * list.first_block;
    u32 lower = __shfl_up_sync(FULL_WARP, block.docs[3], 1);
    if (lane == 0) lower = block.before;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const u32 doc = block.docs[i], rank = number * BLOCK_LEN + 4 * lane + i;
        if (rank < list.term.doc_freq) {
            const u32 own = doc >> list.shift;
            for (u32 j = rank == 0 ? 0 : (lower >> list.shift) + 1; j <= own; ++j) entries[j] = rank;
            if (rank == list.term.doc_freq - 1) {
                const u32 end = (index.num_docs - 1 >> list.shift) + 1;
                for (u32 j = own + 1; j <= end; ++j) entries[j] = list.term.doc_freq;
            }
        }
        lower = doc;
    }
}
