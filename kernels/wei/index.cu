// index.cu: inserts the terms of slots into their B-trees and makes their postings, one warp per slot.
//
// A thread block is one warp, which takes the next slot when it is done with one. The slot's stream passes through a window of
// 512 bytes in shared memory, and so do the nodes on the way down: each lane compares one key, and the vote of the lanes
// selects the child. Full nodes are split on the way down, before they are entered.
// In:   streams of documents and strings (crates/papers/src/wei/trie/stream.rs), trees and terms of earlier runs.
// Out:  trees and terms with those of this run; postings of each slot in the order in which they began.
// Limits: the host provides room; documents below 2^31. Shared memory: 2 KiB.
// Launch bounds: 32 threads. Bound by latency: a step down waits for the node before it.
// Twin on the host: crates/papers/src/wei/trie/gpu/twin.rs.

#include "wei/wei.cuh"

// The strings of a stream on demand: bytes from `base` on are in shared memory.
struct Window {
    const u8* stream;
    uint4* rows;              // WINDOW_BYTES
    u32 base;

    __device__ __forceinline__ void load(u32 place) {
        base = place & ~15u;
        __syncwarp();
        rows[threadIdx.x] = reinterpret_cast<const uint4*>(stream + base)[threadIdx.x];
        __syncwarp();
    }

    // Loads `len` bytes from `place` on, at most WINDOW_BYTES - 16.
    __device__ __forceinline__ const u8* at(u32 place, u32 len) {
        if (place + len > base + WINDOW_BYTES) load(place);
        return reinterpret_cast<const u8*>(rows) + (place - base);
    }
};

// A string: its first four bytes, and the others in shared memory or, if it is long, in the stream.
struct Token {
    u32 cache;
    const u8* rest;
    u32 rest_len;
};

__device__ __forceinline__ u32 word_at(const u8* bytes) {
    return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | u32(bytes[3]) << 24;
}

__device__ __forceinline__ Token token_of(const u8* bytes, u32 len) {
    u32 cache = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) cache = cache << 8 | (i < len ? bytes[i] : 0);
    return {cache, bytes + min(len, 4u), len - min(len, 4u)};
}

// The order of a key and a token: below 0 if the key comes first, 0 if they are equal.
__device__ __forceinline__ int compare(const Trie& trie, u32 cache, u32 rest, const Token& token) {
    if (cache != token.cache) return cache < token.cache ? -1 : 1;
    if (rest == 0) return token.rest_len == 0 ? 0 : -1;
    const u8* bytes = trie.strings + rest;
    u32 len = *bytes++;
    if (len == LONG_MARK) {
        len = word_at(bytes);
        bytes += 4;
    }
    for (u32 i = 0; i < min(len, token.rest_len); i++) {
        const u32 a = bytes[i], b = token.rest[i];
        if (a != b) return a < b ? -1 : 1;
    }
    return len == token.rest_len ? 0 : len < token.rest_len ? -1 : 1;
}

__device__ __forceinline__ void load_node(Node* node, const Trie& trie, u32 at) {
    __syncwarp();
    reinterpret_cast<uint4*>(node)[threadIdx.x] = reinterpret_cast<const uint4*>(trie.nodes + at)[threadIdx.x];
    __syncwarp();
}

__device__ __forceinline__ void store_node(const Trie& trie, u32 at, const Node* node) {
    __syncwarp();
    reinterpret_cast<uint4*>(trie.nodes + at)[threadIdx.x] = reinterpret_cast<const uint4*>(node)[threadIdx.x];
    __syncwarp();
}

// Reserves `count` numbers of a counter and returns the first one in every lane.
__device__ __forceinline__ u32 take(u32* counter, u32 count) {
    u32 first = 0;
    if (threadIdx.x == 0) first = atomicAdd(counter, count);
    return uniform(first);
}

