// Pointer jumping on the GPU.  Host side: gpu.py.  The rule and the paper: __init__.py.
//
//   start        a root is its own parent
//   jump         every vertex takes the parent of its parent; once a round
//   find_lost    the smallest vertex whose last pointer is no root: its way leads into a cycle
//
// Races: within a round a thread may read a pointer that another thread has moved up already.  Each
// value on the way is an ancestor, and further up than the one before, so the way of a pointer in a
// round is never shorter than a round with a copy of the old pointers would make it.  A cycle of 2^k
// vertices may end up pointing to themselves, so find_lost decides by the parents what a root is.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// One thread per vertex; *changed = 1, so that the first round runs.
template <typename I>
__global__ void start(I n, const I* parent, I* up, int* changed)
{
    long long v = global_thread();
    if (v < n) up[v] = parent[v] < 0 ? (I)v : parent[v];
    if (v == 0) *changed = 1;
}

// One thread per vertex.  `before`: whether the round before changed anything.
template <typename I>
__global__ void jump(I n, I* up, const int* before, int* changed)
{
    if (*before == 0) return;
    long long v = global_thread();
    bool moved = false;
    if (v < n) {
        I above = load_relaxed(&up[v]), over = load_relaxed(&up[above]);
        moved = over != above;
        if (moved) store_relaxed(&up[v], over);
    }
    if (__syncthreads_or(moved) && threadIdx.x == 0 && load_relaxed(changed) == 0) store_relaxed(changed, 1);
}

// One thread per vertex; *lost is n before.  A minimum is the same in any order.
template <typename I>
__global__ void find_lost(I n, const I* parent, const I* up, I* lost)
{
    long long v = global_thread();
    if (v >= n) return;
    I root = up[v];
    if (parent[root] >= 0 && parent[root] != root && (I)v < load_relaxed(lost)) lower_to(lost, (I)v);
}
