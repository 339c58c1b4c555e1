// 2x2 blocks of a matrix along a linear forest of pairs.  Host side: gpu.py.

#include "matchwood/exact.cuh"
#include "matchwood/sorted_row.cuh"
#include "matchwood/threads.cuh"

// One thread per vertex: the smaller one of a pair writes both, at the pair's place in the order.
template <typename I>
__global__ void list_members(I n, const I* __restrict__ map, const I* __restrict__ mate,
                             const I* __restrict__ place, I* __restrict__ members)
{
    long long v = global_thread();
    if (v >= n) return;
    I other = mate[v];
    if (other >= 0 && other < v) return;
    long long k = place[map[v]];
    members[2 * k] = (I)v;
    members[2 * k + 1] = other;
}

// One thread per pair: it reads the rows of its two vertices and writes its own blocks only.  `place`:
// of a vertex, the place of its pair in the order.  `position`: of a pair, its place in its path, from 1.
template <typename I, typename W>
__global__ void collect(I pairs, const I* __restrict__ indptr, const I* __restrict__ indices,
                        const W* __restrict__ data, const I* __restrict__ place,
                        const I* __restrict__ position, const I* __restrict__ members, W* __restrict__ dl,
                        W* __restrict__ d, W* __restrict__ du)
{
    long long k = global_thread();
    if (k >= pairs) return;
    W lower[4] = {}, diagonal[4] = {}, upper[4] = {};
    bool before = position[k] > 1;
    bool after = k + 1 < pairs && position[k + 1] > 1;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        I v = members[2 * k + i];
        if (v < 0) {
            diagonal[3 * i] = W(1);
            continue;
        }
        for (I e = indptr[v]; e < indptr[v + 1]; ++e) {
            I w = indices[e];
            long long there = place[w];
            if (there < k - 1 || there > k + 1) continue;
            bool second = members[2 * there + 1] == w;
            W value = data[e];
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                if (second != (c == 1)) continue;
                if (there == k) diagonal[2 * i + c] = value;
                if (there == k - 1 && before) lower[2 * i + c] = value;
                if (there == k + 1 && after) upper[2 * i + c] = value;
            }
        }
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        dl[4 * k + c] = lower[c];
        d[4 * k + c] = diagonal[c];
        du[4 * k + c] = upper[c];
    }
}

// sums[block] = the sum of |numbers[k]| over the k of this block for which bit k % 4 of `wanted` is set, that
// is, over certain places of 2x2 blocks.  The grid is always the same, so the order of additions is, and the
// result is the same to the last bit.
template <typename W>
__global__ void add_magnitudes(long long m, const W* __restrict__ numbers, unsigned int wanted,
                               double* __restrict__ sums)
{
    double sum = 0;
    for (long long k = global_thread(); k < m; k += all_threads())
        if (wanted >> (k & 3) & 1) sum += magnitude(widened(numbers[k]));
    sum = block_reduce(sum, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// The same for the diagonal of a matrix with sorted rows.
template <typename I, typename W>
__global__ void add_diagonal(I n, const I* __restrict__ indptr, const I* __restrict__ indices,
                             const W* __restrict__ data, double* __restrict__ sums)
{
    double sum = 0;
    for (long long v = global_thread(); v < n; v += all_threads()) {
        I end = indptr[v + 1], at = first_not_below(indices, indptr[v], end, (I)v);
        if (at < end && indices[at] == v) sum += magnitude(widened(data[at]));
    }
    sum = block_reduce(sum, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
