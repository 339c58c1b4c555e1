// A few equations in registers: sizes of rows, pivots, elimination.  For elements.cuh and the files that include it.
//
// A pivot is compared relative to the size of its row, the largest coefficient that the row has or had.  So a row
// that grows becomes a worse pivot, and no row grows without bound.  See docs/problems/tridiagonal.rst.
#pragma once

#include "matchwood/threads.cuh"

// Absolute values cost nothing as operands of an instruction; a comparison would take two instructions more.
__device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
__device__ __forceinline__ double magnitude(double x) { return fabs(x); }

// The rounding unit of the type.  A zero pivot is replaced by a number of the size of rounding errors.
template <typename T>
__device__ __forceinline__ T epsilon() { return sizeof(T) == 8 ? T(2.220446049250313e-16) : T(1.1920929e-7); }

// 1 / x, with an error of at most one rounding unit; infinite or zero for floats below 2^-126 or above 2^126.  Takes
// a tenth of the instructions of a division.
__device__ __forceinline__ float inverse_of(float x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1 / x;
#endif
}
__device__ __forceinline__ double inverse_of(double x)
{
#ifdef __CUDA_ARCH__
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    y = fma(y, fma(-x, y, 1.0), y);
    return fma(y, fma(-x, y, 1.0), y);
#else
    return 1 / x;
#endif
}

// Sizes of rows, relative to which pivots are compared.  For a double the upper 32 bits are precise enough, as an
// integer: a maximum of integers is one instruction instead of three.
__device__ __forceinline__ float size_of(float x) { return fabsf(x); }
__device__ __forceinline__ int size_of(double x) { return __double2hiint(x) & 0x7fffffff; }
__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ int larger(int a, int b) { return a > b ? a : b; }
__device__ __forceinline__ float as_number(float size) { return size; }
__device__ __forceinline__ double as_number(int size) { return __hiloint2double(size, 0); }
template <typename T>
using Size = decltype(size_of(T()));

// Sizes are multiplied with coefficients, so they must lie between 1 / large and large.  No size is below
// least_size, so that a row of zeros is no pivot.
template <typename T>
__device__ __forceinline__ T large() { return sizeof(T) == 8 ? T(0x1p400) : T(0x1p60); }
template <typename T>
__device__ __forceinline__ Size<T> least_size() { return size_of(sizeof(T) == 8 ? T(0x1p-600) : T(0x1p-63)); }

// The smallest size so far, as an unsigned integer minus one, so that zero becomes the largest of all.  A row of
// zeros has no pivot at any scale, and must not count as a number that is too small.
__device__ __forceinline__ unsigned rank_of(float size) { unsigned bits; memcpy(&bits, &size, 4); return bits - 1; }
__device__ __forceinline__ unsigned rank_of(int size) { return (unsigned)size - 1; }
template <typename S>
__device__ __forceinline__ unsigned smaller_rank(unsigned least, S size)
{
    unsigned rank = rank_of(size);
    return rank < least ? rank : least;
}
template <typename T>
__device__ __forceinline__ bool too_small(unsigned least) { return least < rank_of(size_of(1 / large<T>())); }

// Is a row with pivot a and size a_size better than one with b and b_size?
template <typename T, typename S>
__device__ __forceinline__ bool better_pivot(T a, S a_size, T b, S b_size)
{
    return magnitude(a) * as_number(b_size) > magnitude(b) * as_number(a_size);
}

// The replacement of a zero pivot: a number of the size of the rounding errors of its row.
template <int FROM, int TO, int C, typename T>
__device__ __forceinline__ T stand_in(const T (&row)[C])
{
    T sum = T(0);
#pragma unroll
    for (int k = FROM; k < TO; ++k) sum += magnitude(row[k]);
    return sum > T(0) ? epsilon<T>() * sum : epsilon<T>();
}

