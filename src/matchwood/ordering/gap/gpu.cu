// Gaps and arrangements on the GPU.  Host side: gpu.py; definitions: __init__.py.
//
// One thread for every entry, in strides; sums are integers, added up by blocks and then atomically.
#include "matchwood/atomics.cuh"
#include "matchwood/logs.cuh"
#include "matchwood/threads.cuh"

__device__ __forceinline__ void add_up(unsigned long long sum, unsigned long long* total)
{
    sum = block_reduce(sum, 0ull, Plus());
    if (threadIdx.x == 0) atomicAdd(total, sum);
}

// Lengths of edges, and their logarithms; each edge once.  `place` may be null.
template <typename I>
__global__ void add_lengths(I nnz, const I* row, const I* indices, const I* place, const int* table,
                            unsigned long long* total, unsigned long long* log_total)
{
    unsigned long long sum = 0, log_sum = 0;
    for (long long k = global_thread(); k < nnz; k += all_threads()) {
        I u = row[k], v = indices[k];
        if (u >= v) continue;
        long long from = place == nullptr ? u : place[u], to = place == nullptr ? v : place[v];
        long long distance = from < to ? to - from : from - to;
        sum += distance;
        log_sum += log_of(distance, table);
    }
    add_up(sum, total);
    add_up(log_sum, log_total);
}

// Gaps between entries that follow one another in a row, and their logarithms.  Rows are sorted.
template <typename I>
__global__ void add_gaps(I nnz, const I* row, const I* places, const int* table, unsigned long long* total,
                         unsigned long long* log_total)
{
    unsigned long long sum = 0, log_sum = 0;
    for (long long k = global_thread() + 1; k < nnz; k += all_threads()) {
        if (row[k] != row[k - 1]) continue;
        long long gap = (long long)places[k] - places[k - 1];
        if (gap <= 0) continue;
        sum += gap;
        log_sum += log_of(gap, table);
    }
    add_up(sum, total);
    add_up(log_sum, log_total);
}
