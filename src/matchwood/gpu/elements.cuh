// Elements of a block tridiagonal system: what is left of many rows.  The idea: tridiagonal/cpu_elements.py.
//
// An element is 2 P equations in X[s-1], X[s] | X[e], X[e+1]; equation i has 4 P coefficients, a
// right-hand side and one over the size of its row: FIELDS numbers.  Field f of element k is at
// data[f * total + k].  The 2 P numbers of an end are X[s-1] and X[s]: end k is before element k.
//
// A block joins its elements, two for each thread, to one in shared memory, as a binary tree in place: at
// step s element i takes in element i + s, whose place then holds what expresses the unknowns between
// them by those around: `tree_up`.  With the outer ends known, `tree_down` follows the same tree.  At each
// step a thread touches only the two places that it joins; barriers separate the steps.
#pragma once

#include "matchwood/status.cuh"
#include "matchwood/threads.cuh"

constexpr unsigned NOT_FINITE = 1;
constexpr unsigned SINGULAR = 2;  // and the level: a fault on a lower level counts first

// The instructions have these built in; a comparison would take two more.
__device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
__device__ __forceinline__ double magnitude(double x) { return fabs(x); }
__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double larger(double a, double b) { return a > b ? a : b; }

// What a zero pivot is replaced by: rounding noise.
template <typename T>
__device__ __forceinline__ T epsilon() { return sizeof(T) == 8 ? T(2.220446049250313e-16) : T(1.1920929e-7); }

// 1 / x, with an error of one rounding at most; of the numbers that are smaller than 2^-126 (float) or
// larger than 2^126 it is infinite or zero.  A tenth of the instructions of a division.
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

// What pivots of a row are measured by: about one over its largest entry.
__device__ __forceinline__ float weight_of(float largest) { return inverse_of(larger(largest, 1e-37f)); }
__device__ __forceinline__ double weight_of(double largest)
{
#ifdef __CUDA_ARCH__
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(larger(largest, 1e-300)));
    return y;
#else
    return 1 / larger(largest, 1e-300);
#endif
}

// Eliminate columns FIRST..FIRST+COUNT-1 of R equations by row pivoting; the pivot rows, divided by
// their pivots, end on top.  The last column is the right-hand side.  Returns the first column, from
// FIRST, that had no pivot, or -1.
template <int FIRST, int COUNT, int R, int C, typename T>
__device__ __forceinline__ int eliminate(T (&w)[R][C], T (&weight)[R])
{
    int lacking = -1;
#pragma unroll
    for (int c = 0; c < COUNT; ++c) {
        const int at = FIRST + c;
#pragma unroll
        for (int i = c + 1; i < R; ++i) {
            bool better = magnitude(w[i][at]) * weight[i] > magnitude(w[c][at]) * weight[c];
#pragma unroll
            for (int k = 0; k < C; ++k) {
                if (k >= FIRST && k < at) continue;  // eliminated already
                T a = w[c][k], b = w[i][k];
                w[c][k] = better ? b : a;
                w[i][k] = better ? a : b;
            }
            T a = weight[c], b = weight[i];
            weight[c] = better ? b : a;
            weight[i] = better ? a : b;
        }
        if (w[c][at] == T(0)) {
            if (lacking < 0) lacking = c;
            w[c][at] = epsilon<T>();
        }
        T inverse = inverse_of(w[c][at]);
#pragma unroll
        for (int k = 0; k < C; ++k)
            if (k < FIRST || k > at) w[c][k] *= inverse;
#pragma unroll
        for (int i = c + 1; i < R; ++i) {
            T factor = w[i][at];
#pragma unroll
            for (int k = 0; k < C; ++k)
                if (k < FIRST || k > at) w[i][k] -= factor * w[c][k];
        }
    }
    return lacking;
}

template <int P, typename T>
struct Elements {
    static constexpr int ROW = 4 * P + 2;
    static constexpr int FIELDS = 2 * P * ROW;

    T* data;
    long long total;

    __device__ __forceinline__ T& at(long long k, int row, int column)
    {
        return data[(row * ROW + column) * total + k];
    }
};

// The elements of a block in shared memory.  One number is left free after each 128 bytes, so that
// those 2, 4, 8, ... apart, which a step of the tree reads at once, are in different banks.
template <int P, typename T>
struct Room {
    static constexpr int LINE = 128 / sizeof(T);

    T* data;

