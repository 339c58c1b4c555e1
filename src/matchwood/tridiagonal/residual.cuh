// Does a row hold?  Its residual beside the sizes of its terms.  The limits: tridiagonal/trust.py.
//
// Subnormal numbers: kernels may be compiled so that those of float32, below 2^-126, count as zeros.  What this
// changes in a row is at most 2^-126 times its unknowns, and 2^-126 for its right-hand side and for each of
// seven results.  Where this is more than an eighth of the limit, the numbers of the matrix are looked at, bit
// by bit; and if one is subnormal, the system is solved elsewhere.
#pragma once

#include "matchwood/elements.cuh"
#include "matchwood/tile.cuh"

// Rows of one thread, one after the other.  A row may be off by `limit` of its terms.
template <typename T>
struct Judge {
    static constexpr bool FLUSHED = sizeof(T) == 4;  // subnormal numbers count as zeros
    static constexpr int ALL = 1 << 20;              // more than the rows of a block

    T limit;
    T sum, least, reach;  // of the terms of all rows, of one row; the largest unknown
    unsigned right;       // all bits of right-hand sides
    unsigned marks;       // a bit for each row that is off
    int off;              // of the rows before

    __device__ __forceinline__ Judge(T limit) : limit(limit), sum(0), least(1), reach(0), right(0), marks(0), off(0) {}

    __device__ __forceinline__ void unknown(T x)
    {
        if (FLUSHED) reach = larger_of(reach, magnitude(x));
    }

    template <int K>
    __device__ __forceinline__ void row(const T (&terms)[K], T b, unsigned mark)
    {
        T residual = -b, size = magnitude(b);
#pragma unroll
        for (int k = 0; k < K; ++k) {
            residual += terms[k];
            size += magnitude(terms[k]);
        }
        sum += size;
        if (FLUSHED) {
            unsigned bits;
            memcpy(&bits, &b, 4);
            right |= bits;
            least = size < least ? size : least;
        }
        if (!(magnitude(residual) <= limit * size)) marks |= mark;  // so that what is not a number counts
    }

    // The marks are counted, and used again.
    __device__ __forceinline__ void next()
    {
        off += __popc(marks);
        marks = 0;
    }

    // All threads of a warp call, with the first row of theirs; `count` is of the whole system, of which `few` rows
    // are mended where they are, and `usual` many are off by chance.  True where subnormal numbers must be looked for.
    __device__ __forceinline__ bool report(unsigned* count, int few, int usual, long long row,
                                           unsigned long long* status)
    {
        next();
        bool wild = !(sum <= large<T>() * large<T>());
        int doubt = wild ? 1 : 0;
        if (FLUSHED) {
            bool zero = reach == T(0) && right << 1 == 0;
            if (!zero && !(least * (limit / 8) >= T(0x1p-124) * reach + T(0x1p-122))) doubt = 1;
        }
        if (wild) off += ALL;
#pragma unroll
        for (int s = 16; s > 0; s /= 2) {
            off += __shfl_xor_sync(0xffffffffu, off, s);
            doubt += __shfl_xor_sync(0xffffffffu, doubt, s);
        }
        if (off > 0 && threadIdx.x == 0) {
            int all = off < ALL ? (int)atomicAdd(count, (unsigned)off) + off : ALL;
            fail(status, off >= ALL || all > few ? OFF : all > usual ? SOME_OFF : FEW_OFF, row);
        }
        return doubt > 0;
    }

private:
    static __device__ __forceinline__ T larger_of(T a, T b) { return a > b ? a : b; }
};

// Items first.. of an array of `size`, `count` of them: is one subnormal?  By its bits, whatever the arithmetic.
template <typename T>
__device__ __noinline__ void look_for_subnormal(const T* array, long long first, int count, long long size, long long row,
                                                unsigned long long* status)
{
    constexpr int MANTISSA = sizeof(T) == 8 ? 52 : 23;
    for (int i = threadIdx.x; i < count && first + i < size; i += TILE_THREADS) {
        unsigned long long bits = 0;
        memcpy(&bits, array + first + i, sizeof(T));
        bits &= ~(1ull << (8 * sizeof(T) - 1));
        if (bits != 0 && bits >> MANTISSA == 0) fail(status, NOT_FINITE, row);
    }
}
