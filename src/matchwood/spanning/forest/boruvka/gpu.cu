// Boruvka's method on the GPU: the first edges, the list of what is left, and the rounds on that list, which
// Kruskal's method uses too.  Host side: gpu.py.  The steps: cpu.py.
//
//   first_edges     every row's first edge: a row reduction, no atomics
//   hook_vertices   vertices hooked along these edges, which are marked
//   mark_largest    a bit for every vertex of the largest tree
//   list_light      the light edges between different trees; each offered to both trees
//   list_rest       what joins different trees, of any weight
// and on a list:
//   flatten         every vertex directly under its root
//   hook_trees      an edge that one of its trees has kept joins them, and is marked
//   shrink          the list without the edges within one tree; the others offered again
// A round is hook_trees and shrink; every tree with an edge is joined in it, so there are log2(n).
//
// An edge's word is the prefix of its weight above the place k of its entry in the upper triangle
// (order.py): words ascend as edges do.  With EXACT prefixes words alone decide; else of two
// equal ones the weights at their entries decide.
//
// Races: best[c] is lowered by atomics alone and the order is total; up[] is union-find
// (union_find.cuh), in which hooks go from larger to smaller roots; marks are set by atomicOr.  The
// order of the list depends on scheduling, but nothing that is read from it does.
//
// What differs from the CPU: trees get no new numbers in a round but keep the vertex that is
// their root, and warps write the list in the order of arrival; its words carry the order.
#include "matchwood/atomics.cuh"
#include "matchwood/edges.cuh"
#include "matchwood/frontier.cuh"
#include "matchwood/order.cuh"
#include "matchwood/row_reduce.cuh"
#include "matchwood/threads.cuh"
#include "matchwood/union_find.cuh"

constexpr int TILE_ENTRIES = 2048;   // rows and entries of a warp that lists what is left,
constexpr int LIGHT_ENTRIES = 4096;  // or light edges
constexpr int LIGHT_BATCH = 8;       // weights whose loads a lane has in flight at once
constexpr int LIST_BLOCK = 256;  // threads of blocks that write lists
constexpr int HOPS = 64;  // steps up a tree in one launch; no chain is longer than 64^4

// A list that the lanes of a warp append to; 32 edges at a time are written side by side.
template <typename I>
struct Appender {
    I* ends;     // two for each edge
    Code* words;
    unsigned long long* size;  // counts also those for which there is no room
    unsigned long long room;
    I (*a)[2 * WARP];  // of this block's warps, in shared memory
    I (*b)[2 * WARP];
    Code (*w)[2 * WARP];
    int fill;

    __device__ __forceinline__ void write(int count)
    {
        unsigned long long start = 0;
        if (lane() == 0) start = atomicAdd(size, (unsigned long long)count);
        unsigned long long place = __shfl_sync(ALL, start, 0) + lane();
        if (lane() < count && place < room) {
            ends[2 * place] = a[warp()][lane()];
            ends[2 * place + 1] = b[warp()][lane()];
            words[place] = w[warp()][lane()];
        }
        __syncwarp();
    }

    // All lanes of the warp call.
    __device__ __forceinline__ void push(bool wanted, I x, I y, Code word)
    {
        unsigned votes = __ballot_sync(ALL, wanted);
        if (votes == 0) return;
        int place = fill + __popc(votes & lanes_below());
        if (wanted) {
            a[warp()][place] = x;
            b[warp()][place] = y;
            w[warp()][place] = word;
        }
        fill += __popc(votes);
        __syncwarp();
        if (fill < WARP) return;
        write(WARP);
        fill -= WARP;
        I next_a = a[warp()][WARP + lane()], next_b = b[warp()][WARP + lane()];
        Code next_w = w[warp()][WARP + lane()];
        __syncwarp();
        a[warp()][lane()] = next_a;
        b[warp()][lane()] = next_b;
        w[warp()][lane()] = next_w;
        __syncwarp();
    }

    __device__ __forceinline__ void finish()
    {
        if (fill > 0) write(fill);
    }
};

template <bool EXACT, typename I, typename B>
__device__ __forceinline__ void offer(Code* best, I c, Code word, const Order& order, const B* bits)
{
    Code seen = load_relaxed(&best[c]);
    if constexpr (EXACT) {
        if (word < seen) atomicMin(&best[c], word);
    } else {
        while (word_before(word, seen, order, bits)) {
            Code before = atomicCAS(&best[c], seen, word);
            if (before == seen) return;
            seen = before;
        }
    }
}

