// cut.cu: splits text into words and numbers each word by its slot in a hash table.
//
// The begin of a word follows from the bytes around it, sixteen bytes per thread, one bit per byte, as in
// crates/core/src/corpus/tokenizer/ascii.rs. Bytes above 127 are letters, in words that the host has cut. Each thread then
// takes one of the tile's words, hashes it and looks it up. Words are compared byte by byte with the text of their first
// occurrence.
// In:   a piece of text from `from` to `to`, both multiples of ROW, with blanks around it; its documents' ends.
// Out:  tokens in text order; slots of new words.
// Limits: text below 2^32 - 1 bytes; fewer distinct words than slots, so that a free one exists.
// Launch bounds: 256 threads. Bound by latency of the table and of earlier occurrences.

#include "indexing/indexing.cuh"

__device__ __forceinline__ bool is_from(u32 byte, u32 low, u32 high) { return byte - low <= high - low; }
__device__ __forceinline__ bool is_letter(u32 byte) { return is_from(byte | 0x20, 'a', 'z') || byte >= 0x80; }
__device__ __forceinline__ bool is_digit(u32 byte) { return is_from(byte, '0', '9'); }
// These bytes join two letters, or two digits.
__device__ __forceinline__ bool is_mid_letter(u32 byte) { return byte == '\'' || byte == '.' || byte == ':'; }
__device__ __forceinline__ bool is_mid_digit(u32 byte) { return byte == '\'' || is_from(byte, ',', '.') && byte != '-' || byte == ';'; }

// The bytes of a word in order.
struct Word {
    const u8* next;
    u32 before;
    bool is_unicode;

    __device__ __forceinline__ Word(const Arrays& arrays, u32 place)
        : next(arrays.text + place), before(' '), is_unicode(arrays.is_unicode != 0) {}

    // The next letter or digit in lower case, 0 behind the last.
    __device__ __forceinline__ u32 take() {
        while (true) {
            const u32 byte = *next;
            if (is_letter(byte) || is_digit(byte)) {
                next++;
                before = byte;
                return is_from(byte, 'A', 'Z') ? byte | 0x20 : byte;
            }
            if (!is_unicode) return 0;
            if (byte != '_') {
                const u32 after = next[1];
                const bool joins = is_mid_letter(byte) && is_letter(before) && is_letter(after)
                    || is_mid_digit(byte) && is_digit(before) && is_digit(after);
                if (!joins) return 0;
            }
            next++;
            before = byte;
        }
    }
};

// Bits of the row's bytes at which words begin. Runs of underscores alone are no words.
__device__ __forceinline__ u32 word_starts(const Arrays& arrays, u32 row) {
    // Two bytes before the row and one behind it: 19 bits, with the row from bit 2 on.
    u32 letters = 0, digits = 0, underscores = 0, mid_letters = 0, mid_digits = 0;
    auto look = [&](u32 byte, u32 bit) {
        letters |= u32(is_letter(byte)) << bit;
        digits |= u32(is_digit(byte)) << bit;
        underscores |= u32(byte == '_') << bit;
        mid_letters |= u32(is_mid_letter(byte)) << bit;
        mid_digits |= u32(is_mid_digit(byte)) << bit;
    };
    const u8* text = arrays.text + row;
    look(text[-2], 0);
    look(text[-1], 1);
    const uint4 bytes = *reinterpret_cast<const uint4*>(text);
    const u32 words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
#pragma unroll
    for (u32 i = 0; i < ROW; i++) look(words[i / 4] >> (8 * (i % 4)) & 0xff, 2 + i);
    look(text[ROW], 2 + ROW);

    u32 inside = letters | digits;
    if (arrays.is_unicode) {
        inside |= underscores;
        inside |= mid_letters & letters << 1 & letters >> 1 | mid_digits & digits << 1 & digits >> 1;
    }
    u32 starts = (inside & ~(inside << 1)) >> 2 & 0xffff;
    if (arrays.is_unicode) {
        for (u32 unsure = starts & underscores >> 2; unsure != 0; unsure &= unsure - 1) {
            const u32 bit = __ffs(unsure) - 1;
            if (Word(arrays, row + bit).take() == 0) starts &= ~(1u << bit);
        }
    }
    return starts;
}

// Counts the words that begin in each tile.
extern "C" __global__ void __launch_bounds__(INDEXING_THREADS) count_words(const __grid_constant__ Arrays arrays, u32 from, u32 to) {
    const u32 row = from + blockIdx.x * TEXT_TILE + threadIdx.x * ROW;
    const u32 count = row < to ? __popc(word_starts(arrays, row)) : 0;
    const Prefix prefix = block_prefix(count);
    if (threadIdx.x == 0) arrays.tile_counts[blockIdx.x] = prefix.sum;
}

// Replaces the counts of tiles by the sums before them, starting at `total`, and adds their sum to `total`.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_counts(u32* counts, u32 num_tiles, u32* total) {
    __shared__ u32 warp_sums[WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u32 carry = *total;
    for (u32 first = 0; first < num_tiles; first += SCAN_THREADS) {
        const u32 tile = first + threadIdx.x;
        const u32 count = tile < num_tiles ? counts[tile] : 0;
        const u32 inclusive = warp_prefix(count, lane);
        if (lane == WARP - 1) warp_sums[warp] = inclusive;
        __syncthreads();
        // Every warp computes the prefix of the warps' sums, which is quicker than waiting for one warp.
        const u32 sums = warp_prefix(warp_sums[lane], lane);
        const u32 before = __shfl_sync(FULL_WARP, sums, warp == 0 ? 0 : warp - 1);
        if (tile < num_tiles) counts[tile] = carry + (warp == 0 ? 0 : before) + inclusive - count;
        carry += __shfl_sync(FULL_WARP, sums, WARP - 1);
        __syncthreads();
    }
    if (threadIdx.x == 0) *total = carry;
}

