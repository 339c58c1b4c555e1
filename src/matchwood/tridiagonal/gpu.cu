// The tridiagonal solver on the GPU.  Host side: gpu.py.  The method: cpu_parts.py; elements: elements.cuh.
//
//   reduce_rows       one thread a part of ROWS rows: its element            reads 4 arrays
//   join, solve_top, expand                                                 (1 / ROWS of the rows)
//   substitute_rows   one thread a part: the unknowns between its ends      reads 4 arrays, writes 1
//
// The rows of a block's parts lie in shared memory (tile.cuh), loaded in whole lines.  A thread reads
// and writes only its own part there, apart from loading and storing, which are fenced by barriers.

#include "matchwood/elements.cuh"
#include "matchwood/tile.cuh"

template <typename T>
struct Rows {
    static constexpr int ROWS = 32;  // of a part
    static constexpr int EACH = 16 / sizeof(T);
    static constexpr int CHUNKS = ROWS / EACH;
};

// An equation in (x[s-1], x[s] | x[j], x[j+1]).
template <typename T>
struct Equation {
    T l1, l2, r1, r2, f, weight;
};

template <typename T>
__device__ __forceinline__ T choose(bool first, T a, T b) { return first ? a : b; }

template <typename T>
__device__ __forceinline__ T row_weight(T lower, T diagonal, T upper)
{
    return weight_of(larger(larger(magnitude(lower), magnitude(diagonal)), magnitude(upper)));
}

// Eliminate x[j] from A, B and the new row (c1 x[j] + c2 x[j+1] + c3 x[j+2] = cf).  LEFT: with the
// unknowns x[s-1] and x[s], as the reduction needs.  The pivot row without them, divided by its
// pivot, is left in u2, u3, g.  True when x[j] has no pivot.
template <bool LEFT, typename T>
__device__ __forceinline__ bool step(Equation<T>& A, Equation<T>& B, T c1, T c2, T c3, T cf, T& u2, T& u3, T& g)
{
    T cw = row_weight(c1, c2, c3);
    bool swap = magnitude(B.r1) * B.weight > magnitude(A.r1) * A.weight;
    Equation<T> p, q;
    p.r1 = choose(swap, B.r1, A.r1), q.r1 = choose(swap, A.r1, B.r1);
    p.r2 = choose(swap, B.r2, A.r2), q.r2 = choose(swap, A.r2, B.r2);
    p.f = choose(swap, B.f, A.f), q.f = choose(swap, A.f, B.f);
    p.weight = choose(swap, B.weight, A.weight), q.weight = choose(swap, A.weight, B.weight);
    bool fresh = magnitude(c1) * cw > magnitude(p.r1) * p.weight;  // the new row is the pivot
    T k1 = choose(fresh, c1, p.r1), o1 = choose(fresh, p.r1, c1);
    T k2 = choose(fresh, c2, p.r2), o2 = choose(fresh, p.r2, c2);
    T k3 = choose(fresh, c3, T(0)), o3 = choose(fresh, T(0), c3);
    T kf = choose(fresh, cf, p.f), of = choose(fresh, p.f, cf);
    bool none = k1 == T(0);
    if (none) {
        T noise = epsilon<T>() * (magnitude(k2) + magnitude(k3));
        k1 = noise > T(0) ? noise : epsilon<T>();
    }
    T inverse = inverse_of(k1);
    T m = q.r1 * inverse, o = o1 * inverse;
    if (LEFT) {
        p.l1 = choose(swap, B.l1, A.l1), q.l1 = choose(swap, A.l1, B.l1);
        p.l2 = choose(swap, B.l2, A.l2), q.l2 = choose(swap, A.l2, B.l2);
        T kl1 = choose(fresh, T(0), p.l1), ol1 = choose(fresh, p.l1, T(0));
        T kl2 = choose(fresh, T(0), p.l2), ol2 = choose(fresh, p.l2, T(0));
        A.l1 = q.l1 - m * kl1, A.l2 = q.l2 - m * kl2;
        B.l1 = ol1 - o * kl1, B.l2 = ol2 - o * kl2;
    } else {
        u2 = k2 * inverse, u3 = k3 * inverse, g = kf * inverse;
    }
    A.r1 = q.r2 - m * k2, A.r2 = -m * k3, A.f = q.f - m * kf, A.weight = q.weight;
    B.r1 = o2 - o * k2, B.r2 = o3 - o * k3, B.f = of - o * kf, B.weight = choose(fresh, p.weight, cw);
    return none;
}