// The first edge of a row.  Ties within a row go by the entry: columns ascend.
template <typename I, typename B>
struct FirstEdge {
    struct Product {
        Code code;
        long long k;
    };
    using Accumulator = Product;
    Order order;
    const B* __restrict__ bits;
    const I* __restrict__ indices;
    I* near;
    I* entry;

    __device__ __forceinline__ Product multiply(I k, I) const
    {
        return Product{code_of(order, bits[k]), (long long)k};
    }
    __device__ __forceinline__ Accumulator start(I) const { return Accumulator{~Code(0), -1}; }
    __device__ __forceinline__ void add(Accumulator& a, const Product& p) const { merge(a, p); }
    __device__ __forceinline__ void merge(Accumulator& a, const Accumulator& b) const
    {
        if (b.k >= 0 && (a.k < 0 || b.code < a.code || (b.code == a.code && b.k < a.k))) a = b;
    }
    __device__ __forceinline__ void finish(I row, const Accumulator& a) const
    {
        near[row] = a.k < 0 ? row : indices[a.k];
        entry[row] = (I)a.k;
    }
};

// The same where prefixes are exact and leave room for the place: one word.
template <typename I, typename B>
struct FirstWord {
    using Product = Code;
    using Accumulator = Code;
    Order order;
    const B* __restrict__ bits;
    const I* __restrict__ indices;
    I* near;
    I* entry;

    __device__ __forceinline__ Code multiply(I k, I) const
    {
        return code_of(order, bits[k]) << order.places | (Code)k;
    }
    __device__ __forceinline__ Code start(I) const { return NOTHING; }
    __device__ __forceinline__ void add(Code& a, Code b) const { a = b < a ? b : a; }
    __device__ __forceinline__ void merge(Code& a, Code b) const { a = b < a ? b : a; }
    __device__ __forceinline__ void finish(I row, Code a) const
    {
        I k = a == NOTHING ? I(-1) : (I)order.place(a);
        near[row] = k < 0 ? row : indices[k];
        entry[row] = k;
    }
};

template <bool EXACT, typename I, typename B>
struct FirstOf {
    using type = FirstEdge<I, B>;
};
template <typename I, typename B>
struct FirstOf<true, I, B> {
    using type = FirstWord<I, B>;
};

template <typename I, typename B, bool EXACT, int TILE>
__global__ void __launch_bounds__(ROW_BLOCK)
first_edges(const I* __restrict__ indptr, const I* __restrict__ indices,
            const I* __restrict__ tile_row, const I* __restrict__ tile_entry,
            unsigned char* partials, unsigned int* chunks_done, const B* __restrict__ bits,
            const unsigned long long* order, I* near, I* entry)
{
    typename FirstOf<EXACT, I, B>::type op{Order(order), bits, indices, near, entry};
    reduce_rows<TILE>(indptr, indices, RowTiles<I>{tile_row, tile_entry}, op, partials, chunks_done);
}

// One thread per vertex.  The smaller of two that chose each other stays a root.
template <typename I>
__global__ void hook_vertices(I n, const I* indptr, const I* indices, const I* near, const I* entry,
                              I* up, Word* marks)
{
    long long u = global_thread();
    if (u >= n) return;
    I v = near[u];
    bool root = v == u || (near[v] == u && u < v);
    up[u] = root ? (I)u : v;
    if (root) return;
    I k = u < v ? entry[u] : upper_entry(indptr, indices, (I)u, v);
    if (k >= 0) set_bit(marks, k);
}

// One thread per vertex, a word of the bitmap per warp.  `up` is flat.
template <typename I>
__global__ void mark_largest(I n, const I* __restrict__ up, I root, unsigned int* bits)
{
    long long v = global_thread();
    unsigned int votes = __ballot_sync(ALL, v < n && up[v < n ? v : 0] == root);
    if (lane() == 0 && v < n) bits[v / WARP] = votes;
}

