// Does a row hold?  Its residual, relative to the sum of its |terms|.  The limits: tridiagonal/trust.py.
//
// Subnormal numbers: kernels may be compiled so that those of float32, below 2^-126, count as zeros.  This changes
// a row by at most 2^-126 times its unknowns, and by 2^-126 for its right-hand side and for each of seven results.
// Where this is more than an eighth of the limit, the bits of the matrix are searched for subnormal numbers.  If
// there is one, the system is solved in another way.
#pragma once

#include "matchwood/elements.cuh"
#include "matchwood/tile.cuh"

// Checks the rows of one thread, one after the other.  A row is off if its residual exceeds `limit` times its terms.
template <typename T>
struct RowChecker {
    static constexpr bool FLUSHED = sizeof(T) == 4;  // subnormal numbers count as zeros
    static constexpr int ALL = 1 << 20;              // more than the rows of a thread block

    T limit;
    T sum;           // of the |terms| of all rows
    T least;         // the least sum of |terms| of a row
    T reach;         // the largest unknown
    unsigned right;  // the bits of all right-hand sides, by OR
    unsigned marks;  // a bit for each row that is off
    int off;         // rows that are off, without those in `marks`

    __device__ __forceinline__ RowChecker(T limit)
        : limit(limit), sum(0), least(1), reach(0), right(0), marks(0), off(0)
    {
    }

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
        if (!(magnitude(residual) <= limit * size)) marks |= mark;  // also where it is NaN
    }

    // Count the marks, and clear them for the next rows.
    __device__ __forceinline__ void next()
    {
        off += __popc(marks);
        marks = 0;
    }

    // Report the rows that are off to `status`.  All threads of a warp call; `row` is the first row of the warp.
    // `count` counts the rows that are off in the whole system: up to `usual` are FEW_OFF, up to `few` SOME_OFF,
    // more are OFF.  Returns true where the matrix must be searched for subnormal numbers.
    __device__ __forceinline__ bool report(unsigned* count, int few, int usual, long long row,
                                           unsigned long long* status)
    {
        next();
        bool overflow = !(sum <= large<T>() * large<T>());
        int may_be_subnormal = overflow ? 1 : 0;
        if (FLUSHED) {
            bool zero = reach == T(0) && right << 1 == 0;
            if (!zero && !(least * (limit / 8) >= T(0x1p-124) * reach + T(0x1p-122))) may_be_subnormal = 1;
        }
        if (overflow) off += ALL;
#pragma unroll
        for (int s = 16; s > 0; s /= 2) {
            off += __shfl_xor_sync(0xffffffffu, off, s);
            may_be_subnormal += __shfl_xor_sync(0xffffffffu, may_be_subnormal, s);
        }
        if (off > 0 && threadIdx.x == 0) {
            int all = off < ALL ? (int)atomicAdd(count, (unsigned)off) + off : ALL;
            fail(status, off >= ALL || all > few ? OFF : all > usual ? SOME_OFF : FEW_OFF, row);
        }
        return may_be_subnormal > 0;
    }

private:
    static __device__ __forceinline__ T larger_of(T a, T b) { return a > b ? a : b; }
};

// Report a fault if one of `count` items of an array of `size`, from item `first` on, is subnormal.  Decided by the
// bits, since arithmetic may treat such numbers as zeros.
template <typename T>
__device__ __noinline__ void report_subnormal(const T* array, long long first, int count, long long size, long long row,
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
