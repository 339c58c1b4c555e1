// Whether an array of mates is one, on the GPU.  Host side: gpu.py; the rule: __init__.py.
#include "matchwood/status.cuh"
#include "matchwood/threads.cuh"

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
