// lists.cuh: posting lists as searches read them.
//
// A block of up to 128 postings is a header of 16 bytes and rows of 16 bytes. Documents are stored as differences from the
// block's first one, all of one width: any of them can be read alone, without a sum over those before and without
// exceptions, which is what lets every thread of a warp look up a document of its own. That takes four bits a posting more
// than gaps do; device memory has them. Behind the documents lies a byte a posting, a bound of its impact relative to the
// block's best: most postings are dismissed by it, before their frequency and their document's norm are read.
//
// Value i of a block is in column i % 4 of its rows, from bit i / 4 * width of that column on: lane t's four values 4t to
// 4t + 3 begin at one bit, so that two 16-byte loads and four funnel shifts unpack them. Impacts lie byte by byte.
//
// A list of BLOCK_LEN postings or more has a directory: how many of its postings come before document j << shift, for each j
// up to the first one behind the index's last document, with `shift` such that 8 to 16 postings on average lie between two of
// them.
//
//     a full block, documents of 7 bits, frequencies of 2     rows 0 to 6    documents less the first one
//     (row 1: bits 32 to 63 of each of the four columns)      rows 7 to 14   impacts, a byte each, in 255ths of the best
//                                                             rows 15, 16    frequencies less one
//
// Where device memory is too small for all rows, those of some blocks lie in page-locked memory of the host, and are read from
// there across the bus: their headers name rows behind the last one in device memory (Lists::rows_from). Headers and
// directories are in device memory in any case, so that a block is asked for only if its bound reaches the threshold.
//
// transcode.cu writes all this; the host's reader is in the tests of crates/core/src/search/gpu/lists.rs.
#pragma once

#include "tandem.cuh"

__device__ __forceinline__ u32 bit_width(u32 value) { return 32 - __clz(value); }
// Rows that `len` values of a width take.
__device__ __forceinline__ u32 value_rows(u32 len, u32 width) { return ((len + 3) / 4 * width + 31) / 32; }
// Rows that `len` bytes take.
__device__ __forceinline__ u32 byte_rows(u32 len) { return (len + 15) / 16; }

// A value of `width` bits, at most 32, at place `i` of the rows from `row` on.
__device__ __forceinline__ u32 value_at(const u32* rows, u32 row, u32 width, u32 i) {
    if (width == 0) return 0;
    const u32* column = rows + (4ull * row + i % 4);
    const u32 bit = i / 4 * width;
    const u32 low = __ldg(column + bit / 32 * 4), high = __ldg(column + (bit + width - 1) / 32 * 4);
    return cut_bits(low, high, bit, width);
}

// Lane t's values 4t to 4t + 3. Past the end they are of no meaning, but nothing is read past the rows of `quads` times four
// values. `lane` may be any number: a thread on its own reads any four.
__device__ __forceinline__ void values_of_lane(
    const u32* rows, u32 row, u32 width, u32 quads, u32 lane, u32 (&values)[4]
) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) values[i] = 0;
    if (width == 0 || lane >= quads) return;
    const uint4* first = reinterpret_cast<const uint4*>(rows) + row;
    const u32 bit = lane * width;
    const uint4 low = __ldg(first + bit / 32), high = __ldg(first + (bit + width - 1) / 32);
    const u32 mask = 0xffffffffu >> (32 - width);
    values[0] = __funnelshift_r(low.x, high.x, bit) & mask;
    values[1] = __funnelshift_r(low.y, high.y, bit) & mask;
    values[2] = __funnelshift_r(low.z, high.z, bit) & mask;
    values[3] = __funnelshift_r(low.w, high.w, bit) & mask;
}

// A block's header, taken apart. Rows of documents come first, then those of impacts, then those of frequencies.
//
//     packing   bits 0..5   width of documents     12..18   length less one
//                    6..11  width of frequencies   19..     rows before those of frequencies
struct Header {
    u32 row, first_doc, packing;
    float max_impact;

    Header() = default;
    __device__ __forceinline__ explicit Header(const Block* block) {
        const uint4 words = __ldg(reinterpret_cast<const uint4*>(block));
        row = words.x;
        first_doc = words.y;
        packing = words.z;
        max_impact = __uint_as_float(words.w);
    }

    __device__ static __forceinline__ u32 pack(u32 len, u32 doc_width, u32 freq_width) {
        return doc_width | freq_width << 6 | (len - 1) << 12 | (value_rows(len, doc_width) + byte_rows(len)) << 19;
    }
    __device__ __forceinline__ u32 doc_width() const { return packing & 63; }
    __device__ __forceinline__ u32 freq_width() const { return packing >> 6 & 63; }
    __device__ __forceinline__ u32 len() const { return (packing >> 12 & 127) + 1; }
    __device__ __forceinline__ u32 quads() const { return (len() + 3) / 4; }
    __device__ __forceinline__ u32 freq_row() const { return row + (packing >> 19); }
    __device__ __forceinline__ u32 impact_row() const { return freq_row() - byte_rows(len()); }

