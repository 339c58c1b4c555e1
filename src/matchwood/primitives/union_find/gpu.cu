// Union-find over a list of edges.  The device functions: matchwood/union_find.cuh.
#include "matchwood/status.cuh"
#include "matchwood/threads.cuh"
#include "matchwood/union_find.cuh"

constexpr unsigned NO_VERTEX = 1;  // code of the failure

// One thread per edge.  Fails with NO_VERTEX and the first edge whose end is no vertex.
template <typename I>
__global__ void join(long long m, const I* __restrict__ u, const I* __restrict__ v, I n, I* parent,
                     unsigned long long* status)
{
    long long k = global_thread();
    if (k >= m) return;
    I a = u[k], b = v[k];
    if (a < 0 || a >= n || b < 0 || b >= n)
        fail(status, NO_VERTEX, k);
    else
        join_sets(parent, a, b);
}

// One thread per vertex: its label is its root.  Others may shorten paths at the same time; the
// root stays what it is.
template <typename I>
__global__ void flatten(I n, I* parent)
{
    long long v = global_thread();
    if (v < n) store_relaxed(&parent[v], peek_root(parent, (I)v));
}
