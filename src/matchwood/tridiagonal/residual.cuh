// Does a row hold?  Its residual beside the sizes of its terms.  The limits: tridiagonal/trust.py.
#pragma once

#include "matchwood/elements.cuh"

// A row may be off by `small` of its terms, `rare` rows of a block by `large`.
template <typename T>
struct Limits {
    T small, large;
    int rare;
};

struct Count {
    int off, far;
};

template <int K, typename T>
__device__ __forceinline__ void judge(const T (&terms)[K], T right, Limits<T> limits, Count& count)
{
    T residual = -right, size = magnitude(right);
#pragma unroll
    for (int k = 0; k < K; ++k) {
        residual += terms[k];
        size += magnitude(terms[k]);
    }
    residual = magnitude(residual);
    // written so that what is not a number counts
    if (!(residual <= limits.small * size)) ++count.off;
    if (!(residual <= limits.large * size && size <= large<T>() * large<T>())) ++count.far;
}

// All threads of a warp call, with the first row of theirs.
template <typename T>
__device__ __forceinline__ void report(Count count, Limits<T> limits, long long row, unsigned long long* status)
{
    int off = count.off + (count.far > 0 ? (1 << 20) : 0);
#pragma unroll
    for (int s = 16; s > 0; s /= 2) off += __shfl_xor_sync(0xffffffffu, off, s);
    if (off > limits.rare && threadIdx.x == 0) fail(status, OFF, row);
}

// Items at.. of an array into registers, zeros past its end.
template <typename T>
__device__ __forceinline__ void read_chunk(const T* array, long long at, long long size, T (&values)[16 / sizeof(T)])
{
    constexpr int EACH = 16 / sizeof(T);
    if (at + EACH <= size && ((unsigned long long)(array + at) & 15) == 0) {
        uint4 whole = *(const uint4*)(array + at);
        memcpy(values, &whole, 16);
    } else {
#pragma unroll
        for (int v = 0; v < EACH; ++v) values[v] = at + v < size ? array[at + v] : T(0);
    }
}
