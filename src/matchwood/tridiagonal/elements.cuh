// Elements of a block tridiagonal system: the equations left of many rows.  The idea: tridiagonal/cpu_elements.py.
//
// An element is 2 P equations in X[s-1], X[s] | X[e], X[e+1].  Each has 4 P coefficients and a right-hand side;
// an element has FIELDS such numbers.  Field f of element k is at data[f * total + k], where `total` and the
// first k of a level are multiples of EACH.  After these fields, elements that are parts have 2 P more words:
// the rows of their pivots.  An end is the 2 P numbers X[s-1] and X[s]; end k is before element k.
//
// A thread block joins its elements to one.  Each thread joins EACH of them in registers, one after the other.
// Then follows a binary tree in shared memory, in place: at step s element i becomes the join of i and i + s.
// Equations that give the unknowns between two joined elements from those around are kept, in registers or in
// the place of element i + s.  With the outer ends known, the way back gives the ends between.  At each step a
// thread reads and writes only the two places that it joins; barriers separate the steps.
#pragma once

#include "matchwood/pivoting.cuh"
#include "matchwood/status.cuh"
#include "matchwood/threads.cuh"
#include "matchwood/tile.cuh"

// Codes of faults; the smallest is reported.  Rows that are "off": tridiagonal/trust.py.
constexpr unsigned NOT_FINITE = 1;
constexpr unsigned SINGULAR = 2;  // plus the level: a fault on a lower level counts first
constexpr unsigned OFF = 100;     // many rows are off, or one that cannot be mended
constexpr unsigned SOME_OFF = 101;  // more rows are off than usual for a random matrix
constexpr unsigned FEW_OFF = 102;   // few rows are off; they can be mended

// Threads of a tree of elements, and elements of each thread: for plain rows and for blocks.
constexpr int PLAIN_THREADS = 256, PLAIN_EACH = 4;
constexpr int BLOCK_THREADS = 64, BLOCK_EACH = 2;

template <int P, typename T>
struct Element {
    T row[2 * P][4 * P + 1];  // left 2 P | right 2 P | right-hand side
};

// The equations for the 2 P unknowns between two joined elements, one per row: coefficients of the left and of
// the right end, right-hand side.
template <int P, typename T>
struct Between {
    T row[2 * P][4 * P + 1];
};

// Join the neighbours a and b: a becomes the joined element.  Returns the first of the unknowns between them
// that had no pivot, or -1.
template <int P, typename T>
__device__ __forceinline__ int join_elements(Element<P, T>& a, const Element<P, T>& b, Between<P, T>& between)
{
    T w[4 * P][6 * P + 1];  // left 2 P | shared 2 P | right 2 P | right-hand side
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
        for (int c = 0; c < 2 * P; ++c) {
            w[i][4 * P + c] = T(0);
            w[2 * P + i][c] = T(0);
        }
#pragma unroll
        for (int c = 0; c < 4 * P; ++c) {
            w[i][c] = a.row[i][c];
            w[2 * P + i][2 * P + c] = b.row[i][c];
        }
        w[i][6 * P] = a.row[i][4 * P];
        w[2 * P + i][6 * P] = b.row[i][4 * P];
    }
    Size<T> size[4 * P];
#pragma unroll
    for (int i = 0; i < 4 * P; ++i) size[i] = least_size<T>();
    unsigned unused = 0;
    int lacking = eliminate<2 * P, 2 * P>(w, size, unused);
#pragma unroll
    for (int c = 2 * P - 1; c > 0; --c)  // eliminate the other shared unknowns from the pivot rows
#pragma unroll
        for (int i = 0; i < c; ++i)
#pragma unroll
            for (int k = 0; k < 6 * P + 1; ++k)
                if (k < 2 * P || k >= 4 * P) w[i][k] -= w[i][2 * P + c] * w[c][k];
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
        for (int c = 0; c < 2 * P; ++c) {
            a.row[i][c] = w[2 * P + i][c];
            a.row[i][2 * P + c] = w[2 * P + i][4 * P + c];
            between.row[i][c] = w[i][c];
            between.row[i][2 * P + c] = w[i][4 * P + c];
        }
        a.row[i][4 * P] = w[2 * P + i][6 * P];
        between.row[i][4 * P] = w[i][6 * P];
    }
    return lacking;
}