// The edges whose prefix is below `light`.  `up` is flat and read-only here, as in list_rest.  A warp
// reads weights side by side; rows and columns are looked up for light entries alone, 32 together.
template <typename I, typename B, bool EXACT>
__global__ void __launch_bounds__(LIST_BLOCK)
list_light(I n, I nnz, const I* __restrict__ indptr, const I* __restrict__ indices, const B* __restrict__ bits,
           const unsigned long long* order_words, unsigned long long light, const I* __restrict__ up, I* ends,
           Code* words, unsigned long long* size, unsigned long long room, Code* best)
{
    __shared__ I a[LIST_BLOCK / WARP][2 * WARP], b[LIST_BLOCK / WARP][2 * WARP];
    __shared__ Code w[LIST_BLOCK / WARP][2 * WARP];
    __shared__ I light_entries[LIST_BLOCK / WARP][2 * WARP];
    Order order(order_words);
    Appender<I> list{ends, words, size, room, a, b, w, 0};
    I* waiting = light_entries[warp()];
    for_spans<LIGHT_ENTRIES>(n, nnz, indptr, [&](long long row, long long last, I start, I stop) {
        int count = 0;
        auto list_first = [&](int many) {
            I mine = 0, other = 0;
            Code word = 0;
            if (lane() < many) {
                I k = waiting[lane()], v = indices[k], u = (I)row_of(row, last + 1, indptr, k);
                if (v > u) {
                    mine = up[u];
                    other = up[v];
                }
                if (mine != other) {
                    word = order.word(code_of(order, bits[k]), (Code)k);
                    offer<EXACT>(best, mine, word, order, bits);
                    offer<EXACT>(best, other, word, order, bits);
                }
            }
            __syncwarp();
            list.push(mine != other, mine, other, word);
        };
        for (long long first = start; first < stop; first += LIGHT_BATCH * WARP) {
            B its[LIGHT_BATCH];
#pragma unroll
            for (int j = 0; j < LIGHT_BATCH; ++j) {
                long long k = first + j * WARP + lane();
                its[j] = k < stop ? bits[k] : B(0);
            }
#pragma unroll
            for (int j = 0; j < LIGHT_BATCH; ++j) {
                long long k = first + j * WARP + lane();
                bool is_light = k < stop && code_of(order, its[j]) >> order.drop < light;
                unsigned votes = __ballot_sync(ALL, is_light);
                if (votes == 0) continue;
                if (is_light) waiting[count + __popc(votes & lanes_below())] = (I)k;
                count += __popc(votes);
                __syncwarp();
                if (count < WARP) continue;
                list_first(WARP);
                count -= WARP;
                I next = waiting[WARP + lane()];
                __syncwarp();
                waiting[lane()] = next;
                __syncwarp();
            }
        }
        if (count > 0) list_first(count);
        __syncwarp();
    });
    list.finish();
}

// Of a large graph most edges lie within the largest tree, whose root is `largest`, and whose bitmap is
// small enough for the L2 cache.  The rows of its vertices are not read: an edge between it and
// another tree is in the other end's row as well.  Of those in one row all but the first are dropped,
// since they join the same two trees.  Ties within a row go by the entry, as in FirstEdge.  Edges
// between two other trees are listed by the smaller end.  Without a bitmap `largest` is -1.
template <typename I, typename B, bool EXACT>
__global__ void __launch_bounds__(LIST_BLOCK)
list_rest(I n, I nnz, const I* __restrict__ indptr, const I* __restrict__ indices, const B* __restrict__ bits,
          const unsigned long long* order_words, I largest, const unsigned int* __restrict__ in_largest,
          const I* __restrict__ up, I* ends, Code* words, unsigned long long* size, unsigned long long room,
          Code* best)
{
    __shared__ I a[LIST_BLOCK / WARP][2 * WARP], b[LIST_BLOCK / WARP][2 * WARP];
    __shared__ Code w[LIST_BLOCK / WARP][2 * WARP];
    __shared__ Code first_words[LIST_BLOCK / WARP][WARP];  // of each lane's row: into the largest tree
    Order order(order_words);
    Appender<I> list{ends, words, size, room, a, b, w, 0};
    Code* into_largest = first_words[warp()];
    auto inside = [&](I v) { return largest >= 0 && (in_largest[v / WARP] >> (v % WARP) & 1); };
    auto offer_both = [&](bool wanted, I mine, I other, Code word) {
        if (wanted) {
            offer<EXACT>(best, mine, word, order, bits);
            offer<EXACT>(best, other, word, order, bits);
        }
        __syncwarp();
        list.push(wanted, mine, other, word);
    };
    for_tiles<TILE_ENTRIES>(n, nnz, indptr, [&](I u, I begin, I end) {
        if (inside(u)) end = begin;
        if (__all_sync(ALL, begin == end)) return;
        I root = up[u];
        into_largest[lane()] = NOTHING;
        __syncwarp();
        WarpRows<I>(begin, end).for_entries([&](int owner, I k, bool is_entry) {
            I row = __shfl_sync(ALL, u, owner), mine = __shfl_sync(ALL, root, owner), other = mine;
            Code word = 0;
            if (is_entry) {
                I v = indices[k];
                if (inside(v))
                    offer<EXACT>(into_largest, owner, order.word(code_of(order, bits[k]), (Code)k), order, bits);
                else if (v > row)
                    other = up[v];
                if (other != mine) word = order.word(code_of(order, bits[k]), (Code)k);
            }
            offer_both(other != mine, mine, other, word);
        });
        __syncwarp();
        if (largest < 0) return;
        Code word = into_largest[lane()];
        if (word != NOTHING) {
            I k = (I)order.place(word), v = indices[k];
            if (v < u) {
                k = upper_entry(indptr, indices, u, v);
                word = k < 0 ? NOTHING : word >> order.places << order.places | (Code)k;
            }
        }
        offer_both(word != NOTHING, root, largest, word);
        __syncwarp();
    });
    list.finish();
}

