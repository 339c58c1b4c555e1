// Places in a tree of joins.  Host side: gpu.py.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// One thread per community: store its parent, by name, and the round `number`.
template <typename I>
__global__ void note_joins(I n, const I* __restrict__ target, const I* __restrict__ names, int number,
                           I* __restrict__ parent, int* __restrict__ when)
{
    long long r = global_thread();
    if (r >= n || target[r] == r) return;
    parent[names[r]] = names[target[r]];
    when[names[r]] = number;
}

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

// One thread per vertex: parent, round and what the degree lacks to `most`, as one number; degree_bits 0
// leaves the degree out.  The largest number for roots, which have no parent.
template <typename I>
__global__ void key_siblings(I n, const I* __restrict__ parent, const int* __restrict__ when,
                             const long long* __restrict__ degree, int round_bits, int degree_bits, long long most,
                             unsigned long long* __restrict__ keys)
{
    long long v = global_thread();
    if (v >= n) return;
    unsigned long long key = (unsigned long long)parent[v] << round_bits | (unsigned long long)when[v];
    if (degree_bits > 0) key = key << degree_bits | (unsigned long long)(most - degree[v]);
    keys[v] = when[v] == 0 ? ~0ull : key;
}

template <typename I, typename O>
__global__ void sizes_in_order(I count, const O* __restrict__ order, const I* __restrict__ size, I* __restrict__ sizes)
{
    long long i = global_thread();
    if (i < count) sizes[i] = size[order[i]];
}

// One thread per child, by parent: how far behind its parent it lies.  before: the sizes of all children
// before it; begins: the first child of each parent.
template <typename I>
__global__ void place_children(I joined, const long long* __restrict__ children, const I* __restrict__ parent,
                               const I* __restrict__ begins, const long long* __restrict__ before, I* __restrict__ offset)
{
    long long i = global_thread();
    if (i >= joined) return;
    long long v = children[i];
    offset[v] = (I)(1 + before[i] - before[begins[parent[v]]]);
}

// One thread per root: its place, which is the sum of the trees before it; it has no ancestor.
template <typename I>
__global__ void place_roots(I count, const I* __restrict__ roots, const long long* __restrict__ before,
                            I* __restrict__ offset, I* __restrict__ ancestor)
{
    long long i = global_thread();
    if (i >= count) return;
    offset[roots[i]] = (I)before[i];
    ancestor[roots[i]] = I(-1);
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

template <typename I>
__global__ void set_places(I n, const I* __restrict__ place, I* __restrict__ perm)
{
    long long v = global_thread();
    if (v < n) perm[place[v]] = (I)v;
}
