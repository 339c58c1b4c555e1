// Entries that are kept, and their magnitudes.  Host: gpu.py.
#include "matchwood/exact.cuh"
#include "matchwood/threads.cuh"

// One thread per entry: off the diagonal and, where there are values, not zero.
template <typename I>
__global__ void mark_loops(long long m, const I* __restrict__ rows, const I* __restrict__ indices,
                           int* __restrict__ kept)
{
    long long k = global_thread();
    if (k < m) kept[k] = indices[k] != rows[k];
}

template <typename I, typename W>
__global__ void mark_zeros(long long m, const I* __restrict__ rows, const I* __restrict__ indices,
                           const W* __restrict__ data, int* __restrict__ kept)
{
    long long k = global_thread();
    if (k < m) kept[k] = indices[k] != rows[k] && !is_zero(data[k]);
}

// One thread per entry: where it goes, if it is kept.
template <typename I>
__global__ void move_pattern(long long m, const int* __restrict__ kept,
                             const long long* __restrict__ places, const I* __restrict__ indices,
                             I* __restrict__ out_indices)
{
    long long k = global_thread();
    if (k < m && kept[k]) out_indices[places[k]] = indices[k];
}

template <typename I, typename W>
__global__ void move_weights(long long m, const int* __restrict__ kept,
                             const long long* __restrict__ places, const I* __restrict__ indices,
                             const W* __restrict__ data, I* __restrict__ out_indices,
                             W* __restrict__ out_data)
{
    long long k = global_thread();
    if (k < m && kept[k]) {
        out_indices[places[k]] = indices[k];
        out_data[places[k]] = magnitude(data[k]);
    }
}

// One thread per row: where it starts among the entries that are kept.
template <typename I>
__global__ void move_rows(long long n, const I* __restrict__ indptr,
                          const long long* __restrict__ places, I* __restrict__ out_indptr)
{
    long long r = global_thread();
    if (r <= n) out_indptr[r] = (I)places[indptr[r]];
}

template <typename W>
__global__ void take_magnitudes(long long m, const W* __restrict__ data, W* __restrict__ out)
{
    long long k = global_thread();
    if (k < m) out[k] = magnitude(data[k]);
}