__device__ __forceinline__ void clear_node(Node* node, u32 is_leaf) {
    const u32 lane = threadIdx.x;
    __syncwarp();
    reinterpret_cast<uint4*>(node)[lane] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    if (lane < MAX_KEYS) node->caches[lane] = NO_KEY;
    if (lane == 0) node->is_leaf = is_leaf;
    __syncwarp();
}

// Inserts a key at `place`, with all lanes at once.
__device__ __forceinline__ void insert_key(Node* node, u32 place, u32 cache, u32 rest, u32 term) {
    const u32 lane = threadIdx.x, len = node->len;
    u32 moved_cache = 0, moved_rest = 0, moved_term = 0;
    const bool moves = lane >= place && lane < len;
    if (moves) {
        moved_cache = node->caches[lane];
        moved_rest = node->rests[lane];
        moved_term = node->terms[lane];
    }
    __syncwarp();
    if (moves) {
        node->caches[lane + 1] = moved_cache;
        node->rests[lane + 1] = moved_rest;
        node->terms[lane + 1] = moved_term;
    }
    if (lane == 0) {
        node->caches[place] = cache;
        node->rests[place] = rest;
        node->terms[place] = term;
        node->len = len + 1;
    }
    __syncwarp();
}

// Splits `child`, a full node with number `child_at`, at `place` of `node`, which is not full. `upper` takes the keys above the
// middle; returns its number.
__device__ __forceinline__ u32 split_child(const Trie& trie, Node* node, u32 at, u32 place, Node* child, u32 child_at, Node* upper) {
    const u32 lane = threadIdx.x;
    clear_node(upper, child->is_leaf);
    if (lane < TREE_DEGREE - 1) {
        upper->caches[lane] = child->caches[TREE_DEGREE + lane];
        upper->rests[lane] = child->rests[TREE_DEGREE + lane];
        upper->terms[lane] = child->terms[TREE_DEGREE + lane];
    }
    if (lane < TREE_DEGREE) upper->children[lane] = child->children[TREE_DEGREE + lane];
    if (lane == 0) upper->len = TREE_DEGREE - 1;
    const u32 cache = child->caches[TREE_DEGREE - 1];
    const u32 rest = child->rests[TREE_DEGREE - 1];
    const u32 term = child->terms[TREE_DEGREE - 1];
    __syncwarp();
    if (lane >= TREE_DEGREE - 1 && lane < MAX_KEYS) child->caches[lane] = NO_KEY;
    if (lane == 0) child->len = TREE_DEGREE - 1;
    const u32 upper_at = take(&trie.counters->nodes, 1);
    store_node(trie, child_at, child);
    store_node(trie, upper_at, upper);

    insert_key(node, place, cache, rest, term);
    u32 moved = 0;
    const bool moves = lane > place && lane < node->len;
    if (moves) moved = node->children[lane];
    __syncwarp();
    if (moves) node->children[lane + 1] = moved;
    if (lane == 0) node->children[place + 1] = upper_at;
    store_node(trie, at, node);
    return upper_at;
}

// Stores the bytes behind the cache and returns their place.
__device__ __forceinline__ u32 keep_rest(const Trie& trie, const Token& token) {
    if (token.rest_len == 0) return 0;
    const bool is_long = token.rest_len >= LONG_MARK;
    const u32 head = is_long ? 5 : 1;
    const u32 at = take(&trie.counters->strings, head + token.rest_len);
    u8* bytes = trie.strings + at;
    if (threadIdx.x == 0) {
        bytes[0] = is_long ? LONG_MARK : token.rest_len;
        for (u32 i = 1; i < head; i++) bytes[i] = token.rest_len >> (8 * (i - 1)) & 0xff;
    }
    for (u32 i = threadIdx.x; i < token.rest_len; i += INDEX_THREADS) bytes[head + i] = token.rest[i];
    return at;
}

struct Found {
    u32 term;
    bool is_new;
};

