// transcode.cu: converts lists of the index file to the searched form at upload.
// In:   parts of the index file, one per launch; the documents' norms. Out: blocks, rows, directory (lists.cuh).
//
// A warp takes a block and decodes it twice. measure_blocks counts its rows; scan_rows and scan_tiles turn the counts into
// first rows, by a prefix sum over tiles of blocks and one over the tiles; write_blocks adds the two and writes. Every word has
// one writer, except the parts of directory entries, which are zero before and gathered by atomics. So parts of the file may
// come in any order. Bounds of impacts are computed from the norms of the
// search, so they hold for any BM25 parameters.
//
// Limits: documents below 2^31; fewer than 2^32 blocks (checked by the host before) and rows (after scan_tiles).
// Shared memory: 2 KiB. Launch bounds: 128 threads; 1024 threads for the scans. Bound by instructions.
// Twin on the host: the reader in the tests of search/gpu/lists.rs.

#include "block_codec.cuh"
#include "lists.cuh"
#include "work.cuh"

constexpr u32 TRANSCODE_THREADS = 128;
constexpr u32 TRANSCODE_WARPS = TRANSCODE_THREADS / WARP;
constexpr u32 SCAN_THREADS = 1024;  // also the blocks of postings per tile of the scan

// Sections of the index file in device memory: consecutive long lists with their data, or all terms and the short lists. There
// is one unit of work per block of the long lists, then one per term.
struct FilePart {
    const LongList* lists;    // the part's lists, with words relative to the part's payload
    const u32* last_docs;     // of the part's blocks
    const uint2* entries;     // of the part's blocks
    const u32* payload;
    const u32* slots;         // TermSlot on the host, one per term
    const u32* short_lists;
    const float* norms;       // BM25 norm of each document
    u32 num_lists;
    u32 num_blocks;
    u32 first_block;          // first block of the part's lists
    u32 num_terms;            // 0 if the part has long lists
    u32 num_long_blocks;      // blocks of all long lists, followed by one block per term
    u32 num_docs;
    u32 directory_stride;     // entries of a directory per block
};

// One block of the file, the work of one warp.
struct Unit {
    PackedBlock packed;
    u32 first_block;  // first block of its list in the searched form
    u32 number;       // number of the block in its list
    u32 doc_freq;     // postings of its list; 0 without work

    __device__ __forceinline__ u32 block() const { return first_block + number; }

    __device__ __forceinline__ Unit(const FilePart& part, u32 unit) : number(0), doc_freq(0) {
        if (unit < part.num_blocks) {
            const u32 block = part.first_block + unit;
            const LongList& list = part.lists[find_owner(part.lists, part.num_lists, &LongList::first_block, block)];
            const u32 place = list.first_block - part.first_block;
            first_block = list.first_block;
            number = block - first_block;
            doc_freq = list.doc_freq;
            const u32* payload = part.payload + list.payload_word;
            packed = PackedBlock::of_long(list, payload, part.last_docs + place, part.entries + place, number);
        } else if (unit - part.num_blocks < part.num_terms) {
            const u32 term = unit - part.num_blocks, slot = __ldg(part.slots + term), kind = slot >> 30;
            if (kind == 3) return;  // a long list, which is in another part
            first_block = part.num_long_blocks + term;
            packed = kind < 2 ? PackedBlock::single(slot)
                              : PackedBlock::short_list(part.short_lists, slot & 0x3fffffff);
            doc_freq = packed.len;
        }
    }
};

// The unit of the caller's warp.
__device__ __forceinline__ u32 own_unit() { return blockIdx.x * TRANSCODE_WARPS + threadIdx.x / WARP; }

// The lane's postings of one block, and the block's common data.
struct Postings {
    u32 docs[4], freqs[4];
    u32 len, first_doc, doc_width, freq_width;

