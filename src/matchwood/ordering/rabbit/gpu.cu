// Places in a tree of joins.  Host side: gpu.py.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// One thread per vertex; children of each, 0 at first.
template <typename I>
__global__ void count_children(I n, const I* parent, I* children)
{
    long long v = global_thread();
    if (v < n && parent[v] != v) take(&children[parent[v]], I(1));
}

// One thread per leaf, which goes up: it adds the size of its subtree to its parent's, and the thread
// of the last child continues from there.  So a size is complete before it is passed on; fences order
// what the other children added before.  `size` is 1 at first, `waiting` a copy of `children`.
template <typename I>
__global__ void add_sizes(I n, const I* parent, const I* children, I* waiting, I* size)
{
    long long leaf = global_thread();
    if (leaf >= n || children[leaf] != 0) return;
    for (I v = (I)leaf; parent[v] != v;) {
        I above = parent[v];
        take(&size[above], load_relaxed(&size[v]));
        fence();
        if (take(&waiting[above], I(-1)) != 1) return;
        fence();
        v = above;
    }
}

// One thread per vertex: the sum up to its ancestor, and on from there.  The sum of a vertex is that
// of all from it up to its ancestor, which is left out; -1 where none is left.
template <typename I>
__global__ void leap(I n, const I* ancestor, const I* sum, I* next_ancestor, I* next_sum, int* changed)
{
    long long v = global_thread();
    if (v >= n) return;
    I above = ancestor[v], further = above < 0 ? above : ancestor[above];
    next_sum[v] = above < 0 ? sum[v] : sum[v] + sum[above];
    next_ancestor[v] = further;
    if (further >= 0) *changed = 1;
}
