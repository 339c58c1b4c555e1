// One forest that all ranks of a GPU join their entries into.  Host side: gpu_common.py, which says what comes when.
//
//   hook_first     every own vertex under a smaller neighbour, where the own part of its row begins with one
//   compress_own   every own vertex directly under its root
//   find_largest   the root that most of a sample of own vertices have
//   hook_more      unless most have it: hook along one more neighbour of each own vertex
//   hook_rest      all entries of the block, but for rows of vertices in the largest tree
//   write_labels, write_roots    the number of the component of each own vertex, or its smallest vertex
//
// parent has a word for each vertex of the graph, by its number in the grid, in memory that all ranks have mapped:
// parent[v] <= v (union_find.cuh).  Races are those of one machine, whose blocks are as little in order as ranks are.
#include "matchwood/edges.cuh"
#include "matchwood/local_ids.cuh"
#include "matchwood/sampling.cuh"
#include "matchwood/union_find.cuh"

constexpr int TILE = 2048;  // rows and entries of a warp in a pass over all of them

// One thread to a place.  Parents of own vertices are written here for the first time, by nobody else.
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

// One thread to a place.  Others may follow v at the same time: any ancestor is right for them.
template <typename I>
__global__ void compress_own(int R, int C, int r, int c, I rows, I owned, I* parent)
{
    long long place = global_thread();
    if (place >= owned) return;
    I v = Local<I>{R, C, r, c, rows}.own(place);
    I up = load_relaxed(&parent[v]), root = find_root(parent, up);
    if (root != up) store_relaxed(&parent[v], root);
}

// One block of SAMPLE threads, on the first rank.  Only vertices whose row has entries here are counted.
template <typename I>
__global__ void find_largest(int R, int C, int r, int c, I rows, I owned, const I* indptr, const I* parent, I* largest,
                             I* settled)
{
    Local<I> local{R, C, r, c, rows};
    auto vertex = [&](I place) {
        I row = local.own_row(place);
        return indptr[row] < indptr[row + 1] ? local.own(place) : I(-1);
    };
    most_frequent_root(owned, parent, vertex, largest, settled);
}

// One thread to a place: a try to join with the last neighbour of the own part of the row, or its middle one; as
// hook_more of one machine.
template <typename I>
__global__ void hook_more(int R, int C, int r, int c, I rows, I owned, const I* indptr, const I* indices, bool last,
                          I* parent)
{
    long long place = global_thread();
    if (place >= owned) return;
    Local<I> local{R, C, r, c, rows};
    I begin = indptr[local.own_row(place)], end = indptr[local.own_row(place) + 1];
    if (begin == end) return;
    I w = local.original(indices[last ? end - 1 : begin + (end - begin) / 2]);
    I a = load_relaxed(&parent[local.own(place)]), b = load_relaxed(&parent[w]);
    I low = a < b ? a : b, high = a < b ? b : a;
    if (low < high && load_relaxed(&parent[high]) > low) lower_to(&parent[high], low);
}

// TILE rows and entries to a warp.  With a symmetric pattern, rows of vertices under *largest are skipped: all ranks
// skip the same, so an entry is left out by both its ends only if both are in that tree.
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
