// A level of an order of Cuthill and McKee with very many entries, in launches of its own.  Host side:
// huge.py.
//
//   measure_rows     entries of the frontier's rows; adding them up shares the entries out evenly
//   offer_places     the frontier offers its places to all neighbours
//   tell_places      or the frontier's places, by vertex,
//   seek_places      in which free vertices find their owners
//   count_children   the vertices that have an owner in the frontier, by the blocks of the grid,
//   list_children    and these vertices in their order, with the keys to sort them by
//
// Owners are what offers come to, as in wide_levels.cuh; they are lowered by atomics, or written by the
// one lane that has the vertex.
#include "matchwood/number.cuh"
#include "matchwood/wide_levels.cuh"

constexpr int TILE_ENTRIES = 2048;  // rows and entries of a warp that offers

template <typename I>
__global__ void measure_rows(I size, const I* front, const I* indptr, I* lengths)
{
    long long i = global_thread();
    if (i < size) lengths[i] = indptr[front[i] + 1] - indptr[front[i]];
}

// `starts` are the sums of the lengths: where the rows of the frontier start in a list of their entries.
template <typename I>
__global__ void offer_places(I size, I arcs, const I* starts, I head, const I* front, const I* indptr,
                             const I* indices, I* owner)
{
    for_tiles<TILE_ENTRIES>(size, arcs, starts, [&](I i, I begin, I end) {
        I shift = indptr[front[i]] - starts[i];
        auto read = [&](I at) { return indices[at]; };
        WarpRows<I> rows(begin + shift, end + shift);
        rows.template for_batches<LEVEL_BATCH>(read, [&](const auto& row, const auto& w) {
            I p[LEVEL_BATCH], seen[LEVEL_BATCH];
#pragma unroll
            for (int k = 0; k < LEVEL_BATCH; ++k) {
                p[k] = head + __shfl_sync(ALL, i, row[k]);
                seen[k] = w[k] >= 0 ? load_relaxed(&owner[w[k]]) : I(-1);
            }
#pragma unroll
            for (int k = 0; k < LEVEL_BATCH; ++k)
                if (seen[k] > p[k]) atomicMin(&owner[w[k]], p[k]);
        });
    });
}

template <typename I>
__global__ void tell_places(I size, I head, const I* front, I* place)
{
    long long i = global_thread();
    if (i < size) place[front[i]] = head + (I)i;
}

template <typename I>
__global__ void seek_places(I n, const I* indptr, const I* indices, const I* place, I head, I* owner)
{
    Places<I> places{n, indptr, indices, nullptr, owner};
    long long v = global_thread();
    I begin = 0, end = 0;
    if (v < n && owner[v] == places.none()) {
        begin = indptr[v];
        end = indptr[v + 1];
    }
    I least = least_place(places, place, head, begin, end);
    if (least < places.none()) owner[v] = least;
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

// A key is the owner's number in the frontier above the degree, 32 bits each.
template <typename I>
__global__ void list_children(I n, long long length, const I* indptr, const I* owner, I head, const I* counts,
                              unsigned long long* keys, I* children)
{
    I next = counted_before(counts);
    number_wanted(
        Run(length, n), next, [&](long long v) { return owner[v] >= head && owner[v] < n; },
        [&](long long v, I number) {
            keys[number] = (Wide)(owner[v] - head) << 32 | (Wide)(indptr[v + 1] - indptr[v]);
            children[number] = (I)v;
        });
}