__device__ __forceinline__ u64 hash_of(Word word) {
    u64 hash = 0xcbf29ce484222325ull;
    for (u32 byte = word.take(); byte != 0; byte = word.take()) hash = (hash ^ byte) * 0x100000001b3ull;
    // Makes all bits depend on all bytes.
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ull;
    return hash ^ hash >> 32;
}

__device__ __forceinline__ bool is_same(Word a, Word b) {
    while (true) {
        const u32 byte = a.take();
        if (byte != b.take()) return false;
        if (byte == 0) return true;
    }
}

// The slot of the word at `place`: its existing one, or a free one, which it takes.
__device__ __forceinline__ u32 find_slot(const Arrays& arrays, u32 place) {
    const Word word(arrays, place);
    const u64 hash = hash_of(word);
    const u64 entry = hash & 0xffffffff00000000ull | (place + 1);
    u32 slot = u32(hash) & arrays.slot_mask;
    while (true) {
        // A taken slot stays taken. A slot that seems free by an old value is checked again by the swap.
        u64 found = arrays.slots[slot];
        if (found == 0) {
            found = atomicCAS(arrays.slots + slot, 0ull, entry);
            if (found == 0) {
                atomicAdd(&arrays.totals->words, 1);
                return slot;
            }
        }
        if (found >> 32 == entry >> 32 && is_same(Word(arrays, u32(found) - 1), word)) return slot;
        slot = slot + 1 & arrays.slot_mask;
    }
}

// The document of the text at `place`, from `low` to below `high`.
__device__ __forceinline__ u32 document_of(const Arrays& arrays, u32 place, u32 low, u32 high) {
    while (low + 1 < high) {
        const u32 middle = (low + high) / 2;
        if (arrays.doc_ends[middle - 1] <= place) low = middle; else high = middle;
    }
    return low;
}

// Numbers the words of a piece with the documents from `first_doc` to below `end_doc`.
extern "C" __global__ void __launch_bounds__(INDEXING_THREADS)
number_words(const __grid_constant__ Arrays arrays, u32 from, u32 to, u32 first_doc, u32 end_doc) {
    __shared__ unsigned short starts[MAX_TILE_WORDS];
    const u32 tile = from + blockIdx.x * TEXT_TILE;
    const u32 row = threadIdx.x * ROW;
    u32 mine = tile + row < to ? word_starts(arrays, tile + row) : 0;
    const Prefix prefix = block_prefix(__popc(mine));
    for (u32 at = prefix.before; mine != 0; mine &= mine - 1, at++) starts[at] = row + __ffs(mine) - 1;
    __syncthreads();
    const u32 first_token = arrays.tile_counts[blockIdx.x];
    for (u32 i = threadIdx.x; i < prefix.sum; i += INDEXING_THREADS) {
        const u32 place = tile + starts[i];
        const u32 doc = document_of(arrays, place, first_doc, end_doc);
        arrays.tokens[first_token + i] = u64(find_slot(arrays, place)) << 32 | doc;
    }
}

// Writes the distinct words in lower case, in any order, to `others`, and their places.
extern "C" __global__ void __launch_bounds__(INDEXING_THREADS) list_words(const __grid_constant__ Arrays arrays) {
    u8* const bytes = reinterpret_cast<u8*>(arrays.others);
    for (u32 slot = blockIdx.x * INDEXING_THREADS + threadIdx.x; slot <= arrays.slot_mask; slot += gridDim.x * INDEXING_THREADS) {
        const u64 found = arrays.slots[slot];
        if (found == 0) continue;
        u32 len = 0;
        for (Word word(arrays, u32(found) - 1); word.take() != 0;) len++;
        const u32 number = atomicAdd(&arrays.totals->listed_words, 1);
        const u32 start = atomicAdd(&arrays.totals->listed_bytes, len);
        arrays.word_slots[number] = slot;
        arrays.word_places[number] = {start, len};
        Word word(arrays, u32(found) - 1);
        for (u32 i = 0; i < len; i++) bytes[start + i] = word.take();
    }
}

// Writes terms to the slots of their words.
extern "C" __global__ void __launch_bounds__(INDEXING_THREADS) set_terms(const __grid_constant__ Arrays arrays, u32 num_words) {
    const u32 number = blockIdx.x * INDEXING_THREADS + threadIdx.x;
    if (number < num_words) arrays.slots[arrays.word_slots[number]] = arrays.word_terms[number];
}

// Writes terms to tokens, and counts the tokens of each document that are no stop words.
extern "C" __global__ void __launch_bounds__(INDEXING_THREADS)
map_tokens(const __grid_constant__ Arrays arrays, u32 num_tokens, u32 num_terms) {
    const u32 i = blockIdx.x * INDEXING_THREADS + threadIdx.x;
    u32 doc = STOP_WORD;
    if (i < num_tokens) {
        const u64 token = arrays.tokens[i];
        // Stop words sort last.
        u32 term = u32(arrays.slots[token >> 32]);
        if (term == STOP_WORD) term = num_terms; else doc = u32(token);
        arrays.tokens[i] = u64(term) << 32 | u32(token);
    }
    // Nearly always all lanes of a warp have one document.
    const u32 peers = __match_any_sync(FULL_WARP, doc);
    const u32 lane = threadIdx.x % WARP;
    if (doc != STOP_WORD && lane == __ffs(peers) - 1) atomicAdd(arrays.doc_lengths + doc, __popc(peers));
}