// One thread per vertex, which goes at most HOPS steps up.  The first vertices may be at the end of a
// chain as long as the graph, and would follow it alone while the others wait.  So each launch
// brings every vertex nearer to its root, and *again says that some are not there yet.
template <typename I>
__global__ void flatten(I n, I* up, int* again)
{
    long long v = global_thread();
    if (v >= n) return;
    I first = load_relaxed(&up[v]), at = first;
    int hops = 0;
    for (; hops < HOPS; ++hops) {
        I above = load_relaxed(&up[at]);
        if (above == at) break;
        at = above;
    }
    if (at != first) store_relaxed(&up[v], at);
    if (hops == HOPS && load_relaxed(again) == 0) store_relaxed(again, 1);
}

// Edges in turn.  Where words are places in a sorted sequence, `entries` has the entries, or null.
template <typename I>
__global__ void hook_trees(const unsigned long long* size, const I* ends, const Code* words, const Code* best,
                           const unsigned long long* order_words, const I* entries, I* up, Word* marks)
{
    Order order(order_words);
    long long count = (long long)*size;
    for (long long i = global_thread(); i < count; i += all_threads()) {
        I x = ends[2 * i], y = ends[2 * i + 1];
        Code word = words[i];
        if (best[x] != word && best[y] != word) continue;
        join_sets(up, x, y);
        set_bit(marks, entries == nullptr ? (I)order.place(word) : entries[word]);
    }
}

// Edges in turn, a whole warp at a time; the new list is offered to the trees as they are now.
template <typename I, typename B, bool EXACT>
__global__ void __launch_bounds__(LIST_BLOCK)
shrink(const unsigned long long* old_size, const I* __restrict__ old_ends, const Code* __restrict__ old_words,
       const B* __restrict__ bits, const unsigned long long* order_words, I* up, I* ends, Code* words,
       unsigned long long* size, unsigned long long room, Code* best)
{
    __shared__ I a[LIST_BLOCK / WARP][2 * WARP], b[LIST_BLOCK / WARP][2 * WARP];
    __shared__ Code w[LIST_BLOCK / WARP][2 * WARP];
    Order order(order_words);
    Appender<I> list{ends, words, size, room, a, b, w, 0};
    long long count = (long long)*old_size;
    for (long long first = global_thread() - lane(); first < count; first += all_threads()) {
        long long i = first + lane();
        I x = 0, y = 0;
        Code word = 0;
        if (i < count) {
            x = find_root(up, old_ends[2 * i]);
            y = find_root(up, old_ends[2 * i + 1]);
            word = old_words[i];
        }
        if (x != y) {
            offer<EXACT>(best, x, word, order, bits);
            offer<EXACT>(best, y, word, order, bits);
        }
        __syncwarp();
        list.push(x != y, x, y, word);
    }
    list.finish();
}
