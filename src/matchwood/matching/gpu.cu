// The weight of a matching, whether an array of mates is one, and pairs of those that have none.  Host side: gpu.py;
// the rule of mates: methods.py, of pairs: coarsening/__init__.py.
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

// `width` lanes per free vertex, a power of two up to WARP: its heaviest neighbour (equal: the smaller), 0 for none,
// and a number for each block where there are blocks.
template <typename I, typename W>
__global__ void group_free(long long count, I n, const I* __restrict__ free, const I* __restrict__ indptr,
                           const I* __restrict__ indices, const W* __restrict__ data, const int* __restrict__ blocks,
                           int width, long long* __restrict__ keys)
{
    long long i = global_thread() / width;
    I v = i < count ? free[i] : I(-1), best = -1;
    W most = 0;
    for (I e = v < 0 ? 0 : indptr[v] + threadIdx.x % width, end = v < 0 ? 0 : indptr[v + 1]; e < end; e += width) {
        I u = indices[e];
        W w = data[e];
        if (best < 0 || exactly_less(most, w) || (exactly_equal(most, w) && u < best)) best = u, most = w;
    }
    for (int step = width / 2; step > 0; step /= 2) {
        I u = __shfl_xor_sync(ALL, best, step);
        W w = __shfl_xor_sync(ALL, most, step);
        if (u < 0) continue;
        if (best < 0 || exactly_less(most, w) || (exactly_equal(most, w) && u < best)) best = u, most = w;
    }
    if (v < 0 || threadIdx.x % width != 0) return;
    keys[i] = (long long)(best + 1) + (blocks == nullptr ? 0 : ((long long)n + 1) * blocks[v]);
}

// One thread per free vertex, sorted by key: of each key the first and the second are mates, and so on, where their
// weights, if there are any, are not more than `limit` together.
template <typename I>
__global__ void pair_free(long long count, const long long* __restrict__ keys, const I* __restrict__ free,
                          const long long* __restrict__ weights, long long limit, I* mate)
{
    long long i = global_thread();
    if (i + 1 >= count || keys[i] != keys[i + 1]) return;
    if ((i - first_not_below(keys, 0ll, i, keys[i])) % 2 != 0) return;
    I u = free[i], v = free[i + 1];
    if (weights != nullptr && weights[u] + weights[v] > limit) return;
    mate[u] = v;
    mate[v] = u;
}