// Four arrays of the block's tile; rows past the end are x = 0.  With `perm` the right-hand side of
// row i is b[perm[i]], which is also written to gathered[i].
template <typename T, typename I>
__device__ __forceinline__ void load_rows(Chunk* tile, long long n, const T* dl, const T* d, const T* du,
                                          const T* b, const I* perm, T* gathered)
{
    long long first = (long long)blockIdx.x * blockDim.x * Rows<T>::ROWS;
    int array = Rows<T>::CHUNKS * blockDim.x;
    auto zero = [](int) { return T(0); };
    load_tile<Rows<T>::CHUNKS>(tile, dl, first, n, zero);
    load_tile<Rows<T>::CHUNKS>(tile + array, d, first, n, [](int) { return T(1); });
    load_tile<Rows<T>::CHUNKS>(tile + 2 * array, du, first, n, zero);
    if (perm == nullptr) {
        load_tile<Rows<T>::CHUNKS>(tile + 3 * array, b, first, n, zero);
    } else {
        for (int i = threadIdx.x; i < array * Rows<T>::EACH; i += blockDim.x) {
            T value = first + i < n ? b[perm[first + i]] : T(0);
            if (first + i < n) gathered[first + i] = value;
            tile_item<Rows<T>::CHUNKS, T>(tile + 3 * array, i) = value;
        }
    }
    tile_loaded();
    // what is not part of the matrix
    long long start = first + (long long)threadIdx.x * Rows<T>::ROWS;
    int item = threadIdx.x * Rows<T>::ROWS;
    if (start == 0) tile_item<Rows<T>::CHUNKS, T>(tile, item) = T(0);
    if (start < n && n <= start + Rows<T>::ROWS)
        tile_item<Rows<T>::CHUNKS, T>(tile + 2 * array, item + (int)(n - 1 - start)) = T(0);
}

template <typename T, typename I>
__global__ void reduce_rows(long long n, const T* __restrict__ dl, const T* __restrict__ d,
                            const T* __restrict__ du, const T* __restrict__ b, const I* __restrict__ perm,
                            T* __restrict__ gathered, T* __restrict__ elements, long long total,
                            unsigned long long* status)
{
    constexpr int EACH = Rows<T>::EACH, ROWS = Rows<T>::ROWS, CHUNKS = Rows<T>::CHUNKS;
    extern __shared__ Chunk tile[];
    int array = Rows<T>::CHUNKS * blockDim.x;
    load_rows(tile, n, dl, d, du, b, perm, gathered);
    long long part = global_thread();
    long long start = part * ROWS;
    if (start >= n) return;

    Equation<T> A, B;
    T unused;
    int lacking = -1;
    T lower[EACH], diagonal[EACH], upper[EACH], right[EACH];
#pragma unroll 1
    for (int c = 0; c < CHUNKS; ++c) {
        get_chunk<CHUNKS>(tile, c, lower);
        get_chunk<CHUNKS>(tile + array, c, diagonal);
        get_chunk<CHUNKS>(tile + 2 * array, c, upper);
        get_chunk<CHUNKS>(tile + 3 * array, c, right);
#pragma unroll
        for (int v = 0; v < EACH; ++v) {
            if (v < 2 && c == 0) {
                T weight = row_weight(lower[v], diagonal[v], upper[v]);
                if (v == 0) A = {lower[v], diagonal[v], upper[v], T(0), right[v], weight};
                if (v == 1) B = {T(0), lower[v], diagonal[v], upper[v], right[v], weight};
            } else {
                bool none = step<true>(A, B, lower[v], diagonal[v], upper[v], right[v], unused, unused, unused);
                if (none && lacking < 0) lacking = c * EACH + v - 1;
            }
        }
    }
    if (lacking >= 0) fail(status, SINGULAR, start + lacking);
    // what is not finite in any row has spread to both equations
    T finite = T(0) * A.l1 + T(0) * A.l2 + T(0) * A.r1 + T(0) * A.r2 + T(0) * A.f;
    finite += T(0) * B.l1 + T(0) * B.l2 + T(0) * B.r1 + T(0) * B.r2 + T(0) * B.f;
    if (!(finite == T(0))) fail(status, NOT_FINITE, start);
    Elements<1, T> out = {elements, total};
    out.at(part, 0, 0) = A.l1, out.at(part, 0, 1) = A.l2, out.at(part, 0, 2) = A.r1;
    out.at(part, 0, 3) = A.r2, out.at(part, 0, 4) = A.f, out.at(part, 0, 5) = A.weight;
    out.at(part, 1, 0) = B.l1, out.at(part, 1, 1) = B.l2, out.at(part, 1, 2) = B.r1;
    out.at(part, 1, 3) = B.r2, out.at(part, 1, 4) = B.f, out.at(part, 1, 5) = B.weight;
}

