// A level of breadth-first search in a rank's block.  Host side: gpu.py; what it is for: __init__.py.
//
//   follow_rows    top down: a warp to each row of the frontier
//   search_rows    bottom up: a thread to each row, which stops at its first column in the frontier
//
// I is the type of the block's arrays, N that of the user's numbers of vertices.
//
// Races, follow_rows: of all warps that reach v, one changes when[v] by compare-and-swap, and that one lists v.
// best[v] only goes down, by an atomic minimum, which is the same in any order.  The order of `found` is
// arbitrary until gpu.py sorts it.  search_rows has none: a row has one writer.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

constexpr int UNSEEN = -1;

// Caller: best[] larger than any name where when[] is UNSEEN; *tail = 0; `found` has a place for every vertex of
// the block, or for every entry of these rows.
template <typename I, typename N>
__global__ void follow_rows(long long size, const long long* frontier, const I* indptr, const I* indices,
                            const N* names, int level, int* when, N* best, long long* found,
                            unsigned long long* tail)
{
    long long k = global_thread() / WARP;  // this warp's row
    if (k >= size) return;
    long long u = frontier[k];
    N name = names[u];
    for (I i = indptr[u] + lane(); i < indptr[u + 1]; i += WARP) {
        I v = indices[i];
        int seen = load_relaxed(&when[v]);
        if (seen == UNSEEN) {
            seen = atomicCAS(&when[v], UNSEEN, level);
            if (seen == UNSEEN) {
                found[atomicAdd(tail, 1ull)] = v;
                seen = level;
            }
        }
        if (seen == level && name < load_relaxed(&best[v])) lower_to(&best[v], name);
    }
}

// Columns of a row are in the order of their names, so the first in the frontier has the smallest.
template <typename I, typename N>
__global__ void search_rows(I n, const I* indptr, const I* indices, const unsigned char* frontier, const N* names,
                            int level, int* when, N* best)
{
    long long v = global_thread();
    if (v >= n || when[v] != UNSEEN) return;
    for (I i = indptr[v]; i < indptr[v + 1]; ++i) {
        I u = indices[i];
        if (frontier[u]) {
            when[v] = level;
            best[v] = names[u];
            return;
        }
    }
}
