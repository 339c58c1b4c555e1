// Minimum spanning forests on the GPU: Boruvka, and what the other methods share with it.
// Host side: gpu.py.  The order on edges: order.py; the rule and the papers: __init__.py.
//
//   first_edges     every row's first edge: a row reduction, no atomics
//   hook_vertices   vertices hooked along these edges, which are marked
//   flatten         every vertex directly under its root
//   list_edges      the light edges between different trees, or all; each offered to both trees
//   hook_trees      an edge that one of its trees has kept joins them, and is marked
//   shrink          the list without the edges within one tree; the others offered again
//   count_marks, write_edges   the marked entries, in their order, as edges with weights
// A round is hook_trees and shrink; every tree with an edge is joined in it, so there are log2(n).
//
// An edge's word is the prefix of its weight above the place k of its entry in the upper triangle
// (order.py): words ascend as edges do.  With EXACT prefixes words alone decide; else two equal
// ones are told apart by the weights at their entries.
//
// Races: best[c] is lowered by atomics alone and the order is total; up[] is union-find
// (union_find.cuh), in which hooks go from larger to smaller roots; marks are set by atomicOr.  The
// order of the list depends on scheduling, but nothing that is read from it does.
#include "matchwood/edges.cuh"
#include "matchwood/frontier.cuh"
#include "matchwood/row_reduce.cuh"
#include "matchwood/order.cuh"
#include "matchwood/union_find.cuh"

constexpr int TILE_ENTRIES = 2048;  // rows and entries of a warp that lists edges
constexpr int HOPS = 64;            // up a tree in one launch; 64^4 is as long as a chain gets
constexpr int MANY_MARKS = 4;       // in a word of the bitmap, from which on a warp writes them
constexpr int LIST_BLOCK = 256;     // threads of blocks that write lists

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

// A thread to a vertex.  The smaller of two that chose each other stays a root.
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

// A thread to a vertex, which goes at most HOPS steps up.  The first vertices may be at the end of a
// chain as long as the graph, and would walk it alone while the others wait for their turn; so
// everybody gets nearer to the root, and *again says that some are not there yet.
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

// TILE_ENTRIES to a warp.  `up` is flat and read-only here.  Light: a prefix below `light`; of the
// others there is none left within `heavy`, so all that join two trees are listed.
template <typename I, typename B, bool EXACT>
__global__ void __launch_bounds__(LIST_BLOCK)
list_edges(I n, I nnz, const I* __restrict__ indptr, const I* __restrict__ indices,
           const B* __restrict__ bits, const unsigned long long* order_words, unsigned long long light,
           bool heavy, const I* __restrict__ up, I* ends, Code* words, unsigned long long* size,
           unsigned long long room, Code* best)
{
    __shared__ I a[LIST_BLOCK / WARP][2 * WARP], b[LIST_BLOCK / WARP][2 * WARP];
    __shared__ Code w[LIST_BLOCK / WARP][2 * WARP];
    Order order(order_words);
    Appender<I> list{ends, words, size, room, a, b, w, 0};
    for_tiles<TILE_ENTRIES>(n, nnz, indptr, [&](I u, I begin, I end) {
        WarpRows<I> rows(begin, end);
        I root = up[u];
        for (I first = 0; first < rows.total; first += WARP) {
            I t = first + lane();
            int owner = rows.owner(t);
            I k = rows.entry(t, owner);
            I row = __shfl_sync(ALL, u, owner), mine = __shfl_sync(ALL, root, owner), other = mine;
            bool wanted = false;
            Code word = 0;
            if (t < rows.total) {
                I v = indices[k];
                if (v > row) {
                    if (heavy) {
                        other = up[v];
                        wanted = other != mine;
                        if (wanted) word = order.word(code_of(order, bits[k]), (Code)k);
                    } else {
                        Code code = code_of(order, bits[k]);
                        if (code >> order.drop < light) {
                            other = up[v];
                            wanted = other != mine;
                            word = order.word(code, (Code)k);
                        }
                    }
                }
            }
            if (wanted) {
                offer<EXACT>(best, mine, word, order, bits);
                offer<EXACT>(best, other, word, order, bits);
            }
            __syncwarp();
            list.push(wanted, mine, other, word);
        }
        __syncwarp();
    });
    list.finish();
}

// Edges in turn.  `entries` tells the entry of a word where words are ranks; null: the word does.
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

// The marked entries.  Words of the bitmap are dealt to blocks in runs; a block counts its marks,
template <typename I>
__global__ void count_marks(long long n_words, long long run, const Word* marks, I* counts)
{
    long long first = blockIdx.x * run, end = first + run < n_words ? first + run : n_words;
    I count = 0;
    for (long long i = first + threadIdx.x; i < end; i += blockDim.x) count += __popcll(marks[i]);
    count = block_reduce(count, I(0), Plus());
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// adds up the counts of the blocks before it, and writes its edges: a thread to a word, a warp to
// one with many marks, a lane to a bit.
template <typename I, typename B>
__global__ void write_edges(I n, long long n_words, long long run, const Word* marks, const I* counts,
                            const I* indptr, const I* indices, const B* bits, I* edges, B* weights, I* total)
{
    __shared__ I start;
    I before = 0;
    for (int block = threadIdx.x; block < (int)blockIdx.x; block += blockDim.x) before += counts[block];
    before = block_reduce(before, I(0), Plus());
    if (threadIdx.x == 0) start = before;
    __syncthreads();
    I next = start;
    long long first = blockIdx.x * run, end = first + run < n_words ? first + run : n_words;
    for (long long at = first; at < end; at += blockDim.x) {
        long long i = at + threadIdx.x;
        Word mine = i < end ? marks[i] : 0;
        int here;
        I place = next + (I)block_exclusive_sum(__popcll(mine), &here);
        next += here;
        I row = mine == 0 ? I(0) : (I)row_of(n, indptr, (I)(64 * i + __ffsll((long long)mine) - 1));
        bool many = __popcll(mine) > MANY_MARKS;
        if (!many)
            for (Word left = mine; left != 0; left &= left - 1) {
                I k = (I)(64 * i + __ffsll((long long)left) - 1);
                if (place >= n) break;  // a forest has fewer edges, where the pattern is symmetric
                while (indptr[row + 1] <= k) ++row;
                edges[2 * (long long)place] = row;
                edges[2 * (long long)place + 1] = indices[k];
                weights[place++] = bits[k];
            }
        __syncwarp();
        for (unsigned left = __ballot_sync(ALL, many); left != 0; left &= left - 1) {
            int owner = __ffs(left) - 1;
            Word word = __shfl_sync(ALL, mine, owner);
            I u = __shfl_sync(ALL, row, owner), from = __shfl_sync(ALL, place, owner);
            long long begin = 64 * (i - lane() + owner);
#pragma unroll
            for (int half = 0; half < 64; half += WARP) {
                int bit = half + lane();
                if (!(word >> bit & 1)) continue;
                I k = (I)(begin + bit), to = from + __popcll(word & ((Word(1) << bit) - 1));
                if (to >= n) continue;
                while (indptr[u + 1] <= k) ++u;
                edges[2 * (long long)to] = u;
                edges[2 * (long long)to + 1] = indices[k];
                weights[to] = bits[k];
            }
            __syncwarp();
        }
    }
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) *total = next;
}
