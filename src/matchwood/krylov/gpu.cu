// Steps of flexible conjugate gradients.  Coefficients stay on the device: the last block of a kernel adds up what all
// have, in order, and computes them.  After DONE is set nothing changes any more, so that the host may read it late.
#include "matchwood/threads.cuh"

constexpr int ALONG = 0, BACK = 1, STEP = 2, LEFT = 3, DONE = 4, TAKEN = 5;  // DONE: 1 converged, -1 broke down
[[maybe_unused]] constexpr int NUMBERS = 6;                                  // for the host

// Sums over the grid, in thread 0 of the last block to arrive; false in all others.  All threads call, once a kernel.
template <int COUNT>
__device__ __forceinline__ bool sum_over_grid(double (&sums)[COUNT], double* parts, unsigned* arrived)
{
    __shared__ bool is_last;
    for (int k = 0; k < COUNT; ++k) {
        double sum = block_reduce(sums[k], 0.0, Plus());
        if (threadIdx.x == 0) parts[(long long)blockIdx.x * COUNT + k] = sum;
    }
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(arrived, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!is_last) return false;
    for (int k = 0; k < COUNT; ++k) {
        double sum = 0;
        for (int b = threadIdx.x; b < (int)gridDim.x; b += blockDim.x) sum += __ldcg(&parts[(long long)b * COUNT + k]);
        sums[k] = block_reduce(sum, 0.0, Plus());
    }
    if (threadIdx.x == 0) *arrived = 0;
    return threadIdx.x == 0;
}

// How much of the last direction p there is in z; q = A p.
template <typename T>
__global__ void measure_back(long long n, const T* z, const T* q, double* found, double* parts, unsigned* arrived)
{
    if (found[DONE] != 0) return;
    double sums[1] = {0};
    for (long long i = global_thread(); i < n; i += all_threads()) sums[0] += (double)z[i] * (double)q[i];
    if (sum_over_grid(sums, parts, arrived)) found[BACK] = sums[0] / found[ALONG];
}

template <typename T>
__global__ void turn(long long n, const T* z, T* p, const double* found)
{
    if (found[DONE] != 0) return;
    T back = (T)found[BACK];
    for (long long i = global_thread(); i < n; i += all_threads()) p[i] = z[i] - back * p[i];
}

// How far to go along p.
template <typename T>
__global__ void measure_step(long long n, const T* p, const T* q, const T* r, double* found, double* parts,
                             unsigned* arrived)
{
    if (found[DONE] != 0) return;
    double sums[2] = {0, 0};
    for (long long i = global_thread(); i < n; i += all_threads()) {
        sums[0] += (double)p[i] * (double)q[i];
        sums[1] += (double)p[i] * (double)r[i];
    }
    if (!sum_over_grid(sums, parts, arrived)) return;
    found[ALONG] = sums[0];
    found[STEP] = sums[1] / sums[0];
    if (!(sums[0] > 0)) found[DONE] = -1;  // also NaN
}

template <typename T>
__global__ void advance(long long n, const T* p, const T* q, T* x, T* r, double allowed, double* found, double* parts,
                        unsigned* arrived)
{
    if (found[DONE] != 0) return;
    T step = (T)found[STEP];
    double sums[1] = {0};
    for (long long i = global_thread(); i < n; i += all_threads()) {
        x[i] += step * p[i];
        T left = r[i] - step * q[i];
        r[i] = left;
        sums[0] += (double)left * (double)left;
    }
    if (!sum_over_grid(sums, parts, arrived)) return;
    found[LEFT] = sums[0];
    found[TAKEN] += 1;
    if (sqrt(sums[0]) <= allowed) found[DONE] = 1;
}