template <int FIRST, int COLUMN, int C, typename T>
__device__ __forceinline__ void swap_rows(T (&a)[C], T (&b)[C], bool wanted)
{
#pragma unroll
    for (int k = 0; k < C; ++k) {
        if (k >= FIRST && k < COLUMN) continue;  // eliminated already
        T x = a[k], y = b[k];
        a[k] = wanted ? y : x;
        b[k] = wanted ? x : y;
    }
}

// Eliminate column FIRST + c by row c, whose pivot is not zero.
template <int FIRST, int COLUMN, int R, int C, typename T>
__device__ __forceinline__ void eliminate_below(T (&w)[R][C])
{
    constexpr int c = COLUMN - FIRST;
    T inverse = inverse_of(w[c][COLUMN]);
#pragma unroll
    for (int k = 0; k < C; ++k)
        if (k < FIRST || k > COLUMN) w[c][k] *= inverse;
#pragma unroll
    for (int i = c + 1; i < R; ++i) {
        T factor = w[i][COLUMN];
#pragma unroll
        for (int k = 0; k < C; ++k)
            if (k < FIRST || k > COLUMN) w[i][k] -= factor * w[c][k];
    }
}

// One column of `eliminate`.  `picks` gets a bit for each possible row exchange: was it made?  With REPEAT the
// bits are read from there.
template <bool REPEAT, int FIRST, int COLUMN, int R, int C, typename T>
__device__ __forceinline__ bool eliminate_column(T (&w)[R][C], Size<T> (&size)[R], unsigned& picks)
{
    constexpr int c = COLUMN - FIRST;
#pragma unroll
    for (int i = c + 1; i < R; ++i) {
        bool better;
        if (REPEAT) {
            better = picks & 1;
            picks >>= 1;
        } else {
            better = better_pivot(w[i][COLUMN], size[i], w[c][COLUMN], size[c]);
            picks = picks >> 1 | (better ? 0x80000000u : 0u);
            Size<T> a = size[c], b = size[i];
            size[c] = better ? b : a;
            size[i] = better ? a : b;
        }
        swap_rows<FIRST, COLUMN>(w[c], w[i], better);
    }
    bool none = w[c][COLUMN] == T(0);
    if (none) w[c][COLUMN] = stand_in<COLUMN + 1, C - 1>(w[c]);
    eliminate_below<FIRST, COLUMN>(w);
    return none;
}

// Eliminate columns FIRST..FIRST+COUNT-1 (one or two or four) of R equations by row pivoting; the pivot
// rows, divided by their pivots, end on top.  The last column is the right-hand side.  Pivots are compared
// relative to `size`, the largest coefficient that their row has or had.  It is updated first, except for the
// last NEW rows, whose size is up to date; the others have no coefficients in the last EMPTY columns.
// Returns the first column, counted from FIRST, that had no pivot, or -1.
template <int FIRST, int COUNT, int NEW = 0, int EMPTY = 0, int R, int C, typename T>
__device__ __forceinline__ int eliminate(T (&w)[R][C], Size<T> (&size)[R], unsigned& picks)
{
#pragma unroll
    for (int i = 0; i < R - NEW; ++i)
#pragma unroll
        for (int k = 0; k < C - 1 - EMPTY; ++k) size[i] = larger(size[i], size_of(w[i][k]));
    int lacking = -1;
    if (eliminate_column<false, FIRST, FIRST>(w, size, picks)) lacking = 0;
    if constexpr (COUNT > 1)
        if (eliminate_column<false, FIRST, FIRST + 1>(w, size, picks) && lacking < 0) lacking = 1;
    if constexpr (COUNT > 2)
        if (eliminate_column<false, FIRST, FIRST + 2>(w, size, picks) && lacking < 0) lacking = 2;
    if constexpr (COUNT > 3)
        if (eliminate_column<false, FIRST, FIRST + 3>(w, size, picks) && lacking < 0) lacking = 3;
    return lacking;
}
