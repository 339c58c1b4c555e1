// The first edge of a row, in the order of edge_order.cuh, among those that the neighbours accept.
//
// Weights are positive floats, so their bits, read as unsigned integers, have the same order.  0 means
// "no edge".  The parameter `Others` says which edges a neighbour accepts.  It is a struct with
//   B held(I v)                   v accepts no edge of less weight; all ones: v accepts none at all
//   bool takes(I v, I u, B w)     whether v accepts {u, v}, asked only where w equals held(v)
// The parameter `Names` turns a vertex into the number that breaks ties.  On one machine that is the
// vertex itself; in the block of a rank vertices have local numbers, and their names are the user's.
#pragma once
#include "matchwood/atomics.cuh"
#include "matchwood/edge_order.cuh"
#include "matchwood/threads.cuh"

constexpr int NOBODY = -1;  // no vertex

template <typename W>
using WeightBits = typename WordOf<sizeof(W)>::type;

template <typename I, typename B>
struct Edge {
    B w;  // 0: no edge
    I v;
};

struct Ties {
    unsigned long long seed;
    bool by_hash;
};

struct Itself {
    template <typename I>
    __device__ __forceinline__ I operator()(I v) const
    {
        return v;
    }
};

template <typename I>
struct Named {
    const I* names;
    __device__ __forceinline__ I operator()(I v) const { return names[v]; }
};

template <typename I, typename W, typename Names = Itself>
struct Rows {
    const I *indptr, *indices;
    const WeightBits<W>* data;
    Ties ties;
    Names name;
};

// Whether {u1, v1} comes before {u2, v2}, edges of equal weight.  Not inlined: rarely reached, and
// much code.
template <typename I>
__device__ __noinline__ bool tied_first(I u1, I v1, I u2, I v2, Ties ties)
{
    return prefers_tied(u1, v1, u2, v2, ties.seed, ties.by_hash);
}

// Whether edge a of u comes before edge b of u.
template <typename I, typename B, typename Names>
__device__ __forceinline__ bool comes_first(I u, Edge<I, B> a, Edge<I, B> b, Ties ties, const Names& name)
{
    if (a.w != b.w) return a.w > b.w;
    return a.w != 0 && tied_first(name(u), name(a.v), name(u), name(b.v), ties);
}

// Improve `best` by the entries from `begin + rank` on, every `step`-th.  AHEAD of them are loaded at
// once.  SELECTIVE: columns are read only where the weight is not below the best; faster in long rows.
template <int AHEAD, bool SELECTIVE, typename I, typename W, typename Names, typename Others>
__device__ __forceinline__ void scan_row(const Rows<I, W, Names>& rows, I u, I begin, I end, int rank, int step,
                                         const Others& others, Edge<I, WeightBits<W>>& best)
{
    using B = WeightBits<W>;
    for (long long k = (long long)begin + rank; k < end; k += (long long)AHEAD * step) {
        B w[AHEAD], held[AHEAD];
        I v[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
            long long at = k + (long long)a * step;
            w[a] = at < end ? rows.data[at] : B(0);
            if (!SELECTIVE) v[a] = at < end ? rows.indices[at] : u;
        }
        if (SELECTIVE) {
#pragma unroll
            for (int a = 0; a < AHEAD; ++a) {
                if (w[a] < best.w) w[a] = 0;
                v[a] = w[a] != 0 ? rows.indices[k + (long long)a * step] : u;
            }
        }
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) held[a] = w[a] != 0 ? others.held(v[a]) : ~B(0);
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
            Edge<I, B> edge{w[a], v[a]};
            if (w[a] < held[a] || !comes_first(u, edge, best, rows.ties, rows.name)) continue;
            if (w[a] > held[a] || others.takes(v[a], u, w[a])) best = edge;
        }
    }
}

// `best` becomes the first of the edges of u that WIDTH neighbouring lanes hold, in each of these
// lanes.  All lanes of the warp call.
template <int WIDTH, typename I, typename B, typename Names>
__device__ __forceinline__ void first_of_lanes(I u, Edge<I, B>& best, Ties ties, const Names& name)
{
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) {
        Edge<I, B> other{__shfl_xor_sync(ALL, best.w, step), __shfl_xor_sync(ALL, best.v, step)};
        if (comes_first(u, other, best, ties, name)) best = other;
    }
}