// The end between two joined elements, from the ends to the left and to the right.
template <int P, typename T>
__device__ __forceinline__ void end_between(const Between<P, T>& between, const T* left, const T* right, T* end)
{
#pragma unroll
    for (int k = 0; k < 2 * P; ++k) {
        T value = between.row[k][4 * P];
#pragma unroll
        for (int c = 0; c < 2 * P; ++c)
            value -= between.row[k][c] * left[c] + between.row[k][2 * P + c] * right[c];
        end[k] = value;
    }
}

template <int P, typename T>
struct Elements {
    static constexpr int ROW = 4 * P + 1;
    static constexpr int FIELDS = 2 * P * ROW;  // numbers of an element; then 2 P words of picks, see gpu.cu

    T* data;
    long long total;

    // The number of rows that are off; it is stored after all fields.
    __device__ __forceinline__ unsigned* count() { return (unsigned*)(data + (FIELDS + 2 * P) * total); }

    __device__ __forceinline__ T& at(long long k, int row, int column)
    {
        return data[(row * ROW + column) * total + k];
    }
};

// The rows of the pivots of a part: bits in two words from field FIRST on.  They were shifted in from the top, so
// get_picks returns the upper `bits` bits.
template <int FIRST, typename T>
__device__ __forceinline__ void put_picks(T* data, long long total, long long part, unsigned long long picks)
{
    unsigned words[2] = {(unsigned)picks, (unsigned)(picks >> 32)};
#pragma unroll
    for (int k = 0; k < 2; ++k) memcpy(&data[(FIRST + k) * total + part], &words[k], 4);
}

template <int FIRST, typename T>
__device__ __forceinline__ unsigned long long get_picks(const T* data, long long total, long long part, int bits)
{
    unsigned words[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) memcpy(&words[k], &data[(FIRST + k) * total + part], 4);
    return ((unsigned long long)words[1] << 32 | words[0]) >> (64 - bits);
}

// The elements of one thread block on the way up and down.  Shared memory holds an element per thread and the
// ends beside them.  One number is left free after each 128 bytes, so that elements 2, 4, 8, ... apart, which a
// step of the tree reads at once, are in different banks.
template <int P, typename T>
struct Tree {
    static constexpr int THREADS = P == 1 ? PLAIN_THREADS : BLOCK_THREADS;
    static constexpr int EACH = P == 1 ? PLAIN_EACH : BLOCK_EACH;
    static constexpr int SIZE = THREADS * EACH;
    static constexpr int LINE = 128 / sizeof(T);
    static constexpr int STRIDE = THREADS + THREADS / LINE;
    static constexpr int ROW = 4 * P + 1;

    struct alignas(EACH * sizeof(T) < 16 ? EACH * sizeof(T) : 16) Pack {
        T item[EACH];
    };

    T* room;
    long long first;  // the first of the block's elements, within their level
    int count;        // the number of the block's elements
    int places;       // elements in shared memory
    Between<P, T> inner[EACH - 1];

    __device__ __forceinline__ Tree(void* shared, long long size)
    {
        room = (T*)shared;
        first = (long long)blockIdx.x * SIZE;
        count = (int)(size - first < SIZE ? size - first : SIZE);
        places = (count + EACH - 1) / EACH;
    }

    static __device__ __forceinline__ T& at(T* room, int k, int row, int column)
    {
        return room[(row * ROW + column) * STRIDE + k + k / LINE];
    }
    __device__ __forceinline__ T* ends() { return room + 2 * P * ROW * STRIDE; }

