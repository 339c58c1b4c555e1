// Weight inside communities and their volumes on the GPU.  Host side: gpu.py.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// Warps go through the rows in turn.  Sums of integers: the same in any order.
template <typename I>
__global__ void add_inside(I n, const I* __restrict__ indptr, const I* __restrict__ indices,
                           const long long* __restrict__ data, const long long* __restrict__ strength,
                           const I* __restrict__ labels, unsigned long long* volumes, unsigned long long* inside)
{
    unsigned long long sum = 0;
    for (long long v = global_thread() / WARP; v < n; v += all_threads() / WARP) {
        I own = labels[v];
        if (lane() == 0) atomicAdd(&volumes[own], (unsigned long long)strength[v]);
        for (I e = indptr[v] + lane(); e < indptr[v + 1]; e += WARP)
            if (labels[indices[e]] == own) sum += data == nullptr ? 1 : (unsigned long long)data[e];
    }
    sum = block_reduce(sum, 0ull, Plus());
    if (threadIdx.x == 0 && sum) atomicAdd(inside, sum);
}
