// One forest of the blocks of all ranks that share a GPU.  Host side: gpu_common.py, which says what comes when.
//
//   hook_first     every vertex of a rank under a smaller neighbour, where its part of the row begins with one
//   find_largest   the root that most of a sample of a rank's vertices have
//   hook_more      unless most have it: hook along one more neighbour of each vertex of a rank
//   hook_rest      all entries of a block, but for rows of vertices in the largest tree
//   write_labels, write_roots    the number of the component of each vertex of a rank, or its smallest vertex
//
// A launch has the block of one rank, R, C, r, c and `rows` (local_ids.cuh), or the `owned` vertices of that rank.
// parent has a word for each vertex of the graph, by its number in the grid: parent[v] <= v (union_find.cuh).
#include "matchwood/edges.cuh"
#include "matchwood/local_ids.cuh"
#include "matchwood/sampling.cuh"
#include "matchwood/union_find.cuh"

constexpr int TILE = 2048;  // rows and entries of a warp in a pass over all of them

// One thread to a place.  Parents are written here for the first time, each by one thread.
template <typename I>
__global__ void hook_first(int R, int C, int r, int c, I rows, I owned, const I* indptr, const I* indices, I* parent)
{
    long long place = global_thread();
    if (place >= owned) return;
    Local<I> local{R, C, r, c, rows};
    I v = local.own(place), w = v;
    I begin = indptr[local.own_row(place)], end = indptr[local.own_row(place) + 1];
    if (begin < end) w = local.original(indices[begin]);
    parent[v] = w < v ? w : v;
}

// One block of SAMPLE threads: sampling.cuh.  Only vertices whose row has entries in the block are counted.  `again`:
// does nothing when it was settled before.
template <typename I>
__global__ void find_largest(int R, int C, int r, int c, I rows, I owned, const I* indptr, const I* parent, bool again,
                             I* largest, I* settled)
{
    if (again && *settled) return;
    Local<I> local{R, C, r, c, rows};
    auto vertex = [&](I place) {
        I row = local.own_row(place);
        return indptr[row] < indptr[row + 1] ? local.own(place) : I(-1);
    };
    most_frequent_root(owned, parent, vertex, largest, settled);
}

// One thread to a place: a try to join with the last neighbour of its part of the row, or its middle one; as
// hook_more of one machine.
template <typename I>
__global__ void hook_more(int R, int C, int r, int c, I rows, I owned, const I* indptr, const I* indices, bool last,
                          const I* settled, I* parent)
{
    long long place = global_thread();
    if (place >= owned || *settled) return;
    Local<I> local{R, C, r, c, rows};
    I begin = indptr[local.own_row(place)], end = indptr[local.own_row(place) + 1];
    if (begin == end) return;
    I w = local.original(indices[last ? end - 1 : begin + (end - begin) / 2]);
    I a = load_relaxed(&parent[local.own(place)]), b = load_relaxed(&parent[w]);
    I low = a < b ? a : b, high = a < b ? b : a;
    if (low < high && load_relaxed(&parent[high]) > low) lower_to(&parent[high], low);
}

// TILE rows and entries to a warp.  With a symmetric pattern, rows of vertices under *largest are skipped: it is the
// same for all blocks, so an entry is left out by both its ends only if both are in that tree.
template <typename I>
__global__ void hook_rest(int R, int C, int r, int c, I rows, I nnz, const I* indptr, const I* indices, bool symmetric,
                          const I* largest, I* parent)
{
    Local<I> local{R, C, r, c, rows};
    I skip = symmetric ? *largest : I(-1);
    for_tiles<TILE>(rows, nnz, indptr, [&](I row, I begin, I end) {
        I v = local.original(row);
        if (load_relaxed(&parent[v]) == skip) end = begin;
        if (!__any_sync(ALL, begin < end)) return;
        WarpRows<I>(begin, end).for_entries([&](int owner, I entry, bool is_entry) {
            I u = __shfl_sync(ALL, v, owner);
            if (is_entry) join_ends(parent, u, local.original(indices[entry]));
        });
        __syncwarp();
    });
}

// One thread to a place: up to the root, whose word is ~number.
template <typename I>
__global__ void write_labels(int R, int C, int r, int c, I rows, I owned, const I* parent, I* label)
{
    long long place = global_thread();
    if (place >= owned) return;
    I up = parent[Local<I>{R, C, r, c, rows}.own(place)];
    while (up >= 0) up = parent[up];
    label[place] = ~up;
}

// One thread to a place: up to the root, which is its own parent.
template <typename I>
__global__ void write_roots(int R, int C, int r, int c, I rows, I owned, const I* parent, I* root)
{
    long long place = global_thread();
    if (place < owned) root[place] = peek_root(parent, Local<I>{R, C, r, c, rows}.own(place));
}
