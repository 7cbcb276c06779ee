// decode.cu: whole lists decoded with no search around it: how fast the decoder is, with its result stored and with its result
// consumed where it is.
// In:   the index; lists. Out: documents (NO_DOC past a list's end), or the sum of those of each unit of four blocks.
// A warp takes four blocks. It asks for the entries of all of them, then for the rows of all of them, and only then unpacks the
// first: with one block a warp too few bytes are under way to fill the memory's pipe. Two blocks' prefix sums share one scan,
// in the halves of a word, where both blocks span fewer than 2^16 documents.
// Twin on the host: index/packed. Launch bounds: 64 threads, 12 blocks a multiprocessor: 80 registers and no spills (14 blocks
// would spill a few). Of 1, 2, 4 and 8 blocks a warp and 64 to 256 threads this was the fastest on an H200.

#include "batch.cuh"
#include "block_codec.cuh"

constexpr u32 DECODE_THREADS = 64;
constexpr u32 DECODE_BLOCKS = 4;  // that a warp decodes

// A list and where its documents go: room for whole blocks.
struct DecodeList {
    Term term;
    u32* output;
    u32 first_unit;               // units of four blocks of the lists before it
    u32 reserved;
};

// Turns the lanes' values into the sums of those of the lanes before. With PACKED, no sum over the warp exceeds 16 bits.
template <u32 N, bool PACKED>
__device__ __forceinline__ void sum_lanes_before(u32 (&sums)[N], u32 lane) {
    constexpr u32 TOGETHER = PACKED ? 2 : 1;
    static_assert(N % TOGETHER == 0, "sums are packed in pairs");
#pragma unroll
    for (u32 i = 0; i < N; i += TOGETHER) {
        const u32 own = PACKED ? sums[i] | sums[i + TOGETHER - 1] << 16 : sums[i];
        u32 upto = own;
#pragma unroll
        for (u32 distance = 1; distance < WARP; distance *= 2) {
            const u32 lower = __shfl_up_sync(FULL_WARP, upto, distance);
            if (lane >= distance) upto += lower;
        }
        const u32 before = upto - own;
        sums[i] = PACKED ? before & 0xffff : before;
        if (PACKED) sums[i + TOGETHER - 1] = before >> 16;
    }
}

// N full blocks of a long list, side by side, none a bitset or without rows: their entries, and their rows once loaded.
template <u32 N>
struct RowBlocks {
    u32 first_rows[N], packings[N], bases[N + 1];
    uint4 low[N], high[N];

    // Loads the entries; false if a block is of another kind.
    __device__ __forceinline__ bool load_entries(const List& list, u32 first) {
        bool has_rows = true;
#pragma unroll
        for (u32 i = 0; i < N; ++i) {
            const uint2 entry = __ldg(list.blocks + first + i);
            first_rows[i] = entry.x;
            packings[i] = entry.y;
            has_rows &= code(i) != CODE_BITSET && width(i) != 0;
        }
        bases[0] = first == 0 ? list.first_base : __ldg(list.last_docs + first - 1);
#pragma unroll
        for (u32 i = 0; i < N; ++i) bases[i + 1] = __ldg(list.last_docs + first + i);
        return has_rows;
    }

    __device__ __forceinline__ u32 code(u32 i) const { return packings[i] & 63; }
    __device__ __forceinline__ u32 width(u32 i) const { return code_width(code(i)); }

    __device__ __forceinline__ bool spans_fit_16_bits() const {
        bool fit = true;
#pragma unroll
        for (u32 i = 0; i < N; ++i) fit &= bases[i + 1] - bases[i] < 1 << 16;
        return fit;
    }

    __device__ __forceinline__ void load_rows(const List& list, u32 lane) {
        const uint4* payload = reinterpret_cast<const uint4*>(list.payload);
#pragma unroll
        for (u32 i = 0; i < N; ++i) {
            const u32 bit = lane * width(i);
            low[i] = __ldg(payload + (first_rows[i] + bit / 32));
            high[i] = __ldg(payload + (first_rows[i] + (bit + width(i) - 1) / 32));
        }
    }