// The pivot row of x[j-1] takes the place of row j in shared memory; then the solution that of d.
template <typename T, typename I>
__global__ void substitute_rows(long long n, const T* __restrict__ dl, const T* __restrict__ d,
                                const T* __restrict__ du, const T* __restrict__ b,
                                const T* __restrict__ ends, const I* __restrict__ perm, T* __restrict__ x)
{
    constexpr int EACH = Rows<T>::EACH, ROWS = Rows<T>::ROWS, CHUNKS = Rows<T>::CHUNKS;
    extern __shared__ Chunk tile[];
    int array = Rows<T>::CHUNKS * blockDim.x;
    load_rows<T, I>(tile, n, dl, d, du, b, nullptr, nullptr);
    long long part = global_thread();
    if (part * ROWS < n) {
        T before = ends[2 * part], begin = ends[2 * part + 1];
        T near = ends[2 * part + 2], far = ends[2 * part + 3];
        Equation<T> A, B;
        T lower[EACH], diagonal[EACH], upper[EACH], right[EACH];
#pragma unroll 1
        for (int c = 0; c < CHUNKS; ++c) {
            get_chunk<CHUNKS>(tile, c, lower);
            get_chunk<CHUNKS>(tile + array, c, diagonal);
            get_chunk<CHUNKS>(tile + 2 * array, c, upper);
            get_chunk<CHUNKS>(tile + 3 * array, c, right);
#pragma unroll
            for (int v = 0; v < EACH; ++v) {
                if (v < 2 && c == 0) {
                    T weight = row_weight(lower[v], diagonal[v], upper[v]);
                    if (v == 0)
                        A = {T(0), T(0), upper[v], T(0), right[v] - lower[v] * before - diagonal[v] * begin,
                             weight};
                    if (v == 1) B = {T(0), T(0), diagonal[v], upper[v], right[v] - lower[v] * begin, weight};
                } else {
                    T u2, u3, g;
                    step<false>(A, B, lower[v], diagonal[v], upper[v], right[v], u2, u3, g);
                    lower[v] = u2, upper[v] = u3, right[v] = g;
                }
            }
            put_chunk<CHUNKS>(tile, c, lower);
            put_chunk<CHUNKS>(tile + 2 * array, c, upper);
            put_chunk<CHUNKS>(tile + 3 * array, c, right);
        }
#pragma unroll 1
        for (int c = CHUNKS - 1; c >= 0; --c) {
            get_chunk<CHUNKS>(tile, c, lower);
            get_chunk<CHUNKS>(tile + 2 * array, c, upper);
            get_chunk<CHUNKS>(tile + 3 * array, c, right);
#pragma unroll
            for (int v = EACH - 1; v >= 0; --v) {  // x[c * EACH + v] is `near`
                diagonal[v] = near;
                T next = right[v] - lower[v] * near - upper[v] * far;
                if (v < 2 && c == 0) next = begin;
                far = near;
                near = next;
            }
            put_chunk<CHUNKS>(tile + array, c, diagonal);
        }
    }
    __syncthreads();
    long long first = (long long)blockIdx.x * blockDim.x * ROWS;
    if (perm == nullptr) {
        store_tile<CHUNKS>(tile + array, x, first, n);
    } else {
        for (int i = threadIdx.x; i < array * EACH; i += blockDim.x)
            if (first + i < n) x[perm[first + i]] = tile_item<Rows<T>::CHUNKS, T>(tile + array, i);
    }
}

template <typename T>
__global__ void join(T* elements, long long total, long long start, long long size, unsigned level,
                     long long rows, long long n, unsigned long long* status)
{
    extern __shared__ Chunk tile[];
    join_level(Elements<1, T>{elements, total}, start, size, (T*)tile, level, rows, n, status);
}

template <typename T>
__global__ void expand(T* elements, long long total, long long start, long long size, T* ends, long long step,
                       long long parts)
{
    extern __shared__ Chunk tile[];
    expand_level(Elements<1, T>{elements, total}, start, size, (T*)tile, ends, step, parts);
}

template <typename T>
__global__ void top(T* elements, long long total, long long start, long long size, int capacity, T* ends,
                    unsigned level, long long step, long long parts, long long rows, long long n,
                    unsigned long long* status)
{
    extern __shared__ Chunk tile[];
    solve_top(Elements<1, T>{elements, total}, start, size, (T*)tile, capacity, ends, level, step, parts, rows, n,
              status);
}
