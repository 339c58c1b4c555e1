// Elements of a block tridiagonal system: what is left of many rows.  The idea: tridiagonal/cpu_elements.py.
//
// An element is 2 P equations in X[s-1], X[s] | X[e], X[e+1]; equation i has 4 P coefficients, a
// right-hand side and one over the size of its row: FIELDS numbers.  Field f of element k is at
// elements[f * total + k].  `ends` has 2 P numbers for each place between two parts of level 0,
// X[s-1] and X[s]; number 0 is before the first part, number `parts` after the last.
//
// One thread joins or expands one group, so no two threads write the same word.
#pragma once

#include "matchwood/status.cuh"
#include "matchwood/threads.cuh"

// Elements that a thread joins to one, and threads of a block that does so: their elements lie in
// shared memory, one more than needed for each thread so that these hit different banks.
template <int P>
struct Group {
    static constexpr int SIZE = P == 1 ? 32 : 16;
    static constexpr int THREADS = 32;
    static constexpr int STRIDE = THREADS * (SIZE + 1);
};
constexpr int TOP_GROUP = 4;  // the same where few are left, and time counts instead of memory

constexpr unsigned SINGULAR = 1;  // and the level: a fault on a lower level counts first
constexpr unsigned NOT_FINITE = 100;

template <typename T>
__device__ __forceinline__ T magnitude(T x) { return x < T(0) ? -x : x; }

template <typename T>
__device__ __forceinline__ T larger(T a, T b) { return a > b ? a : b; }

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

template <int P, typename T>
struct Joining {
    static constexpr int C = 6 * P + 1;
    T w[4 * P][C];  // left 2 P | shared 2 P | right 2 P | right-hand side
    T weight[4 * P];

    __device__ __forceinline__ void begin(Elements<P, T> elements, long long k)
    {
#pragma unroll
        for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
            for (int c = 0; c < 4 * P; ++c) w[i][c] = elements.at(k, i, c);
            w[i][6 * P] = elements.at(k, i, 4 * P);
            weight[i] = elements.at(k, i, 4 * P + 1);
        }
    }

    // The unknowns of the left are known: move them to the right-hand side.
    __device__ __forceinline__ void fold_left(const T* end)
    {
#pragma unroll
        for (int i = 0; i < 2 * P; ++i)
#pragma unroll
            for (int c = 0; c < 2 * P; ++c) {
                w[i][6 * P] -= w[i][c] * end[c];
                w[i][c] = T(0);
            }
    }

    __device__ __forceinline__ int append(Elements<P, T> elements, long long k)
    {
#pragma unroll
        for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
            for (int c = 0; c < 2 * P; ++c) {
                w[i][4 * P + c] = T(0);
                w[2 * P + i][c] = T(0);
            }
#pragma unroll
            for (int c = 0; c < 4 * P; ++c) w[2 * P + i][2 * P + c] = elements.at(k, i, c);
            w[2 * P + i][6 * P] = elements.at(k, i, 4 * P);
            weight[2 * P + i] = elements.at(k, i, 4 * P + 1);
        }
        return eliminate<2 * P, 2 * P>(w, weight);
    }

    __device__ __forceinline__ void move_up()
    {
#pragma unroll
        for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
            for (int c = 0; c < 2 * P; ++c) {
                w[i][c] = w[2 * P + i][c];
                w[i][2 * P + c] = w[2 * P + i][4 * P + c];
            }
            w[i][6 * P] = w[2 * P + i][6 * P];
            weight[i] = weight[2 * P + i];
        }
    }
};

// Elements first.. (`count` of them) into element `to` of `out`.  `row` is the last row of the first one
// and `rows` the number of rows of each; both name the row of a fault.
template <int P, typename T>
__device__ __forceinline__ void join_group(Elements<P, T> elements, long long first, int count,
                                           Elements<P, T> out, long long to, unsigned level, long long row,
                                           long long rows, long long n, unsigned long long* status)
{
    Joining<P, T> work;
    work.begin(elements, first);
    for (int k = 1; k < count; ++k) {
        int lacking = work.append(elements, first + k);
        if (lacking >= 0) {
            long long at = row + (k - 1) * rows + lacking / P;
            fail(status, SINGULAR + level, at < n ? at : n - 1);
        }
        work.move_up();
    }
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
        for (int c = 0; c < 4 * P; ++c) out.at(to, i, c) = work.w[i][c];
        out.at(to, i, 4 * P) = work.w[i][6 * P];
        out.at(to, i, 4 * P + 1) = work.weight[i];
    }
}

// The ends between the elements of a group, those beside it being known.  Element k of the group lies
// between ends place + k * step and place + (k + 1) * step, at most `parts`.  Overwrites the elements.
template <int P, typename T>
__device__ __forceinline__ void expand_group(Elements<P, T> elements, long long first, int count, T* ends,
                                             long long place, long long step, long long parts)
{
    Joining<P, T> work;
    work.begin(elements, first);
    work.fold_left(ends + place * 2 * P);
    for (int k = 1; k < count; ++k) {
        work.append(elements, first + k);
#pragma unroll
        for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
            for (int c = i + 1; c < 4 * P; ++c) elements.at(first + k, i, c) = work.w[i][2 * P + c];
            elements.at(first + k, i, 4 * P) = work.w[i][6 * P];
        }
        work.move_up();
    }
    long long after = place + count * step;
    T right[2 * P], here[2 * P];