// Entries of a row that a lane holds.  w[a] is 0 for those that are not there, or have been asked.
template <typename I, typename B, int AHEAD>
struct Held {
    B w[AHEAD];
    I v[AHEAD];

    // AHEAD of a row's `length` entries from the k-th on, every `step`-th, that weigh no less than `least`.  Where
    // that is 0, weights and columns are loaded side by side.
    template <typename K>
    __device__ __forceinline__ void load(const B* weights, const I* columns, K k, K length, int step, B least)
    {
        bool all = least == 0;
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
            w[a] = k + a * step < length ? weights[k + a * step] : B(0);
            if (all) v[a] = k + a * step < length ? columns[k + a * step] : I(0);
        }
        if (all) return;
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
            if (w[a] < least) w[a] = 0;
            if (w[a] != 0) v[a] = columns[k + a * step];
        }
    }

    // Drop entries that weigh more than `most`.
    __device__ __forceinline__ void keep_to(B most)
    {
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) w[a] = w[a] > most ? B(0) : w[a];
    }

    __device__ __forceinline__ B heaviest() const
    {
        B most = 0;
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) most = w[a] > most ? w[a] : most;
        return most;
    }

    // Take out an entry of weight `most`.
    __device__ __forceinline__ Edge<I, B> take_out(B most)
    {
        Edge<I, B> found{0, 0};
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
            if (found.w != 0 || w[a] != most) continue;
            found = {w[a], v[a]};
            w[a] = 0;
        }
        return found;
    }
};

// `best` becomes the edge if that is first and its other end accepts it.
template <typename I, typename B, typename Names, typename Others>
__device__ __forceinline__ void improve(I u, Edge<I, B> edge, const Others& others, Edge<I, B>& best, Ties ties,
                                        const Names& name)
{
    if (!comes_first(u, edge, best, ties, name)) return;
    B held = others.held(edge.v);
    if (edge.w > held || (edge.w == held && others.takes(edge.v, u, edge.w))) best = edge;
}

// The largest x of WIDTH neighbouring lanes, returned to each of them.
template <int WIDTH, typename B>
__device__ __forceinline__ B largest_of_lanes(B x)
{
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) {
        B other = __shfl_xor_sync(ALL, x, step);
        x = other > x ? other : x;
    }
    return x;
}

// The first edge of u's entries begin to end - 1, by WIDTH neighbouring lanes.  All lanes of the warp call.
//
// Most of the time goes into reading the words of neighbours, anywhere in memory.  So each lane holds a few entries and
// tests the heaviest of them; then only entries that weigh no less than the best accepted one of all WIDTH lanes are
// left, which are few.  Edges that weigh more than `most_left` are known to be refused.
template <int WIDTH, typename I, typename W, typename Names, typename Others>
__device__ __forceinline__ Edge<I, WeightBits<W>> first_of_row(const Rows<I, W, Names>& rows, I u, I begin, I end,
                                                               const Others& others, WeightBits<W> most_left)
{
    using B = WeightBits<W>;
    constexpr int AHEAD = 4;  // entries of a lane at a time
    Edge<I, B> best{0, u};
    B least = 0;  // the weight of the best answer
    for (I first = 0; __any_sync(ALL, first < end - begin); first += AHEAD * WIDTH) {
        Held<I, B, AHEAD> entries;
        entries.load(rows.data + begin, rows.indices + begin, (I)(first + lane() % WIDTH), (I)(end - begin), WIDTH, least);
        entries.keep_to(most_left);
        B most = entries.heaviest();
        while (true) {
            if (most != 0 && most >= least) improve(u, entries.take_out(most), others, best, rows.ties, rows.name);
            __syncwarp();
            least = largest_of_lanes<WIDTH>(best.w);
            most = entries.heaviest();
            if (!__any_sync(ALL, most != 0 && most >= least)) break;
        }
    }
    first_of_lanes<WIDTH>(u, best, rows.ties, rows.name);
    return best;
}