// Finds or inserts the token's term in the tree of `slot`.
__device__ __forceinline__ Found insert(const Trie& trie, u32 slot, u32& root, const Token& token, Node* node, Node* child, Node* upper) {
    const u32 lane = threadIdx.x;
    u32 at = root;
    if (at == NO_NODE) {
        at = take(&trie.counters->nodes, 1);
        clear_node(node, 1);
        root = at;
    } else {
        load_node(node, trie, at);
        if (node->len == MAX_KEYS) {
            Node* const old = node;
            node = child;
            child = old;
            root = take(&trie.counters->nodes, 1);
            clear_node(node, 0);
            if (lane == 0) node->children[0] = at;
            __syncwarp();
            split_child(trie, node, root, 0, child, at, upper);
            at = root;
        }
    }
    while (true) {
        int order = 1;
        if (lane < node->len) order = compare(trie, node->caches[lane], node->rests[lane], token);
        const u32 same = __ballot_sync(FULL_WARP, order == 0);
        if (same != 0) return {node->terms[__ffs(same) - 1], false};
        const u32 place = __popc(__ballot_sync(FULL_WARP, order < 0));
        if (node->is_leaf) {
            const u32 rest = keep_rest(trie, token);
            const u32 term = take(&trie.counters->terms, 1);
            if (lane == 0) trie.terms[term] = {slot, token.cache, rest};
            insert_key(node, place, token.cache, rest, term);
            store_node(trie, at, node);
            return {term, true};
        }
        u32 child_at = node->children[place];
        load_node(child, trie, child_at);
        if (child->len == MAX_KEYS) {
            const u32 upper_at = split_child(trie, node, at, place, child, child_at, upper);
            const int middle = compare(trie, node->caches[place], node->rests[place], token);
            if (middle == 0) return {node->terms[place], false};
            if (middle < 0) {
                Node* const below = child;
                child = upper;
                upper = below;
                child_at = upper_at;
            }
        }
        Node* const above = node;
        node = child;
        child = above;
        at = child_at;
    }
}

__device__ __forceinline__ u64 now_ns() {
    u64 now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

extern "C" __global__ void __launch_bounds__(INDEX_THREADS) index_slots(const __grid_constant__ Trie trie) {
    __shared__ uint4 rows[WINDOW_BYTES / sizeof(uint4)];
    __shared__ Node nodes[3];
    const u32 lane = threadIdx.x;
    while (true) {
        const u32 number = take(&trie.counters->next_task, 1);
        if (number >= trie.num_tasks) return;
        const u64 began = now_ns();
        const Task task = trie.tasks[number];
        Window window = {trie.input + u64(task.start) * 16, rows, 0};
        window.load(0);
        u32 root = trie.roots[task.slot];
        u32 doc = 0, num_postings = 0;
        for (u32 place = 0; place < task.bytes;) {
            const u32 mark = *window.at(place, 1);
            if (mark == DOCUMENT_MARK) {
                doc = trie.first_doc + word_at(window.at(place + 1, 4));
                place += 5;
                continue;
            }
            Token token;
            if (mark == LONG_MARK) {
                const u32 len = word_at(window.at(place + 1, 4));
                token = token_of(window.stream + place + 5, len);
                place += 5 + len;
            } else {
                token = token_of(window.at(place + 1, mark), mark);
                place += 1 + mark;
            }
            const Found found = insert(trie, task.slot, root, token, &nodes[0], &nodes[1], &nodes[2]);
            if (lane == 0) {
                State state = {0, 0};
                if (!found.is_new) state = trie.states[found.term];
                if (!found.is_new && state.doc == doc) {
                    trie.postings[state.posting].freq += 1;
                } else {
                    const u32 posting = task.first_posting + num_postings;
                    trie.postings[posting] = {found.term, doc, 1};
                    trie.states[found.term] = {doc, posting};
                    num_postings += 1;
                }
            }
            __syncwarp();
        }
        if (lane == 0) {
            trie.roots[task.slot] = root;
            trie.task_postings[number] = num_postings;
            trie.task_ns[number] = now_ns() - began;
        }
        __syncwarp();
    }
}
