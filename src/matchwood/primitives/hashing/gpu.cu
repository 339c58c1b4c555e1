// Hashes of whole arrays, one thread per element.  The hashes: matchwood/hashing.cuh.
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"

__global__ void mix64_all(long long n, const unsigned long long* __restrict__ x,
                          unsigned long long* __restrict__ out)
{
    long long k = global_thread();
    if (k < n) out[k] = mix64(x[k]);
}

template <typename U, typename V>
__global__ void hash2_all(long long n, const U* __restrict__ u, const V* __restrict__ v,
                          unsigned long long seed, unsigned long long* __restrict__ out)
{
    long long k = global_thread();
    if (k < n) out[k] = hash2(u[k], v[k], seed);
}

template <typename I>
__global__ void quarter_md5_all(long long n, const I* __restrict__ v, unsigned int r,
                                unsigned int* __restrict__ out)
{
    long long k = global_thread();
    if (k < n) out[k] = quarter_md5((unsigned int)v[k], r);
}

template <typename I>
__global__ void random_bit_all(long long n, const I* __restrict__ v, unsigned int r,
                               unsigned long long barrier, bool* __restrict__ out)
{
    long long k = global_thread();
    if (k < n) out[k] = random_bit((unsigned int)v[k], r, barrier);
}
