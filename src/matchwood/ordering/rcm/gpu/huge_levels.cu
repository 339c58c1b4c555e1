// A level of an order of Cuthill and McKee with very many entries, or a very long row, in launches of its
// own.  Host side: leveled.py.
//
//   measure_rows     entries of the frontier's rows; adding them up shares the entries out evenly
//   mark_free        a bit for every vertex without an owner
//   offer_places     a part of the frontier offers its places to all neighbours
//   store_places     or the frontier's places, by vertex,
//   seek_places      in which free vertices find their owners
//   count_children   the vertices that have an owner in the frontier, by the blocks of the grid,
//   list_children    and these vertices in their order, with the keys to sort them by
//   take_children    the vertices of the sorted keys
//
// Before free vertices seek, the first of the frontier offer themselves: an owner among these is the
// least one, and many rows need not be read.
//
// An owner is the least place offered, as in levels.cuh; it is lowered by atomics, or written by the
// one lane that has the vertex.
#include "matchwood/number.cuh"
#include "matchwood/levels.cuh"

constexpr int TILE_ENTRIES = 2048;  // rows and entries of a warp that offers
constexpr int FREE_WORDS = 4;       // words of the bitmap that a warp makes, with their loads in flight at once

template <typename I>
__global__ void measure_rows(I size, const I* front, const I* indptr, I* lengths)
{
    long long i = global_thread();
    if (i < size) lengths[i] = indptr[front[i] + 1] - indptr[front[i]];
}

// FREE_WORDS words of the bitmap per warp.
template <typename I>
__global__ void mark_free(I n, const I* owner, unsigned int* bits)
{
    long long first = global_thread() / WARP * (FREE_WORDS * WARP) + lane();
    bool free[FREE_WORDS];
#pragma unroll
    for (int k = 0; k < FREE_WORDS; ++k) free[k] = first + k * WARP < n && owner[first + k * WARP] == n;
#pragma unroll
    for (int k = 0; k < FREE_WORDS; ++k) {
        unsigned int votes = __ballot_sync(ALL, free[k]);
        if (lane() == k && first - k + k * WARP < n) bits[first / WARP + k] = votes;
    }
}

// `starts` are the sums of the lengths: where the rows of the frontier start in a list of their entries.
// The frontier offers part by part, in its order.  A vertex that is not free when a part begins has an
// owner in an earlier one, and keeps it.  Most entries lead to such a vertex, and a bitmap stays in the
// L2 cache where owners do not.
template <typename I>
__global__ void offer_places(I size, I arcs, const I* starts, I head, const I* front, const I* indptr,
                             const I* indices, const unsigned int* __restrict__ free, I* owner)
{
    for_tiles<TILE_ENTRIES>(size, arcs, starts, [&](I i, I begin, I end) {
        I shift = indptr[front[i]] - starts[i];
        auto read = [&](I at) { return indices[at]; };
        WarpRows<I> rows(begin + shift, end + shift);
        rows.template for_batches<LEVEL_BATCH>(read, [&](const auto& row, const auto& w) {
            bool open[LEVEL_BATCH];
#pragma unroll
            for (int k = 0; k < LEVEL_BATCH; ++k)
                open[k] = w[k] >= 0 && (free[w[k] / WARP] >> (w[k] % WARP) & 1);
#pragma unroll
            for (int k = 0; k < LEVEL_BATCH; ++k) {
                I p = head + __shfl_sync(ALL, i, row[k]);
                if (open[k] && load_relaxed(&owner[w[k]]) > p) atomicMin(&owner[w[k]], p);
            }
        });
    });
}

template <typename I>
__global__ void store_places(I size, I head, const I* front, I* place)
{
    long long i = global_thread();
    if (i < size) place[front[i]] = head + (I)i;
}

template <typename I>
__global__ void seek_places(I n, const I* indptr, const I* indices, const I* place, I head, I* owner)
{
    Queue<I> queue{n, indptr, indices, nullptr, owner};
    long long v = global_thread();
    I begin = 0, end = 0;
    if (v < n && owner[v] == queue.none()) {
        begin = indptr[v];
        end = indptr[v + 1];
    }
    I least = least_place(queue, place, head, begin, end);
    if (least < queue.none()) owner[v] = least;
}

// Vertices are distributed to blocks in runs of `length`.  *longest is raised to the longest row.
template <typename I>
__global__ void count_children(I n, long long length, const I* indptr, const I* owner, I head, I* counts, I* longest)
{
    I most = 0;
    I count = count_wanted<I>(Run(length, n), [&](long long v) {
        bool wanted = owner[v] >= head && owner[v] < n;
        if (wanted) most = Most()(most, I(indptr[v + 1] - indptr[v]));
        return wanted;
    });
    most = block_reduce(most, I(0), Most());
    if (threadIdx.x != 0) return;
    counts[blockIdx.x] = count;
    if (most > 0) raise_to(longest, most);
}

// A key is the owner's number in the frontier above the degree above the vertex.  Where 64 bits have no
// room for all three, `degree_shift` is 0, and `children` has the vertices; else it is null.
template <typename I>
__global__ void list_children(I n, long long length, const I* indptr, const I* owner, I head, const I* counts,
                              int owner_shift, int degree_shift, unsigned long long* keys, I* children)
{
    I next = counted_before(counts);
    number_wanted(
        Run(length, n), next, [&](long long v) { return owner[v] >= head && owner[v] < n; },
        [&](long long v, I number) {
            Wide degree = (Wide)(indptr[v + 1] - indptr[v]);
            Wide key = (Wide)(owner[v] - head) << owner_shift | degree << degree_shift;
            keys[number] = children == nullptr ? key | (Wide)v : key;
            if (children != nullptr) children[number] = (I)v;
        });
}

// A key's lowest bits are the vertex.
template <typename I>
__global__ void take_children(I size, const unsigned long long* keys, unsigned long long vertex_bits, I* children)
{
    long long i = global_thread();
    if (i < size) children[i] = (I)(keys[i] & vertex_bits);
}