    static __device__ __forceinline__ int stride() { return 2 * blockDim.x + 2 * blockDim.x / LINE; }
    __device__ __forceinline__ T& at(int k, int row, int column)
    {
        return data[(row * Elements<P, T>::ROW + column) * stride() + k + k / LINE];
    }
    __device__ __forceinline__ T* ends() { return data + Elements<P, T>::FIELDS * stride(); }
};

// Join elements a and b, neighbours, in shared memory.  a becomes the joined element; b what gives the
// 2 P unknowns between them, one a row: coefficients of the left and of the right end, right-hand side.
// Returns the first of these unknowns that had no pivot, or -1.
template <int P, typename T>
__device__ __noinline__ int join_pair(Room<P, T> elements, int a, int b)
{
    T w[4 * P][6 * P + 1], weight[4 * P];  // left 2 P | shared 2 P | right 2 P | right-hand side
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
        for (int c = 0; c < 2 * P; ++c) {
            w[i][4 * P + c] = T(0);
            w[2 * P + i][c] = T(0);
        }
#pragma unroll
        for (int c = 0; c < 4 * P; ++c) {
            w[i][c] = elements.at(a, i, c);
            w[2 * P + i][2 * P + c] = elements.at(b, i, c);
        }
        w[i][6 * P] = elements.at(a, i, 4 * P);
        w[2 * P + i][6 * P] = elements.at(b, i, 4 * P);
        weight[i] = elements.at(a, i, 4 * P + 1);
        weight[2 * P + i] = elements.at(b, i, 4 * P + 1);
    }
    int lacking = eliminate<2 * P, 2 * P>(w, weight);
#pragma unroll
    for (int c = 2 * P - 1; c > 0; --c)  // the pivot rows, freed of the other shared unknowns
#pragma unroll
        for (int i = 0; i < c; ++i)
#pragma unroll
            for (int k = 0; k < 6 * P + 1; ++k)
                if (k < 2 * P || k >= 4 * P) w[i][k] -= w[i][2 * P + c] * w[c][k];
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
        for (int c = 0; c < 2 * P; ++c) {
            elements.at(a, i, c) = w[2 * P + i][c];
            elements.at(a, i, 2 * P + c) = w[2 * P + i][4 * P + c];
            elements.at(b, i, c) = w[i][c];
            elements.at(b, i, 2 * P + c) = w[i][4 * P + c];
        }
        elements.at(a, i, 4 * P) = w[2 * P + i][6 * P];
        elements.at(b, i, 4 * P) = w[i][6 * P];
        elements.at(a, i, 4 * P + 1) = weight[2 * P + i];
    }
    return lacking;
}

// Join `count` elements in shared memory to one, at place 0.  Element k covers `rows` rows from
// (first + k) * rows on.  All threads of the block call, after a barrier; it ends with one.
template <int P, typename T>
__device__ __forceinline__ void tree_up(Room<P, T> elements, int count, unsigned level, long long first,
                                        long long rows, long long n, unsigned long long* status)
{
    for (int s = 1; s < count; s *= 2) {
        for (int i = threadIdx.x * 2 * s; i + s < count; i += blockDim.x * 2 * s) {
            int lacking = join_pair(elements, i, i + s);
            if (lacking >= 0 && status != nullptr) {
                long long row = (first + i + s) * rows - 1 + lacking / P;
                fail(status, SINGULAR + level, row < n ? row : n - 1);
            }
        }
        __syncthreads();
    }
}

// The ends between `count` elements after `tree_up`; ends 0 and `count` are there.  All threads of the
// block call, after a barrier; it ends with one.
template <int P, typename T>
__device__ __forceinline__ void tree_down(Room<P, T> elements, int count, T* ends)
{
    int s = 1;
    while (2 * s < count) s *= 2;
    for (; s > 0 && count > 1; s /= 2) {
        for (int i = threadIdx.x * 2 * s; i + s < count; i += blockDim.x * 2 * s) {
            const T* left = ends + i * 2 * P;
            const T* right = ends + (i + 2 * s < count ? i + 2 * s : count) * 2 * P;
#pragma unroll
            for (int k = 0; k < 2 * P; ++k) {
                T value = elements.at(i + s, k, 4 * P);
#pragma unroll
                for (int c = 0; c < 2 * P; ++c)
                    value -= elements.at(i + s, k, c) * left[c] + elements.at(i + s, k, 2 * P + c) * right[c];
                ends[(i + s) * 2 * P + k] = value;
            }
        }
        __syncthreads();
    }
}

