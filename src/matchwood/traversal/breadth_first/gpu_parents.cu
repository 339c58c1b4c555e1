// Parents, after gpu.cu has found the levels, and perhaps some of the parents.  Host side: gpu.py.
//
//   choose_parents, choose_rest    in a row of the transpose, the first vertex of the level before
// or, where there is no transpose:
//   reset_parents, offer_parents   every arc to the next level offers its tail; the least counts
//
// All are launched behind the search at once, and do nothing unless *stage says that it is done.
// Races: parent[v] is written by v's own thread, or lowered by atomicMin alone.
#include "matchwood/atomics.cuh"
#include "matchwood/edges.cuh"

constexpr int SERIAL = 16;   // entries that a lane tries alone before its warp helps
constexpr int HELPED = 1024; // entries that the warp then tries; longer rows are left to choose_rest
constexpr int TILE = 2048;   // rows and entries of a warp in a pass over all of them

constexpr int UNSEEN = -1;
constexpr unsigned long long DONE = 2;  // as in gpu.cu

// The largest of all `level` goes to *deepest.  All threads of the block call.
template <typename I>
__device__ __forceinline__ void record_deepest(I level, unsigned long long* deepest)
{
    level = block_reduce(level, I(0), Most());
    if (threadIdx.x == 0 && level > (I)load_relaxed(deepest)) raise_to(deepest, (unsigned long long)level);
}

// One lane per vertex.  A vertex without a parent takes the first in its row of arcs to it that has
// the level before; a source takes itself.  Marks in `bits`, and in *unfinished, the vertices
// whose rows are so long that choose_rest goes on.
template <typename I>
__global__ void choose_parents(I n, const I* in_indptr, const I* in_indices, const I* level, I* parent,
                               unsigned int* bits, const unsigned long long* stage,
                               unsigned long long* deepest, unsigned long long* unfinished)
{
    if (*stage != DONE) return;
    long long thread = global_thread();
    bool is_vertex = thread < n;
    I v = is_vertex ? (I)thread : I(0);
    I mine = is_vertex ? level[v] : I(UNSEEN);
    I found = mine == 0 ? v : mine > 0 ? parent[v] : I(-1), begin = 0, end = 0;
    bool open = found == n;
    if (open) {
        begin = in_indptr[v];
        end = in_indptr[v + 1];
    }
    I up = first_in_row<SERIAL, HELPED>(
        in_indices, begin, end, I(mine - 1), [&](I u, I before) { return level[u] == before; });
    if (open && up >= 0) found = up;
    if (is_vertex) parent[v] = found;
    unsigned votes = __ballot_sync(ALL, found == n);
    if (lane() == 0 && is_vertex) {
        bits[v >> 5] = votes;
        if (votes != 0) store_relaxed(unfinished, 1ull);
    }
    record_deepest(mine, deepest);
}

// The vertices that choose_parents marked: all of their rows.
template <typename I>
__global__ void choose_rest(I n, I nnz, const I* in_indptr, const I* in_indices, const I* level, I* parent,
                            const unsigned int* bits, const unsigned long long* stage,
                            const unsigned long long* unfinished)
{
    if (*stage != DONE || *unfinished == 0) return;
    for_tiles<TILE>(n, nnz, in_indptr, [&](I v, I begin, I end) {
        if ((bits[v >> 5] >> (v & 31) & 1) == 0) end = begin;
        I before = level[v] - 1;
        WarpRows<I>(begin, end).for_entries([&](int owner, I entry, bool is_entry) {
            I w = __shfl_sync(ALL, v, owner), wanted = __shfl_sync(ALL, before, owner);
            if (!is_entry) return;
            I u = in_indices[entry];
            if (level[u] == wanted && load_relaxed(&parent[w]) > u) lower_to(&parent[w], u);
        });
    });
}

// A source is its own parent, others have n until one is offered.
template <typename I>
__global__ void reset_parents(
    I n, const I* level, I* parent, const unsigned long long* stage, unsigned long long* deepest)
{
    if (*stage != DONE) return;
    long long v = global_thread();
    I mine = v < n ? level[v] : I(UNSEEN);
    if (v < n) parent[v] = mine > 0 ? n : mine == 0 ? (I)v : I(-1);
    record_deepest(mine, deepest);
}

template <typename I>
__global__ void offer_parents(I n, I nnz, const I* indptr, const I* indices, const I* level, I* parent,
                              const unsigned long long* stage)
{
    if (*stage != DONE) return;
    for_tiles<TILE>(n, nnz, indptr, [&](I v, I begin, I end) {
        I mine = level[v];
        if (mine == UNSEEN) end = begin;
        WarpRows<I>(begin, end).for_entries([&](int owner, I entry, bool is_entry) {
            I u = __shfl_sync(ALL, v, owner), next = __shfl_sync(ALL, I(mine + 1), owner);
            if (!is_entry) return;
            I w = indices[entry];
            if (level[w] == next && load_relaxed(&parent[w]) > u) lower_to(&parent[w], u);
        });
    });
}
