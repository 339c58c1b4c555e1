// Union-find in one array, parent[v] <= v; roots are their own parents.  The idea and the papers:
// primitives/union_find/__init__.py.
//
// Races: parents are read and written by relaxed atomics.  A parent that is not the vertex itself
// is a smaller vertex of the same set, whichever thread wrote it last, so a stale one is a correct,
// longer way to the root; a root is changed by compare-and-swap alone, so no hook is lost.
#pragma once
#include "matchwood/atomics.cuh"

// The root of v as far as this thread sees, halving the path on the way: every vertex passed
// gets its grandparent as its parent.  Two threads that halve the same path may undo each other's step
// (write an older grandparent); that costs time, not correctness.
template <typename I>
__device__ __forceinline__ I find_root(I* parent, I v)
{
    I up = load_relaxed(&parent[v]);
    while (up != v) {
        I above = load_relaxed(&parent[up]);
        if (above == up) return up;
        store_relaxed(&parent[v], above);
        v = above;
        up = load_relaxed(&parent[v]);
    }
    return v;
}

// As find_root, but leaves the paths alone: for phases where the forest is flat already.
template <typename I>
__device__ __forceinline__ I peek_root(const I* parent, I v)
{
    I up = load_relaxed(&parent[v]);
    while (up != v) {
        v = up;
        up = load_relaxed(&parent[v]);
    }
    return v;
}

// Join the sets of u and v: hook the larger root under the smaller one.  Returns true when this
// call joined two sets.  When the hook fails, another thread hooked that root first: go on there.
template <typename I>
__device__ __forceinline__ bool join_sets(I* parent, I u, I v)
{
    u = find_root(parent, u);
    v = find_root(parent, v);
    while (u != v) {
        if (u < v) {
            I swap = u;
            u = v;
            v = swap;
        }
        I before = compare_and_swap(&parent[u], u, v);
        if (before == u) return true;
        u = find_root(parent, before);
        v = find_root(parent, v);
    }
    return false;
}

// The same for two vertices that are probably under the same parent.
template <typename I>
__device__ __forceinline__ void join_ends(I* parent, I v, I w)
{
    I a = load_relaxed(&parent[v]), b = load_relaxed(&parent[w]);
    if (a != b) join_sets(parent, a, b);
}