    __device__ __forceinline__ u32 doc_at(const u32* rows, u32 i) const {
        return first_doc + value_at(rows, row, doc_width(), i);
    }
    __device__ __forceinline__ u32 freq_at(const u32* rows, u32 i) const {
        return 1 + value_at(rows, freq_row(), freq_width(), i);
    }
    // The lane's four documents; NO_DOC past the block's end.
    __device__ __forceinline__ void docs_of_lane(const u32* rows, u32 lane, u32 (&docs)[4]) const {
        values_of_lane(rows, row, doc_width(), quads(), lane, docs);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) docs[i] = 4 * lane + i < len() ? docs[i] + first_doc : NO_DOC;
    }
    // The lane's four frequencies; of no meaning past the block's end.
    __device__ __forceinline__ void freqs_of_lane(const u32* rows, u32 lane, u32 (&freqs)[4]) const {
        values_of_lane(rows, freq_row(), freq_width(), quads(), lane, freqs);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) freqs[i] += 1;
    }
    // A bound of the impact at place `i`, in 255ths of `max_impact`.
    __device__ __forceinline__ u32 impact_at(const u32* rows, u32 i) const {
        return __ldg(reinterpret_cast<const unsigned char*>(rows) + (16ull * impact_row() + i));
    }
};

// Where a document is in a list.
struct Place {
    bool found;
    u32 position;   // in its block
    Header header;  // of the block
};

// Looks `doc` up in a term's list: a thread on its own, four neighbouring postings at a time. Documents between two entries of
// the directory lie about evenly: the search begins where `doc` would be then, looks beside that next, and halves what is left
// only after that. Before each look `doc`, if it is in the list, is among postings [low, high), and `guess` is one of them.
__device__ __forceinline__ Place find_doc(const Lists& lists, const QueryTerm& term, u32 doc) {
    Place place;
    place.found = false;
    u32 low = 0, high = term.doc_freq, guess = 0;
    u32 block = ~0u;
    if (term.shift != NO_DIRECTORY) {
        const u32* entry = lists.directory + (static_cast<u64>(DIRECTORY_STRIDE) * term.first_block + (doc >> term.shift));
        low = __ldg(entry);
        high = __ldg(entry + 1);
        const u32 after_entry = doc & (1u << term.shift) - 1;
        guess = low + static_cast<u32>(static_cast<u64>(high - low) * after_entry >> term.shift);
    } else {
        // The only block tells where its documents begin and, by their width, how far they reach at most.
        block = 0;
        place.header = Header(lists.blocks + term.first_block);
        if (doc < place.header.first_doc) return place;
        const u64 scaled = static_cast<u64>(doc - place.header.first_doc) * high >> place.header.doc_width();
        guess = static_cast<u32>(min(scaled, static_cast<u64>(high - 1)));
    }
    bool is_first = true;
    while (low < high) {
        if (guess / BLOCK_LEN != block) {
            block = guess / BLOCK_LEN;
            place.header = Header(lists.blocks + (term.first_block + block));
        }
        u32 docs[4];
        place.header.docs_of_lane(lists.rows_from(place.header.row), guess % BLOCK_LEN / 4, docs);
        const u32 below = (docs[0] < doc) + (docs[1] < doc) + (docs[2] < doc) + (docs[3] < doc);
        const u32 first = guess & ~3u;
        if (docs[0] == doc || docs[1] == doc || docs[2] == doc || docs[3] == doc) {
            place.found = true;
            place.position = first % BLOCK_LEN + below;
            return place;
        }
        if (below == 0) high = first;
        else if (below == 4) low = first + 4;
        else return place;
        guess = !is_first ? (low + high) / 2 : below == 0 ? first - 1 : first + 4;
        is_first = false;
    }
    return place;
}

// The blocks of a list that may have documents from `first` to `last`: [begin, end).
struct BlockRange {
    u32 begin, end;

    __device__ __forceinline__ BlockRange(const Lists& lists, const QueryTerm& term, u32 first, u32 last) {
        begin = 0;
        end = 1;
        if (term.shift == NO_DIRECTORY) return;
        const u32* entries = lists.directory + static_cast<u64>(DIRECTORY_STRIDE) * term.first_block;
        const u32 low = __ldg(entries + (first >> term.shift)), high = __ldg(entries + ((last >> term.shift) + 1));
        begin = low / BLOCK_LEN;
        end = low < high ? (high - 1) / BLOCK_LEN + 1 : begin;
    }
};