    static __device__ __forceinline__ Element<P, T> get(T* room, int k)
    {
        Element<P, T> found;
#pragma unroll
        for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
            for (int c = 0; c <= 4 * P; ++c) found.row[i][c] = at(room, k, i, c);
        }
        return found;
    }

    static __device__ __forceinline__ void put(T* room, int k, const Element<P, T>& made)
    {
#pragma unroll
        for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
            for (int c = 0; c <= 4 * P; ++c) at(room, k, i, c) = made.row[i][c];
        }
    }

    // One step of the tree at places a and b.
    static __device__ __noinline__ int join_places(T* room, int a, int b)
    {
        Element<P, T> left = get(room, a);
        Between<P, T> between;
        int lacking = join_elements(left, get(room, b), between);
        put(room, a, left);
#pragma unroll
        for (int i = 0; i < 2 * P; ++i)
#pragma unroll
            for (int c = 0; c <= 4 * P; ++c) at(room, b, i, c) = between.row[i][c];
        return lacking;
    }

    // Join all elements of the block to one at place 0; the level begins at `start`.  Element k of the level covers
    // `rows` rows from k * rows on; a fault is reported unless `status` is null.  Ends with a barrier.
    __device__ __forceinline__ void up(Elements<P, T> elements, long long start, unsigned level, long long rows,
                                       long long n, unsigned long long* status)
    {
        auto report = [&](int lacking, int right) {
            if (lacking < 0 || status == nullptr) return;
            long long row = (first + right) * rows - 1 + lacking / P;
            fail(status, SINGULAR + level, row < n ? row : n - 1);
        };
        int mine = threadIdx.x * EACH;
        if (mine < count) {
            Element<P, T> all[EACH];
            long long from = start + first + mine;
#pragma unroll
            for (int i = 0; i < 2 * P; ++i)
#pragma unroll
                for (int c = 0; c < ROW; ++c) {
                    Pack pack = *(const Pack*)&elements.at(from, i, c);
#pragma unroll
                    for (int e = 0; e < EACH; ++e) all[e].row[i][c] = pack.item[e];
                }
#pragma unroll
            for (int e = 1; e < EACH; ++e)
                if (mine + e < count) report(join_elements(all[0], all[e], inner[e - 1]), mine + e);
            put(room, threadIdx.x, all[0]);
        }
        __syncthreads();
        for (int s = 1; s < places; s *= 2) {
            int i = threadIdx.x * 2 * s;
            if (i + s < places) report(join_places(room, i, i + s), (i + s) * EACH);
            __syncthreads();
        }
    }

    // The way back: the ends beside the block are in shared memory; all its ends are written to `out`, the ends of
    // the level.  Caller: a barrier before.
    __device__ __forceinline__ void down(T* out)
    {
        T* known = ends();
        int s = 1;
        while (2 * s < places) s *= 2;
        for (; s > 0; s /= 2) {
            int i = threadIdx.x * 2 * s;
            if (i + s < places) {
                Between<P, T> between;
#pragma unroll
                for (int k = 0; k < 2 * P; ++k)
#pragma unroll
                    for (int c = 0; c <= 4 * P; ++c) between.row[k][c] = at(room, i + s, k, c);
                const T* right = known + (i + 2 * s < places ? i + 2 * s : places) * 2 * P;
                end_between(between, known + i * 2 * P, right, known + (i + s) * 2 * P);
            }
            __syncthreads();
        }
        int mine = threadIdx.x * EACH;
        if (mine >= count) return;
        T found[EACH + 1][2 * P];
#pragma unroll
        for (int k = 0; k < 2 * P; ++k) {
            found[0][k] = known[threadIdx.x * 2 * P + k];
            found[EACH][k] = known[(threadIdx.x + 1) * 2 * P + k];
        }
#pragma unroll
        for (int e = EACH - 1; e > 0; --e) {
            if (mine + e < count) {
                end_between(inner[e - 1], found[0], found[e + 1], found[e]);
            } else {  // past the last element: the right end
#pragma unroll
                for (int k = 0; k < 2 * P; ++k) found[e][k] = found[EACH][k];
            }
        }
        out += (first + mine) * 2 * P;
#pragma unroll
        for (int e = 0; e <= EACH; ++e)
            if (e < EACH ? mine + e <= count : mine + e == count)
#pragma unroll
                for (int k = 0; k < 2 * P; ++k) out[e * 2 * P + k] = found[e][k];
    }
};