    __device__ __forceinline__ Postings(const PackedBlock& packed, u32 lane) : len(packed.len) {
        decode_docs(packed, lane, docs);
        decode_freqs(packed, lane, freqs);
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

    __device__ __forceinline__ u32 num_rows() const {
        return value_rows(len, doc_width) + byte_rows(len) + value_rows(len, freq_width);
    }
};

// Writes `len` values of a width from `row` on. A lane makes whole rows from all quads of values that reach into them.
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

// Counts the rows of each block of a part, one warp per block.
extern "C" __global__ void __launch_bounds__(TRANSCODE_THREADS) measure_blocks(
    const __grid_constant__ FilePart part, u32* rows_of_blocks
) {
    const u32 lane = threadIdx.x % WARP;
    const Unit unit(part, own_unit());
    if (unit.doc_freq == 0) return;
    const Postings postings(unit.packed, lane);
    if (lane == 0) rows_of_blocks[unit.block()] = postings.num_rows();
}

static_assert(SCAN_THREADS == WARP * WARP, "a lane for the sum of each warp");

// The sum of the thread block's values before the caller's own, and of all. Every thread calls it. It may be called again at
// once, because its second barrier follows all reads of the warps' sums.
__device__ __forceinline__ u32 sum_before(u32 own, u32& total) {
    __shared__ u32 warp_sums[SCAN_THREADS / WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 upto = warp_prefix(own, lane);
    if (lane == WARP - 1) warp_sums[warp] = upto;
    __syncthreads();
    const u32 upto_warp = warp_prefix(warp_sums[lane], lane);
    total = __shfl_sync(FULL_WARP, upto_warp, WARP - 1);
    const u32 before_warp = __shfl_sync(FULL_WARP, upto_warp - warp_sums[lane], warp);
    __syncthreads();
    return before_warp + upto - own;
}

// Replaces the rows of each block by those of earlier blocks in its tile, one thread block per tile.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_rows(
    u32* rows_of_blocks, u32 num_blocks, u32* rows_of_tiles
) {
    const u32 i = blockIdx.x * SCAN_THREADS + threadIdx.x;
    u32 total;
    const u32 before = sum_before(i < num_blocks ? rows_of_blocks[i] : 0, total);
    if (i < num_blocks) rows_of_blocks[i] = before;
    if (threadIdx.x == 0) rows_of_tiles[blockIdx.x] = total;
}

// Replaces the rows of each tile by those of all earlier tiles, in one thread block.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_tiles(u32* rows_of_tiles, u32 num_tiles, u64* total) {
    u64 before = 0;
    for (u32 first = 0; first < num_tiles; first += SCAN_THREADS) {
        const u32 i = first + threadIdx.x;
        u32 sum;
        const u32 own = sum_before(i < num_tiles ? rows_of_tiles[i] : 0, sum);
        // If it exceeds 32 bits, the host sees it in the total and rejects the upload.
        if (i < num_tiles) rows_of_tiles[i] = static_cast<u32>(before + own);
        before += sum;
    }
    if (threadIdx.x == 0) *total = before;
}

// Writes the lane's entries of a list's directory. Each posting writes its number to the entries after that of the posting
// before, up to its own, and the last posting also to those behind it. So each is written once, independent of the assignment of
// blocks.
__device__ __forceinline__ void write_directory(
    DirectoryEntry* directory, u32 stride, const Unit& unit, const u32 (&docs)[4], u32 num_docs, u32 lane
) {
    const u32 end = stride * ((unit.doc_freq + BLOCK_LEN - 1) / BLOCK_LEN) - 1;
    const u32 scale = static_cast<u32>((static_cast<u64>(end) << 32) / num_docs);
    const auto place_of = [&](u32 doc) { return static_cast<u64>(doc) * scale; };
    DirectoryEntry* entries = directory + static_cast<u64>(stride) * unit.first_block;
    u32 lower = __shfl_up_sync(FULL_WARP, docs[3], 1);
    if (lane == 0) lower = unit.packed.base;
    u32 parts = 0;  // of the entry of posting i
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const u32 doc = docs[i], rank = unit.number * BLOCK_LEN + 4 * lane + i;
        if (rank < unit.doc_freq) {
            const u32 own = place_of(doc) >> 32;
            for (u32 j = rank == 0 ? 0 : (place_of(lower) >> 32) + 1; j <= own; ++j) entries[j].before = rank;
            parts |= 1u << (static_cast<u32>(place_of(doc)) >> 27);
            if (i == 3 || rank == unit.doc_freq - 1 || place_of(docs[min(i + 1, 3)]) >> 32 != own) {
                atomicOr(&entries[own].parts, parts);
                parts = 0;
            }
            if (rank == unit.doc_freq - 1) {
                for (u32 j = own + 1; j <= end; ++j) entries[j].before = unit.doc_freq;
            }
        }
        lower = doc;
    }
}

// Writes a part's rows, headers and, for long lists, directories, one warp per block.
extern "C" __global__ void __launch_bounds__(TRANSCODE_THREADS) write_blocks(
    const __grid_constant__ FilePart part, const u32* rows_before, const u32* rows_before_tiles, Block* blocks,
    uint4* rows, uint4* host_rows, u32 num_resident, DirectoryEntry* directory
) {
    __shared__ __align__(16) u32 values[TRANSCODE_WARPS][BLOCK_LEN];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const Unit unit(part, own_unit());
    if (unit.doc_freq == 0) return;
    const Postings block(unit.packed, lane);

    float impacts[4], most = 0.0f;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const bool is_real = 4 * lane + i < block.len;
        impacts[i] = is_real ? posting_score(1.0f, block.freqs[i], __ldg(part.norms + block.docs[i])) : 0.0f;
        most = fmaxf(most, impacts[i]);
    }
    most = warp_max(most);
    u32 bytes = 0;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        // Rounding down and adding one gives an upper bound of the exact ratio, independent of the rounding of quotient and
        // product. The best posting's 255 stands for `most`.
        const u32 byte = min(__float2uint_rz(impacts[i] / most * 255.0f) + 1, 255u);
        bytes |= (4 * lane + i < block.len ? byte : 0) << 8 * i;
    }

    const u32 number = unit.block();
    const u32 first_row = rows_before[number] + rows_before_tiles[number / SCAN_THREADS];
    const u32 doc_rows = value_rows(block.len, block.doc_width), impact_rows = byte_rows(block.len);
    uint4* row = (first_row < num_resident ? rows : host_rows) + first_row;
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
        blocks[number] = {first_row, block.first_doc, packing, most};
    }
    if (unit.doc_freq >= BLOCK_LEN) write_directory(directory, part.directory_stride, unit, block.docs, part.num_docs, lane);
}