// X[first] and X[last] from the one element that is left: the outer ends.  By one thread.
template <int P, typename T>
__device__ __noinline__ void solve_last(Room<P, T> elements, int count, T* ends, unsigned level, long long n,
                                        unsigned long long* status)
{
    T w[2 * P][2 * P + 1], weight[2 * P], x[2 * P];
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
        for (int c = 0; c < 2 * P; ++c) w[i][c] = elements.at(0, i, P + c);
        w[i][2 * P] = elements.at(0, i, 4 * P);
        weight[i] = elements.at(0, i, 4 * P + 1);
    }
    int lacking = eliminate<0, 2 * P>(w, weight);
    if (lacking >= 0) fail(status, SINGULAR + level, lacking < P ? 0 : n - 1);
#pragma unroll
    for (int i = 2 * P - 1; i >= 0; --i) {
        x[i] = w[i][2 * P];
#pragma unroll
        for (int c = i + 1; c < 2 * P; ++c) x[i] -= w[i][c] * x[c];
    }
#pragma unroll
    for (int c = 0; c < P; ++c) {
        ends[c] = T(0);
        ends[P + c] = x[c];
        ends[count * 2 * P + c] = x[P + c];
        ends[count * 2 * P + P + c] = T(0);
    }
}

// How many of `size` elements belong to this block.
__device__ __forceinline__ int share_of_block(long long size)
{
    long long left = size - (long long)blockIdx.x * 2 * blockDim.x;
    return (int)(left < 2 * (long long)blockDim.x ? left : 2 * (long long)blockDim.x);
}

// `count` elements from `first` on into shared memory.  The caller sets a barrier.
template <int P, typename T>
__device__ __forceinline__ void load_elements(Room<P, T> room, Elements<P, T> elements, long long first, int count)
{
#pragma unroll
    for (int row = 0; row < 2 * P; ++row)
#pragma unroll
        for (int column = 0; column < Elements<P, T>::ROW; ++column)
            for (int k = threadIdx.x; k < count; k += blockDim.x)
                room.at(k, row, column) = elements.at(first + k, row, column);
}

// One level up: two elements a thread from `start` on become one, at `out`.
template <int P, typename T>
__device__ __forceinline__ void join_level(Elements<P, T> elements, long long start, long long size, long long out,
                                           Room<P, T> room, unsigned level, long long rows, long long n,
                                           unsigned long long* status)
{
    long long first = (long long)blockIdx.x * 2 * blockDim.x;
    int count = share_of_block(size);
    load_elements(room, elements, start + first, count);
    __syncthreads();
    tree_up(room, count, level, first, rows, n, status);
    for (int f = threadIdx.x; f < Elements<P, T>::FIELDS; f += blockDim.x)
        elements.at(out + blockIdx.x, 0, f) = room.at(0, 0, f);
}

// One level down: `ends` of the elements from `start` on, `outer` those of the level above.
template <int P, typename T>
__device__ __forceinline__ void expand_level(Elements<P, T> elements, long long start, long long size,
                                             Room<P, T> room, const T* outer, T* ends)
{
    long long first = (long long)blockIdx.x * 2 * blockDim.x;
    int count = share_of_block(size);
    load_elements(room, elements, start + first, count);
    T* inner = room.ends();
    if (threadIdx.x < 2 * P) {
        inner[threadIdx.x] = outer[blockIdx.x * 2 * P + threadIdx.x];
        inner[count * 2 * P + threadIdx.x] = outer[(blockIdx.x + 1) * 2 * P + threadIdx.x];
    }
    __syncthreads();
    tree_up(room, count, 0, 0, 0, 0, nullptr);
    tree_down(room, count, inner);
    for (int i = threadIdx.x; i < (count + 1) * 2 * P; i += blockDim.x) ends[first * 2 * P + i] = inner[i];
}

// All that is left, by one block: up, the solution, and down again.
template <int P, typename T>
__device__ __forceinline__ void solve_top(Elements<P, T> elements, long long start, int count, Room<P, T> room,
                                          T* ends, unsigned level, long long rows, long long n,
                                          unsigned long long* status)
{
    load_elements(room, elements, start, count);
    T* inner = room.ends();
    __syncthreads();
    tree_up(room, count, level, 0, rows, n, status);
    if (threadIdx.x == 0) solve_last(room, count, inner, level + 1, n, status);
    __syncthreads();
    tree_down(room, count, inner);
    for (int i = threadIdx.x; i < (count + 1) * 2 * P; i += blockDim.x) ends[i] = inner[i];
}
