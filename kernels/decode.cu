// decode.cu: whole lists decoded with no search around it: how fast the decoder is, with its result stored and with its result
// consumed where it is.
// In:   lists in octet.cuh's form, cut into chunks of 16 blocks. Out: documents, in room for whole blocks (what lies past a
//       list's end is of no meaning), or one sum of documents a thread, modulo 2^32.
//
// A warp takes a chunk at a time, four groups of four blocks: all sixteen blocks' places are asked for at once, then, where
// their widths agree, all their words.
// Stored documents go through 2 KiB of shared memory a warp: a lane has sixteen that follow each other, and a warp's stores
// should fill whole lines. Twin on the host: src/exec/gpu/octets.rs.
// Limits: lists of fewer than 2^32 blocks in all. Shared memory: 8 KiB for decode_documents.
// Launch bounds: 128 threads and 7 blocks a multiprocessor, 72 registers: with gaps of 8 bits 56 KiB are then under way on each
// of them, about twice what the memory's latency asks for. Older GPUs get 5, at which nothing was measured.
// Bound by memory: stored at all widths, consumed from 9 bits on (docs/gpu.md).

#include "octet.cuh"

constexpr u32 DECODE_THREADS = 128;
#if __CUDA_ARCH__ >= 900
constexpr u32 DECODE_RESIDENT = 7;  // thread blocks a multiprocessor
#else
constexpr u32 DECODE_RESIDENT = 5;
#endif
constexpr u32 CHUNK_GROUPS = 4;
constexpr u32 CHUNK_BLOCKS = CHUNK_GROUPS * GROUP;

// Blocks of one list that follow each other.
struct DecodeChunk {
    u32 first_block;    // among all blocks
    u32 len;            // postings: fewer than 16 full blocks only at a list's end
    u32 base;           // the document that the first gap counts from
    u32 output;         // where the documents go, in blocks
};

struct DecodeLists {
    const OctetBlock* blocks;
    const u32* last_docs;      // of each block
    const u32* payload;
    const DecodeChunk* chunks;
    u32 num_chunks;
    u32 reserved;
};

extern "C" __constant__ const u32 decode_layout[5] = {
    DECODE_THREADS, CHUNK_BLOCKS, sizeof(OctetBlock), sizeof(DecodeChunk), sizeof(DecodeLists),
};

// The head of a chunk's block. Past the chunk's end, the last one's.
__device__ __forceinline__ OctetHead chunk_head(const DecodeLists& lists, const DecodeChunk& chunk, u32 block) {
    const u32 last = (chunk.len - 1) / BLOCK_LEN;
    const u32 at = min(block, last);
    const uint2 place = __ldg(reinterpret_cast<const uint2*>(lists.blocks + chunk.first_block) + at);
    const u32 base = at == 0 ? chunk.base : __ldg(lists.last_docs + chunk.first_block + at - 1);
    return {place.x, place.y, base};
}

// Decodes the chunks that are this warp's and calls consume(chunk, group, count, docs) for sixteen documents of each lane at a
// time, a group of four blocks for the warp: `count` of the lane's exist. In a full chunk, the compiler knows that all do.
template <class Consume>
__device__ __forceinline__ void decode_chunks(const DecodeLists& lists, Consume consume) {
    const u32 lane = threadIdx.x % OCTET, octet = threadIdx.x % WARP / OCTET;
    const u32 warps = gridDim.x * (DECODE_THREADS / WARP);
    for (u32 at = uniform((blockIdx.x * DECODE_THREADS + threadIdx.x) / WARP); at < lists.num_chunks; at += warps) {
        const uint4 words = __ldg(reinterpret_cast<const uint4*>(lists.chunks) + at);
        const DecodeChunk chunk = {words.x, uniform(words.y), words.z, words.w};
        if (chunk.len == CHUNK_BLOCKS * BLOCK_LEN) {
            OctetHead heads[CHUNK_GROUPS];
#pragma unroll
            for (u32 i = 0; i < CHUNK_GROUPS; ++i) heads[i] = chunk_head(lists, chunk, i * GROUP + octet);
            if (widths_agree(heads)) {
                const DecodeChunk full = {chunk.first_block, CHUNK_BLOCKS * BLOCK_LEN, chunk.base, chunk.output};
                decode_groups(lists.payload, heads, lane, [&](u32 i, const u32 (&docs)[LANE_ITEMS]) {
                    consume(full, i, LANE_ITEMS, docs);
                });
                continue;
            }
        }
#pragma unroll 1
        for (u32 group = 0; group * GROUP * BLOCK_LEN < chunk.len; ++group) {
            const OctetHead head[1] = {chunk_head(lists, chunk, group * GROUP + octet)};
            const u32 first = (group * GROUP + octet) * BLOCK_LEN + lane * LANE_ITEMS;
            const u32 count = chunk.len > first ? min(chunk.len - first, LANE_ITEMS) : 0;
            decode_groups(lists.payload, head, lane, [&](u32, const u32 (&docs)[LANE_ITEMS]) {
                consume(chunk, group, count, docs);
            });
        }
    }
}

extern "C" __global__ void __launch_bounds__(DECODE_THREADS, DECODE_RESIDENT) decode_documents(
    const __grid_constant__ DecodeLists lists, u32* output
) {
    __shared__ uint4 tiles[DECODE_THREADS / WARP][WARP * LANE_ITEMS / 4];
    const u32 lane = threadIdx.x % WARP;
    uint4* tile = tiles[threadIdx.x / WARP];
    const uint4* stored = tile + 4 * (lane / 4) + (lane % 4 ^ lane / 8 % 4);
    decode_chunks(lists, [&](const DecodeChunk& chunk, u32 group, u32, const u32 (&docs)[LANE_ITEMS]) {
        // Quarter q of lane t's documents lies where (t, q) would, but for an exchange that keeps the eight lanes that
        // are served together on different banks, both here and below.
        __syncwarp();
#pragma unroll
        for (u32 quarter = 0; quarter < 4; ++quarter) {
            tile[4 * lane + (quarter ^ lane / 2 % 4)] =
                make_uint4(docs[4 * quarter], docs[4 * quarter + 1], docs[4 * quarter + 2], docs[4 * quarter + 3]);
        }
        __syncwarp();
        const u32 first = group * GROUP * BLOCK_LEN;
        uint4* target = reinterpret_cast<uint4*>(output + static_cast<u64>(BLOCK_LEN) * chunk.output + first);
#pragma unroll
        for (u32 step = 0; step < 4; ++step) {
            const u32 place = step * WARP + lane;
            // Quarter lane % 4 of lane 8 step + lane / 4. Nobody reads them here: they need not stay in the cache.
            if (first + 4 * place < chunk.len) __stcs(target + place, stored[step * WARP]);
        }
    });
}

extern "C" __global__ void __launch_bounds__(DECODE_THREADS, DECODE_RESIDENT) sum_documents(
    const __grid_constant__ DecodeLists lists, u32* sums
) {
    u32 sum = 0;
    decode_chunks(lists, [&](const DecodeChunk&, u32, u32 count, const u32 (&docs)[LANE_ITEMS]) {
#pragma unroll
        for (u32 i = 0; i < LANE_ITEMS; ++i) sum += i < count ? docs[i] : 0;
    });
    sums[blockIdx.x * DECODE_THREADS + threadIdx.x] = sum;
}
