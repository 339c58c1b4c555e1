// Does a row hold?  Its residual beside the sizes of its terms.  The limits: tridiagonal/trust.py.
#pragma once

#include "matchwood/elements.cuh"

// Float32 numbers below 2^-126 may be taken for zeros, see `flushed`.
template <typename T>
__device__ __forceinline__ T smallest() { return sizeof(T) == 8 ? T(0x1p-1022) : T(0x1p-126f); }

// Rows of one thread, one after the other.  A row may be off by `small` of its terms; `rare` rows of a block
// by `large`.
template <typename T>
struct Judge {
    T small, large_, least, most;  // limits; the smallest and the largest sum of terms
    int off;
    unsigned right;  // all bits of right-hand sides

    __device__ __forceinline__ Judge(T small, T large) : small(small), large_(large), least(T(1)), most(T(0)), off(0), right(0) {}

    template <int K>
    __device__ __forceinline__ void row(const T (&terms)[K], T b)
    {
        T residual = -b, size = magnitude(b);
#pragma unroll
        for (int k = 0; k < K; ++k) {
            residual += terms[k];
            size += magnitude(terms[k]);
        }
        residual = magnitude(residual);
        most += size;
        // written so that what is not a number counts
        if (!(residual <= small * size)) off += residual <= large_ * size ? 1 : 1 << 20;
    }

    // All threads of a warp call, with the first row of theirs.
    __device__ __forceinline__ void report(int rare, long long row, unsigned long long* status)
    {
        if (!(most <= large<T>() * large<T>())) off += 1 << 20;
#pragma unroll
        for (int s = 16; s > 0; s /= 2) off += __shfl_xor_sync(0xffffffffu, off, s);
        if (off > rare && threadIdx.x == 0) fail(status, OFF, row);
    }
};