// WIDTH lanes per vertex, the whole warp for a vertex with a long row.  All lanes of the warp call,
// those of a group with the same u, begin and end; begin == end where there is nothing to do.
// FAR: no cache holds the words of neighbours, so few are read, and none for an edge that weighs more than `most_left`.
template <int WIDTH, bool FAR = false, typename I, typename W, typename Names, typename Others>
__device__ __forceinline__ Edge<I, WeightBits<W>> first_by_lanes(const Rows<I, W, Names>& rows, I u, I begin,
                                                                 I end, const Others& others,
                                                                 WeightBits<W> most_left = ~WeightBits<W>(0))
{
    constexpr int LONG_ROW = 16 * WIDTH;  // entries
    using Found = Edge<I, WeightBits<W>>;
    Found best{0, u};
    bool is_long = end - begin > LONG_ROW;
    if (FAR) {
        best = first_of_row<WIDTH>(rows, u, begin, is_long ? begin : end, others, most_left);
    } else {
        if (!is_long) scan_row<4, false>(rows, u, begin, end, lane() % WIDTH, WIDTH, others, best);
        __syncwarp();
        first_of_lanes<WIDTH>(u, best, rows.ties, rows.name);
    }
    unsigned left = __ballot_sync(ALL, is_long && lane() % WIDTH == 0);
    for (; left != 0; left &= left - 1) {
        int owner = __ffs(left) - 1;
        I x = __shfl_sync(ALL, u, owner);
        I from = __shfl_sync(ALL, begin, owner), to = __shfl_sync(ALL, end, owner);
        Found mine{0, x};
        if (FAR) {
            mine = first_of_row<WARP>(rows, x, from, to, others, __shfl_sync(ALL, most_left, owner));
        } else {
            scan_row<4, true>(rows, x, from, to, lane(), WARP, others, mine);
            __syncwarp();
            first_of_lanes<WARP>(x, mine, rows.ties, rows.name);
        }
        if (lane() / WIDTH == owner / WIDTH) best = mine;
    }
    return best;
}

// The first of the edges of u that the threads of a block hold.  All threads of the block call, and all get it.
template <typename I, typename B, typename Names>
__device__ __forceinline__ Edge<I, B> first_of_block(I u, Edge<I, B> best, Ties ties, const Names& name)
{
    __shared__ B weights[WARP];
    __shared__ I ends[WARP];
    __syncwarp();
    first_of_lanes<WARP>(u, best, ties, name);
    if (lane() == 0) {
        weights[warp()] = best.w;
        ends[warp()] = best.v;
    }
    __syncthreads();
    bool is_warp = lane() < (int)(blockDim.x / WARP);
    best = {is_warp ? weights[lane()] : B(0), is_warp ? ends[lane()] : u};
    first_of_lanes<WARP>(u, best, ties, name);
    __syncthreads();
    return best;
}

// One block per vertex.  All threads of the block call, and all get the result.  FAR: as above; `least` is the weight
// of the best answer so far, or less: a thread that reads an old value asks for more.
template <bool FAR = false, typename I, typename W, typename Names, typename Others>
__device__ __forceinline__ Edge<I, WeightBits<W>> first_by_block(const Rows<I, W, Names>& rows, I u,
                                                                 const Others& others)
{
    using B = WeightBits<W>;
    Edge<I, B> best{0, u};
    if (!FAR) {
        scan_row<4, true>(rows, u, rows.indptr[u], rows.indptr[u + 1], (int)threadIdx.x, (int)blockDim.x, others, best);
        return first_of_block(u, best, rows.ties, rows.name);
    }
    constexpr int AHEAD = 4;  // entries of a thread at a time
    __shared__ B least;
    I begin = rows.indptr[u];
    long long length = rows.indptr[u + 1] - begin;
    if (threadIdx.x == 0) least = 0;
    __syncthreads();
    for (long long k = threadIdx.x; k < length; k += AHEAD * (int)blockDim.x) {
        Held<I, B, AHEAD> entries;
        entries.load(rows.data + begin, rows.indices + begin, k, length, (int)blockDim.x, *(volatile B*)&least);
        for (B most = entries.heaviest(); most != 0 && most >= *(volatile B*)&least; most = entries.heaviest()) {
            B before = best.w;
            improve(u, entries.take_out(most), others, best, rows.ties, rows.name);
            if (best.w > before) atomicMax(&least, best.w);
        }
    }
    return first_of_block(u, best, rows.ties, rows.name);
}