#pragma unroll
    for (int c = 0; c < 2 * P; ++c) right[c] = ends[(after < parts ? after : parts) * 2 * P + c];
    for (int k = count - 1; k > 0; --k) {
#pragma unroll
        for (int i = 2 * P - 1; i >= 0; --i) {
            T value = elements.at(first + k, i, 4 * P);
#pragma unroll
            for (int c = i + 1; c < 2 * P; ++c) value -= elements.at(first + k, i, c) * here[c];
#pragma unroll
            for (int c = 0; c < 2 * P; ++c) value -= elements.at(first + k, i, 2 * P + c) * right[c];
            here[i] = value;
        }
#pragma unroll
        for (int c = 0; c < 2 * P; ++c) {
            ends[(place + k * step) * 2 * P + c] = here[c];
            right[c] = here[c];
        }
    }
}

// X[first] and X[last] from the one element that is left.
template <int P, typename T>
__device__ void solve_last(Elements<P, T> elements, long long k, T* ends, unsigned level, long long parts,
                           long long n, unsigned long long* status)
{
    T w[2 * P][2 * P + 1], weight[2 * P], x[2 * P];
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
        for (int c = 0; c < 2 * P; ++c) w[i][c] = elements.at(k, i, P + c);
        w[i][2 * P] = elements.at(k, i, 4 * P);
        weight[i] = elements.at(k, i, 4 * P + 1);
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
        ends[parts * 2 * P + c] = x[P + c];
        ends[parts * 2 * P + P + c] = T(0);
    }
}

// The elements of a block's groups into shared memory.  All threads of the block call.
template <int P, typename T>
__device__ __forceinline__ Elements<P, T> load_groups(Elements<P, T> elements, long long start, long long size,
                                                      T* room)
{
    constexpr int SIZE = Group<P>::SIZE, STRIDE = Group<P>::STRIDE;
    long long first = (long long)blockIdx.x * Group<P>::THREADS * SIZE;
    for (int f = 0; f < Elements<P, T>::FIELDS; ++f)
        for (int i = threadIdx.x; i < Group<P>::THREADS * SIZE; i += Group<P>::THREADS)
            if (first + i < size) room[f * STRIDE + i + i / SIZE] = elements.data[f * elements.total + start + first + i];
    __syncthreads();
    return {room, STRIDE};
}

// One level up: `size` elements from `start` on, a group to one, written behind them.  A thread a group.
template <int P, typename T>
__device__ __forceinline__ void join_level(Elements<P, T> elements, long long start, long long size, T* room,
                                           unsigned level, long long rows, long long n,
                                           unsigned long long* status)
{
    constexpr int SIZE = Group<P>::SIZE;
    Elements<P, T> here = load_groups(elements, start, size, room);
    long long g = global_thread(), first = g * SIZE;
    if (first >= size) return;
    int count = (int)(size - first < SIZE ? size - first : SIZE);
    join_group(here, threadIdx.x * (SIZE + 1), count, elements, start + size + g, level, (first + 1) * rows - 1,
               rows, n, status);
}

template <int P, typename T>
__device__ __forceinline__ void expand_level(Elements<P, T> elements, long long start, long long size, T* room,
                                             T* ends, long long step, long long parts)
{
    constexpr int SIZE = Group<P>::SIZE;
    Elements<P, T> here = load_groups(elements, start, size, room);
    long long first = global_thread() * SIZE;
    if (first >= size) return;
    int count = (int)(size - first < SIZE ? size - first : SIZE);
    expand_group(here, threadIdx.x * (SIZE + 1), count, ends, first * step, step, parts);
}

// All that is left, by one block: up to one element, its solution, and down again.  Everything lies
// in shared memory, `capacity` elements.
template <int P, typename T>
__device__ __forceinline__ void solve_top(Elements<P, T> elements, long long start, long long size, T* room,
                                          int capacity, T* ends, unsigned level, long long step,
                                          long long parts, long long rows, long long n,
                                          unsigned long long* status)
{
    for (int f = 0; f < Elements<P, T>::FIELDS; ++f)
        for (int i = threadIdx.x; i < size; i += blockDim.x)
            room[f * capacity + i] = elements.data[f * elements.total + start + i];
    __syncthreads();
    Elements<P, T> here = {room, capacity};
    int levels = 0, at = 0, left = (int)size;
    while (left > 1) {
        int groups = (left + TOP_GROUP - 1) / TOP_GROUP;
        for (int g = threadIdx.x; g < groups; g += blockDim.x) {
            int first = g * TOP_GROUP;
            int count = left - first < TOP_GROUP ? left - first : TOP_GROUP;
            join_group(here, at + first, count, here, at + left + g, level, (first + 1) * rows * step - 1,
                       rows * step, n, status);
        }
        __syncthreads();
        at += left;
        left = groups;
        step *= TOP_GROUP;
        ++levels;
        ++level;
    }
    if (threadIdx.x == 0) solve_last(here, at, ends, level, parts, n, status);
    __syncthreads();
    for (; levels > 0; --levels) {
        // the level below: its size follows from the number of parts
        step /= TOP_GROUP;
        left = (int)((parts + step - 1) / step);
        at -= left;
        for (int g = threadIdx.x; g * TOP_GROUP < left; g += blockDim.x) {
            int first = g * TOP_GROUP;
            int count = left - first < TOP_GROUP ? left - first : TOP_GROUP;
            expand_group(here, at + first, count, ends, first * step, step, parts);
        }
        __syncthreads();
    }
}
