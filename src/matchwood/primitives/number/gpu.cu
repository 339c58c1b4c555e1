// The smallest vertex of each label.  Host side: gpu.py.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// One thread per vertex; first[] is n everywhere before.  A minimum is the same in any order.
template <typename I>
__global__ void find_first(I n, const I* __restrict__ labels, I* first)
{
    long long v = global_thread();
    if (v < n && (I)v < load_relaxed(&first[labels[v]])) lower_to(&first[labels[v]], (I)v);
}