// X[first] and X[last] from the last element, as the ends before and after it.  One thread calls.
template <int P, typename T>
__device__ __noinline__ void solve_last(T* room, T* before, T* after, unsigned level, long long n, unsigned long long* status)
{
    T w[2 * P][2 * P + 1], x[2 * P];
    Size<T> size[2 * P];
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
#pragma unroll
        for (int c = 0; c < 2 * P; ++c) w[i][c] = Tree<P, T>::at(room, 0, i, P + c);
        w[i][2 * P] = Tree<P, T>::at(room, 0, i, 4 * P);
        size[i] = least_size<T>();
    }
    unsigned unused = 0;
    int lacking = eliminate<0, 2 * P>(w, size, unused);
    if (lacking >= 0) fail(status, SINGULAR + level, lacking < P ? 0 : n - 1);
#pragma unroll
    for (int i = 2 * P - 1; i >= 0; --i) {
        x[i] = w[i][2 * P];
#pragma unroll
        for (int c = i + 1; c < 2 * P; ++c) x[i] -= w[i][c] * x[c];
    }
#pragma unroll
    for (int c = 0; c < P; ++c) {
        before[c] = T(0);
        before[P + c] = x[c];
        after[c] = x[P + c];
        after[P + c] = T(0);
    }
}

// One level up: each thread block joins its elements; the level begins at `start`, the next one at `out`.
template <int P, typename T>
__device__ __forceinline__ void join_level(Elements<P, T> elements, long long start, long long size, long long out,
                                           void* shared, unsigned level, long long rows, long long n,
                                           unsigned long long* status)
{
    Tree<P, T> tree(shared, size);
    tree.up(elements, start, level, rows, n, status);
    for (int f = threadIdx.x; f < Elements<P, T>::FIELDS; f += blockDim.x)
        elements.at(out + blockIdx.x, 0, f) = tree.at(tree.room, 0, 0, f);
}

// One level down: computes `ends` of the level that begins at `start` from `outer`, those of the level above.
template <int P, typename T>
__device__ __forceinline__ void expand_level(Elements<P, T> elements, long long start, long long size, void* shared,
                                             const T* outer, T* ends)
{
    Tree<P, T> tree(shared, size);
    if (threadIdx.x < 2 * P) {
        tree.ends()[threadIdx.x] = outer[blockIdx.x * 2 * P + threadIdx.x];
        tree.ends()[tree.places * 2 * P + threadIdx.x] = outer[(blockIdx.x + 1) * 2 * P + threadIdx.x];
    }
    tree.up(elements, start, 0, 0, 0, nullptr);
    tree.down(ends);
}

// The last levels by one thread block: up, the solution, and down again.
template <int P, typename T>
__device__ __forceinline__ void solve_top(Elements<P, T> elements, long long start, long long size, void* shared,
                                          T* ends, unsigned level, long long rows, long long n,
                                          unsigned long long* status)
{
    Tree<P, T> tree(shared, size);
    tree.up(elements, start, level, rows, n, status);
    T* before = tree.ends();
    if (threadIdx.x == 0) solve_last<P>(tree.room, before, before + tree.places * 2 * P, level + 1, n, status);
    __syncthreads();
    tree.down(ends);
}

// The kernels, for plain (P = 1) and block systems (P = 2).
template <int P, typename T>
__global__ void __launch_bounds__(Tree<P, T>::THREADS)
    join(T* elements, long long total, long long start, long long size, long long out, unsigned level, long long rows,
         long long n, unsigned long long* status)
{
    extern __shared__ Chunk tile[];
    join_level(Elements<P, T>{elements, total}, start, size, out, tile, level, rows, n, status);
}

template <int P, typename T>
__global__ void __launch_bounds__(Tree<P, T>::THREADS)
    expand(T* elements, long long total, long long start, long long size, const T* outer, T* ends)
{
    extern __shared__ Chunk tile[];
    expand_level(Elements<P, T>{elements, total}, start, size, tile, outer, ends);
}

template <int P, typename T>
__global__ void __launch_bounds__(Tree<P, T>::THREADS)
    top(T* elements, long long total, long long start, long long size, T* ends, unsigned level, long long rows,
        long long n, unsigned long long* status)
{
    extern __shared__ Chunk tile[];
    solve_top(Elements<P, T>{elements, total}, start, size, tile, ends, level, rows, n, status);
}
