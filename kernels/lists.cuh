// lists.cuh: posting lists in the searched form.
//
// A block of up to 128 postings is a header of 16 bytes and rows of 16 bytes. Documents are differences from the block's first
// one, all of one width. Any thread can read any of them alone, without a sum over earlier ones and without exceptions. This
// takes four bits per posting more than gaps. Each posting also has a byte that bounds its impact relative to the block's best;
// it dismisses most postings before their frequencies and norms are read.
//
// Value i of a block is in column i % 4 of its rows, from bit i / 4 * width of that column on. Lane t's four values 4t to 4t +
// 3 begin at one bit, so two 16-byte loads and four funnel shifts unpack them. Impacts are consecutive bytes.
//
// A list of BLOCK_LEN postings or more has a directory of equal intervals of documents, with 13 postings on average. An entry
// tells how many postings are before its interval, and which of 32 parts of the interval have any: a look-up of a document that
// the list lacks, as most are, ends there in two of three cases. Fixed-point arithmetic finds a document's interval and part.
// Under a budget of device memory the intervals may be longer, which leaves more room for rows.
//
//     a full block, documents of 7 bits, frequencies of 2     rows 0 to 6    documents less the first one
//     (row 1: bits 32 to 63 of each of the four columns)      rows 7 to 14   impacts, one byte each, in 255ths of the best
//                                                             rows 15, 16    frequencies less one
//
// If device memory is too small for all rows, the rows of some blocks are in page-locked host memory and are read across the
// bus: their headers name rows behind the border (Lists::rows_from). Headers and directories are always in device memory, so a
// block is read only if its bound reaches the threshold.
//
// transcode.cu writes this form; the host's reader is in the tests of crates/engine/src/search/gpu/lists.rs.
#pragma once

#include "tandem.cuh"

constexpr u32 LINE_ROWS = 8;  // rows of a line of the L2 cache

__device__ __forceinline__ u32 bit_width(u32 value) { return 32 - __clz(value); }
// Rows of `len` values of a width.
__device__ __forceinline__ u32 value_rows(u32 len, u32 width) { return ((len + 3) / 4 * width + 31) / 32; }
// Rows of `len` bytes.
__device__ __forceinline__ u32 byte_rows(u32 len) { return (len + 15) / 16; }

// The value of `width` bits, at most 32, at place `i` of the rows from `row` on.
__device__ __forceinline__ u32 value_at(const u32* rows, u32 row, u32 width, u32 i) {
    if (width == 0) return 0;
    const u32* column = rows + (4ull * row + i % 4);
    const u32 bit = i / 4 * width;
    const u32 low = __ldg(column + bit / 32 * 4), high = __ldg(column + (bit + width - 1) / 32 * 4);
    return cut_bits(low, high, bit, width);
}

// Lane t's values 4t to 4t + 3, unspecified past the end. Reads no rows beyond those of `quads` times four values. A single
// thread may pass any `lane`.
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

// A block's header, unpacked. Rows of documents come first, then impacts, then frequencies.
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
    // The lane's four documents, NO_DOC past the block's end.
    __device__ __forceinline__ void docs_of_lane(const u32* rows, u32 lane, u32 (&docs)[4]) const {
        values_of_lane(rows, row, doc_width(), quads(), lane, docs);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) docs[i] = 4 * lane + i < len() ? docs[i] + first_doc : NO_DOC;
    }
    // The lane's four frequencies, unspecified past the block's end.
    __device__ __forceinline__ void freqs_of_lane(const u32* rows, u32 lane, u32 (&freqs)[4]) const {
        values_of_lane(rows, freq_row(), freq_width(), quads(), lane, freqs);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) freqs[i] += 1;
    }
    // Fetches the document at place `i`.
    __device__ __forceinline__ void prefetch_doc(const u32* rows, u32 i) const {
        prefetch(rows + 4 * (static_cast<u64>(row) + (i / 4 * doc_width() >> 5)));
    }
    // Fetches the rows, except that the last ones may be in one more line.
    __device__ __forceinline__ void prefetch_rows(const u32* rows) const {
        const u32 num_rows = (packing >> 19) + value_rows(len(), freq_width());
        for (u32 i = 0; i < num_rows; i += LINE_ROWS) prefetch(rows + 4 * (static_cast<u64>(row) + i));
    }
    // Upper bound of the impact at place `i`, in 255ths of `max_impact`.
    __device__ __forceinline__ u32 impact_at(const u32* rows, u32 i) const {
        return __ldg(reinterpret_cast<const unsigned char*>(rows) + (16ull * impact_row() + i));
    }
};

constexpr u32 NOT_FOUND = 0xffffffffu;