    // Calls consume(i, docs) for each block.
    template <bool PACKED, class Consume>
    __device__ __forceinline__ void unpack(const List& list, u32 lane, Consume consume) const {
        u32 docs[N][4], sums[N];
#pragma unroll
        for (u32 i = 0; i < N; ++i) {
            const u32 bit = lane * width(i);
            const u32 mask = 0xffffffffu >> (32 - width(i));
            docs[i][0] = __funnelshift_r(low[i].x, high[i].x, bit) & mask;
            docs[i][1] = __funnelshift_r(low[i].y, high[i].y, bit) & mask;
            docs[i][2] = __funnelshift_r(low[i].z, high[i].z, bit) & mask;
            docs[i][3] = __funnelshift_r(low[i].w, high[i].w, bit) & mask;
            if (has_exceptions(code(i))) {
                const u32* words = list.payload + 4ull * first_rows[i];
                add_exceptions(words, full_block_exceptions_bit(packings[i]), code(i), lane, docs[i]);
            }
            docs[i][0] += 1;
#pragma unroll
            for (u32 j = 1; j < 4; ++j) docs[i][j] += docs[i][j - 1] + 1;
            sums[i] = docs[i][3];
        }
        sum_lanes_before<N, PACKED>(sums, lane);
#pragma unroll
        for (u32 i = 0; i < N; ++i) {
            const u32 before = bases[i] + sums[i];
#pragma unroll
            for (u32 j = 0; j < 4; ++j) docs[i][j] += before;
            consume(i, docs[i]);
        }
    }
};

// Decodes blocks `first` to `first + N - 1` of a list, as far as it has them, and calls consume(block, docs) for each: the
// lane's four documents of it, NO_DOC past its end.
template <u32 N, class Consume>
__device__ __forceinline__ void decode_blocks(const List& list, u32 first, u32 lane, Consume consume) {
    // A list's last block may not be full.
    if (!list.is_short() && first + N < list.num_blocks) {
        RowBlocks<N> blocks;
        if (blocks.load_entries(list, first)) {
            blocks.load_rows(list, lane);
            const auto consume_next = [&](u32 i, const u32 (&docs)[4]) { consume(first + i, docs); };
            if (blocks.spans_fit_16_bits()) blocks.template unpack<true>(list, lane, consume_next);
            else blocks.template unpack<false>(list, lane, consume_next);
            return;
        }
    }
    for (u32 block = first; block < min(first + N, list.num_blocks); ++block) {
        u32 docs[4];
        decode_docs(list.header(block), lane, docs);
        consume(block, docs);
    }
}

// The unit of this warp: four blocks of a list.
struct DecodeUnit {
    const DecodeList& item;
    List list;
    u32 first_block;

    __device__ __forceinline__ DecodeUnit(const Index& index, const DecodeList* lists, u32 num_lists, u32 unit)
        : item(lists[find_item(lists, num_lists, &DecodeList::first_unit, unit)]),
          list(index, item.term),
          first_block((unit - item.first_unit) * DECODE_BLOCKS) {}
};

extern "C" __global__ void __launch_bounds__(DECODE_THREADS, 12) decode_documents(
    const __grid_constant__ Index index, const DecodeList* lists, u32 num_lists, u32 num_units
) {
    const u32 lane = threadIdx.x % WARP;
    const u32 unit_index = (blockIdx.x * DECODE_THREADS + threadIdx.x) / WARP;
    if (unit_index >= num_units) return;
    const DecodeUnit unit(index, lists, num_lists, unit_index);
    u32* output = unit.item.output + 4 * lane;
    decode_blocks<DECODE_BLOCKS>(unit.list, unit.first_block, lane, [&](u32 block, const u32 (&docs)[4]) {
        *reinterpret_cast<uint4*>(output + block * BLOCK_LEN) = make_uint4(docs[0], docs[1], docs[2], docs[3]);
    });
}

extern "C" __global__ void __launch_bounds__(DECODE_THREADS, 12) sum_documents(
    const __grid_constant__ Index index, const DecodeList* lists, u32 num_lists, u32 num_units, u32* sums
) {
    const u32 lane = threadIdx.x % WARP;
    const u32 unit_index = (blockIdx.x * DECODE_THREADS + threadIdx.x) / WARP;
    if (unit_index >= num_units) return;
    const DecodeUnit unit(index, lists, num_lists, unit_index);
    u32 sum = 0;
    decode_blocks<DECODE_BLOCKS>(unit.list, unit.first_block, lane, [&](u32, const u32 (&docs)[4]) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) sum += docs[i] == NO_DOC ? 0 : docs[i];
    });
    sum = warp_sum(sum);
    if (lane == 0) sums[unit_index] = sum;
}
