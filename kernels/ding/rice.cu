// rice.cu: Rice decoding as two block-local prefix sums, after Ding et al. 2009, section 6.1.
//
//     gaps - 1    5  9  2  6          b = 2: quotients 1 2 0 1, remainders 1 1 2 2
//     unary       1 0 1 1 0 0 1 0     ones up to each bit: 1 1 2 3 3 3 4 4; at the zeros: 1 3 3 4
//     binary      1 1 2 2             prefix sum: 1 2 4 6
//     documents   5 15 18 25          = 4 x (1 3 3 4) + (1 2 4 6) + (0 1 2 3), the last for the ones that gaps omit
//
// In:   the two parts, with the sums before each 128 bits and each 128 values. Out: documents.
// The first kernel sums and compacts the unary part, the second sums the binary part and combines both.
// Launch bounds: 256 threads; registers do not limit occupancy. The first is bound by instructions, one bit per lane.
// Twin on the host: the decoder in crates/papers/src/codec/rice.rs.

#include "ding/ding.cuh"

// A warp takes 1024 bits, one word per lane; word after word, every lane reads one bit. A list begins with a warp of its own:
// first_unary_block is a multiple of eight.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) rice_unary(
    const RiceList* lists, u32 num_lists, u32 num_chunks
) {
    constexpr u32 BLOCKS_A_CHUNK = WARP / 4;
    const u32 lane = threadIdx.x % WARP;
    const u32 chunk = thread_index() / WARP;
    if (chunk >= num_chunks) return;
    const RiceList& list = lists[find_owner(lists, num_lists, &RiceList::first_unary_block, chunk * BLOCKS_A_CHUNK)];
    const u32 word_index = (chunk * BLOCKS_A_CHUNK - list.first_unary_block) * 4 + lane;

    const u32 len = list.len;
    const u32 num_words = (list.num_unary_bits + 31) / 32;
    const u32 word = word_index < num_words ? __ldg(list.unary + word_index) : ~0u;
    // Ones before the word: those before its 128 bits, and those in earlier words of these.
    u32 ones = word_index < num_words ? __ldg(list.unary_sums + word_index / 4) : 0;
    const u32 count = __popc(word);
#pragma unroll
    for (u32 distance = 1; distance < 4; ++distance) {
        const u32 before = __shfl_up_sync(FULL_WARP, count, distance);
        if (lane % 4 >= distance) ones += before;
    }
    const u32 first_word = word_index - lane;
    u32* quotients = list.quotients;
    for (u32 i = 0; i < WARP && first_word + i < num_words; ++i) {
        const u32 bits = __shfl_sync(FULL_WARP, word, i);
        const u32 sum = __shfl_sync(FULL_WARP, ones, i) + __popc(bits & ((1u << lane) - 1));
        // The rank of a 0 bit, the number of zeros before it, is the value's place.
        const u32 place = 32 * (first_word + i) + lane - sum;
        if ((bits >> lane & 1) == 0 && place < len) quotients[place] = sum;
    }
}

// A warp takes 128 values, four per lane.
extern "C" __global__ void __launch_bounds__(PUBLISHED_THREADS) rice_documents(
    const RiceList* lists, u32 num_lists, u32 num_blocks
) {
    const u32 lane = threadIdx.x % WARP;
    const u32 unit = thread_index() / WARP;
    if (unit >= num_blocks) return;
    const RiceList& list = lists[find_owner(lists, num_lists, &RiceList::first_block, unit)];
    const u32 block = unit - list.first_block;
    const u32 first = block * RICE_BLOCK_LEN + 4 * lane;
    const u32 width = list.width, len = list.len;

    u32 docs[4];
    unpack_group(list.binary + block * (RICE_BLOCK_LEN / 32) * width, width, len - block * RICE_BLOCK_LEN, lane, docs);
#pragma unroll
    for (u32 i = 1; i < 4; ++i) docs[i] += docs[i - 1];
    const u32 before = __ldg(list.binary_sums + block) + warp_prefix(docs[3], lane) - docs[3] + first;
    const bool is_whole = first + 3 < len;
    uint4 quotients = make_uint4(0, 0, 0, 0);
    if (is_whole) {
        quotients = __ldg(reinterpret_cast<const uint4*>(list.quotients + first));
    } else {
        if (first < len) quotients.x = list.quotients[first];
        if (first + 1 < len) quotients.y = list.quotients[first + 1];
        if (first + 2 < len) quotients.z = list.quotients[first + 2];
    }
    docs[0] += before + (quotients.x << width);
    docs[1] += before + (quotients.y << width) + 1;
    docs[2] += before + (quotients.z << width) + 2;
    docs[3] += before + (quotients.w << width) + 3;
    if (is_whole) {
        *reinterpret_cast<uint4*>(list.output + first) = make_uint4(docs[0], docs[1], docs[2], docs[3]);
    } else {
#pragma unroll
        for (u32 i = 0; i < 3; ++i) {
            if (first + i < len) list.output[first + i] = docs[i];
        }
    }
}
