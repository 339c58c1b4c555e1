// The weight of a matching, and whether an array of mates is one.  Host side: gpu.py; the rule of mates: methods.py.
#include "matchwood/atomics.cuh"
#include "matchwood/exact.cuh"
#include "matchwood/sorted_row.cuh"
#include "matchwood/status.cuh"
#include "matchwood/threads.cuh"

// One thread per vertex: mate[u] is read and written by it alone.
// The weight of an edge is looked up in the row of its end with fewer neighbours.
// sums[block] = the weight of the edges of the block's vertices.  The grid is always the same, so the
// order of additions is, and the result is the same to the last bit.
template <typename I, typename W>
__global__ void finish_matching(I n, const I* indptr, const I* indices, const W* data, I* mate, double* sums)
{
    double sum = 0;
    for (long long u = global_thread(); u < n; u += all_threads()) {
        I v = load_relaxed(&mate[u]);
        if (v < 0 && v != -1) store_relaxed(&mate[u], I(-1));
        if (v <= u) continue;
        bool shorter = indptr[u + 1] - indptr[u] <= indptr[v + 1] - indptr[v];
        I row = shorter ? (I)u : v, wanted = shorter ? v : (I)u;
        I end = indptr[row + 1], k = first_not_below(indices, indptr[row], end, wanted);
        if (k < end) sum += widened(data[k]);  // always true where the pattern is symmetric
    }
    sum = block_reduce(sum, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

constexpr unsigned OUTSIDE = 1;  // no vertex and not -1
constexpr unsigned NOT_MUTUAL = 2;     // not mutual, or its own mate

// One thread per vertex.
template <typename M>
__global__ void check_mates(long long n, const M* __restrict__ mate, unsigned long long* status)
{
    long long v = global_thread();
    if (v >= n) return;
    long long u = (long long)mate[v];
    if (u < -1 || u >= n)
        fail(status, OUTSIDE, v);
    else if (u == v || (u >= 0 && (long long)mate[u] != v))
        fail(status, NOT_MUTUAL, v);
}