// The place of a document in the directory of a list, which must have one.
struct DirectoryPlace {
    const DirectoryEntry* at;
    u32 part;  // of the entry's interval

    __device__ __forceinline__ DirectoryPlace(const Lists& lists, const QueryTerm& term, u32 doc) {
        const u64 place = static_cast<u64>(doc) * term.scale;
        at = lists.directory + (static_cast<u64>(lists.directory_stride) * term.first_block + (place >> 32));
        part = static_cast<u32>(place) >> 27;
    }

    // Reads the entry at once.
    __device__ __forceinline__ DirectoryEntry entry() const {
        const uint2 words = __ldg(reinterpret_cast<const uint2*>(at));
        return {words.x, words.y};
    }
    // Whether the list may have the document.
    __device__ __forceinline__ bool is_in(const DirectoryEntry& entry) const { return (entry.parts >> part & 1) != 0; }
    // The postings before the next interval.
    __device__ __forceinline__ u32 end() const { return __ldg(&at[1].before); }
};

// Whether a term's list may have `doc`, by its directory alone. If so, the header of the block is fetched that find_doc reads.
__device__ __forceinline__ bool may_have(const Lists& lists, const QueryTerm& term, u32 doc) {
    if (term.scale == 0) return true;
    const DirectoryPlace place(lists, term, doc);
    const DirectoryEntry entry = place.entry();
    if (!place.is_in(entry)) return false;
    prefetch(lists.blocks + (term.first_block + entry.before / BLOCK_LEN));
    return true;
}

// The position of `doc` in a term's list. NOT_FOUND if the list lacks it, or if the bound of its block and the score of the other
// terms (at most `others`) together cannot reach `floor`.
//
// One thread looks it up, four neighbouring postings at a time. The parts of the directory entry tell its place nearly: the
// search starts there, then looks at its neighbours, then bisects. Before each step `doc`, if present, is among postings [low,
// high), which contain `guess`.
__device__ __forceinline__ u32 find_doc(const Lists& lists, const QueryTerm& term, u32 doc, float others, float floor) {
    Header header;
    u32 low = 0, high = term.doc_freq, guess = 0;
    u32 block = ~0u;
    if (term.scale != 0) {
        const DirectoryPlace place(lists, term, doc);
        const DirectoryEntry entry = place.entry();
        low = entry.before;
        high = place.end();
        if (!place.is_in(entry)) return NOT_FOUND;
        // Each part with postings has one, and the others are shared out evenly.
        guess = low + __popc(entry.parts & (1u << place.part) - 1) + ((high - low - __popc(entry.parts)) * place.part >> 5);
    } else {
        // The only block gives its first document and, by their width, an upper bound of its last one.
        block = 0;
        header = Header(lists.blocks + term.first_block);
        if (doc < header.first_doc) return NOT_FOUND;
        const u64 scaled = static_cast<u64>(doc - header.first_doc) * high >> header.doc_width();
        guess = static_cast<u32>(min(scaled, static_cast<u64>(high - 1)));
    }
    bool is_first = true;
    while (low < high) {
        if (guess / BLOCK_LEN != block) {
            block = guess / BLOCK_LEN;
            header = Header(lists.blocks + (term.first_block + block));
            // The bound says nothing about a document that may be in a neighbouring block.
            const bool is_only_block = low / BLOCK_LEN == (high - 1) / BLOCK_LEN;
            if (is_only_block && (others + term.weight * header.max_impact) * BOUND_SLACK < floor) return NOT_FOUND;
        }
        u32 docs[4];
        header.docs_of_lane(lists.rows_from(header.row), guess % BLOCK_LEN / 4, docs);
        const u32 below = (docs[0] < doc) + (docs[1] < doc) + (docs[2] < doc) + (docs[3] < doc);
        const u32 first = guess & ~3u;
        if (docs[0] == doc || docs[1] == doc || docs[2] == doc || docs[3] == doc) return first + below;
        if (below == 0) high = first;
        else if (below == 4) low = first + 4;
        else return NOT_FOUND;
        guess = !is_first ? (low + high) / 2 : below == 0 ? first - 1 : first + 4;
        is_first = false;
    }
    return NOT_FOUND;
}

// The blocks [begin, end) of a list that may have documents from `first` to `last`.
struct BlockRange {
    u32 begin, end;

    __device__ __forceinline__ BlockRange(const Lists& lists, const QueryTerm& term, u32 first, u32 last) {
        begin = 0;
        end = 1;
        if (term.scale == 0) return;
        const u32 low = DirectoryPlace(lists, term, first).entry().before, high = DirectoryPlace(lists, term, last).end();
        begin = low / BLOCK_LEN;
        end = low < high ? (high - 1) / BLOCK_LEN + 1 : begin;
    }
};
