// The tridiagonal solver on the GPU.  Host side: gpu.py.  The method: cpu/tiles.py.
//
//   reduce_rows, substitute_rows   the two passes over the rows: ../passes.cuh
//   join, top, expand              from the elements to their ends: ../elements.cuh
//   repair                         rows that are off: ../passes.cuh
//
// This file: what a thread does with its part of ROWS rows.

#include "matchwood/passes.cuh"

constexpr int PART_ROWS = 32;  // rows of a part

template <typename T>
struct Rows {
    static constexpr int P = 1;
    static constexpr int ROWS = PART_ROWS;
    static constexpr int EACH = 16 / sizeof(T);
    static constexpr int CHUNKS = ROWS / EACH, RIGHT_CHUNKS = CHUNKS;
    static constexpr int ARRAY = CHUNKS * TILE_THREADS;  // chunks of an array in the tile
    static constexpr int BLOCK = ROWS * TILE_THREADS;    // rows of a thread block
    static constexpr int SOLUTION = ARRAY;               // place in the tile: that of d
};

// An equation in (x[s-1], x[s] | x[j], x[j+1]), and its size: the largest coefficient that it has or had.
template <typename T>
struct Equation {
    T l1, l2, r1, r2, f;
    Size<T> size;
};

// A chunk of rows of this thread's part.
template <typename T>
struct OwnRows {
    T lower[Rows<T>::EACH], diagonal[Rows<T>::EACH], upper[Rows<T>::EACH], right[Rows<T>::EACH];

    __device__ __forceinline__ OwnRows(const Chunk* tile, int c)
    {
        constexpr int CHUNKS = Rows<T>::CHUNKS, array = Rows<T>::ARRAY;
        get_chunk<CHUNKS>(tile, c, lower);
        get_chunk<CHUNKS>(tile + array, c, diagonal);
        get_chunk<CHUNKS>(tile + 2 * array, c, upper);
        get_chunk<CHUNKS>(tile + 3 * array, c, right);
    }
};

template <typename T>
__device__ __forceinline__ T choose(bool first, T a, T b) { return first ? a : b; }

// The largest coefficient of a row; the smallest of all rows is kept in `least`.
template <typename T>
__device__ __forceinline__ Size<T> row_size(T lower, T diagonal, T upper, unsigned& least)
{
    Size<T> size = larger(larger(size_of(lower), size_of(diagonal)), size_of(upper));
    least = smaller_rank(least, size);
    return larger(size, least_size<T>());
}

template <typename T>
__device__ __forceinline__ Size<T> size_now(const Equation<T>& e)
{
    return larger(larger(size_of(e.l1), size_of(e.l2)), larger(size_of(e.r1), size_of(e.r2)));
}

// What the reduction records besides its equations: the pivots, two bits for each unknown; the sizes of the
// smallest row and of the largest number; and the first row without a pivot.
template <typename T>
struct Record {
    unsigned long long picks;
    unsigned least;
    Size<T> most;
    int lacking;
};

// The part of the pivot row of x[j] that must be stored: x[j] = right - ...  If the new row was the pivot, the
// coefficients are those of the matrix times `factor`.  Else `factor` is the coefficient of x[j+1], and that of
// x[j+2] is zero.
template <typename T>
struct Pivot {
    T factor, right;
};

// Eliminate x[j] from A, B and the new row (c1 x[j] + c2 x[j+1] + c3 x[j+2] = cf).  With LEFT, as in the reduction,
// the unknowns x[s-1] and x[s] are kept, and the pivot is chosen and recorded.  Without, `picks` says which pivot the
// reduction chose.  Returns true when x[j] has no pivot.
template <bool LEFT, typename T>
__device__ __forceinline__ bool step(Equation<T>& A, Equation<T>& B, T c1, T c2, T c3, T cf, Pivot<T>& pivot,
                                     unsigned picks, Record<T>& record)
{
    Size<T> c_size = Size<T>();
    bool swap, fresh;  // B is better than A; the new row is better than both
    if (LEFT) {
        c_size = row_size(c1, c2, c3, record.least);
        record.most = larger(record.most, larger(c_size, size_of(cf)));
        swap = better_pivot(B.r1, B.size, A.r1, A.size);
        fresh = better_pivot(c1, c_size, choose(swap, B.r1, A.r1), choose(swap, B.size, A.size));
        record.picks = record.picks >> 2 | (unsigned long long)((swap ? 1u : 0u) | (fresh ? 2u : 0u)) << 62;
    } else {
        swap = picks & 1;
        fresh = picks & 2;
    }
    Equation<T> p, q;
    p.r1 = choose(swap, B.r1, A.r1), q.r1 = choose(swap, A.r1, B.r1);
    p.r2 = choose(swap, B.r2, A.r2), q.r2 = choose(swap, A.r2, B.r2);
    p.f = choose(swap, B.f, A.f), q.f = choose(swap, A.f, B.f);
    T k1 = choose(fresh, c1, p.r1), o1 = choose(fresh, p.r1, c1);
    T k2 = choose(fresh, c2, p.r2), o2 = choose(fresh, p.r2, c2);
    T k3 = choose(fresh, c3, T(0)), o3 = choose(fresh, T(0), c3);
    T kf = choose(fresh, cf, p.f), of = choose(fresh, p.f, cf);
    bool none = k1 == T(0);
    if (none) {
        T tiny = epsilon<T>() * (magnitude(k2) + magnitude(k3));
        k1 = tiny > T(0) ? tiny : epsilon<T>();
    }
    T inverse = inverse_of(k1);
    T m = q.r1 * inverse, o = o1 * inverse;
    if (LEFT) {
        p.l1 = choose(swap, B.l1, A.l1), q.l1 = choose(swap, A.l1, B.l1);
        p.l2 = choose(swap, B.l2, A.l2), q.l2 = choose(swap, A.l2, B.l2);
        p.size = choose(swap, B.size, A.size), q.size = choose(swap, A.size, B.size);
        T kl1 = choose(fresh, T(0), p.l1), ol1 = choose(fresh, p.l1, T(0));
        T kl2 = choose(fresh, T(0), p.l2), ol2 = choose(fresh, p.l2, T(0));
        A.l1 = q.l1 - m * kl1, A.l2 = q.l2 - m * kl2;
        B.l1 = ol1 - o * kl1, B.l2 = ol2 - o * kl2;
    } else {
        pivot.factor = choose(fresh, inverse, k2 * inverse), pivot.right = kf * inverse;
    }
    A.r1 = q.r2 - m * k2, A.r2 = -m * k3, A.f = q.f - m * kf;
    B.r1 = o2 - o * k2, B.r2 = o3 - o * k3, B.f = of - o * kf;
    if (LEFT) {
        A.size = larger(q.size, size_now(A));
        B.size = larger(choose(fresh, p.size, c_size), size_now(B));
    }
    return none;
}

// Eliminate with the rows of chunk c, from its row FROM on.
template <int FROM, typename T>
__device__ __forceinline__ void reduce_chunk(Chunk* tile, int c, Equation<T>& A, Equation<T>& B, Record<T>& record)
{
    constexpr int EACH = Rows<T>::EACH;
    OwnRows<T> rows(tile, c);
    Pivot<T> unused;
#pragma unroll
    for (int v = FROM; v < EACH; ++v) {
        bool none = step<true>(A, B, rows.lower[v], rows.diagonal[v], rows.upper[v], rows.right[v], unused, 0, record);
        if (none && record.lacking < 0) record.lacking = c * EACH + v - 1;
    }
}

// Row `row` of this thread's part, as an equation in (x[j-1], x[j] | x[j+1]).
template <typename T>
__device__ __forceinline__ Equation<T> first_row(Chunk* tile, int row, unsigned& least)
{
    constexpr int CHUNKS = Rows<T>::CHUNKS;
    constexpr int array = Rows<T>::ARRAY;
    int item = threadIdx.x * Rows<T>::ROWS + row;
    T lower = tile_item<CHUNKS, T>(tile, item), diagonal = tile_item<CHUNKS, T>(tile + array, item);
    T upper = tile_item<CHUNKS, T>(tile + 2 * array, item), right = tile_item<CHUNKS, T>(tile + 3 * array, item);
    return {lower, diagonal, upper, T(0), right, row_size(lower, diagonal, upper, least)};
}

// Reduce this thread's part to its element, two equations in (x[s-1], x[s] | x[e], x[e+1]).
template <typename T>
__device__ __forceinline__ void reduce_part(Chunk* tile, Elements<1, T> out, long long part, unsigned long long* status)
{
    Record<T> record;
    record.picks = 0, record.lacking = -1, record.least = ~0u;
    Equation<T> A = first_row<T>(tile, 0, record.least), B = first_row<T>(tile, 1, record.least);
    B.r2 = B.r1, B.r1 = B.l2, B.l2 = B.l1, B.l1 = T(0);
    record.most = larger(larger(A.size, B.size), larger(size_of(A.f), size_of(B.f)));
    if (Rows<T>::EACH > 2) reduce_chunk<2>(tile, 0, A, B, record);
#pragma unroll 1
    for (int c = 1; c < Rows<T>::CHUNKS; ++c) reduce_chunk<0>(tile, c, A, B, record);
    if (record.lacking >= 0) fail(status, SINGULAR, part * Rows<T>::ROWS + record.lacking);
    // an infinity or NaN in any row has spread to both equations
    T finite = T(0) * A.l1 + T(0) * A.l2 + T(0) * A.r1 + T(0) * A.r2 + T(0) * A.f;
    finite += T(0) * B.l1 + T(0) * B.l2 + T(0) * B.r1 + T(0) * B.r2 + T(0) * B.f;
    bool fits = !too_small<T>(record.least) && as_number(record.most) <= large<T>();
    if (!(finite == T(0) && fits)) fail(status, NOT_FINITE, part * Rows<T>::ROWS);
    T fields[10] = {A.l1, A.l2, A.r1, A.r2, A.f, B.l1, B.l2, B.r1, B.r2, B.f};
#pragma unroll
    for (int f = 0; f < 10; ++f) out.data[f * out.total + part] = fields[f];
    put_picks<10>(out.data, out.total, part, record.picks);
}

template <typename T>
__device__ __forceinline__ unsigned long long picks_of(Elements<1, T> known, long long part)
{
    return get_picks<10>(known.data, known.total, part, 2 * (Rows<T>::ROWS - 2));
}

// The unknowns of this thread's part, from `ends`: two numbers before the part, two after it.  The rows stay in shared
// memory and the pivot rows in registers, so loops over rows are unrolled.  With CHECK each row is checked as soon as
// its unknowns are known.  After the last use of a row, its unknown overwrites d.
template <bool CHECK, typename T>
__device__ __forceinline__ void substitute_part(Chunk* tile, const T* ends, unsigned long long picks,
                                                RowChecker<T>& checker, Checking<CHECK>)
{
    constexpr int ROWS = Rows<T>::ROWS, EACH = Rows<T>::EACH, CHUNKS = Rows<T>::CHUNKS, array = Rows<T>::ARRAY;
    T before = ends[0], begin = ends[1], near = ends[2], far = ends[3];
    checker.unknown(before), checker.unknown(far);
    Pivot<T> pivots[ROWS];
    Record<T> unused;
    Equation<T> A = first_row<T>(tile, 0, unused.least), B = first_row<T>(tile, 1, unused.least);
    A.f -= A.l1 * before + A.l2 * begin;
    B.f -= B.l1 * begin;
    B.r2 = B.r1, B.r1 = B.l2;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        OwnRows<T> rows(tile, c);
#pragma unroll
        for (int v = 0; v < EACH; ++v) {
            int j = c * EACH + v;
            if (j < 2) continue;
            unsigned mine = (unsigned)(picks >> 2 * (j - 2));
            step<false>(A, B, rows.lower[v], rows.diagonal[v], rows.upper[v], rows.right[v], pivots[j], mine, unused);
        }
    }
#pragma unroll
    for (int c = CHUNKS - 1; c >= 0; --c) {
        OwnRows<T> rows(tile, c);
        T solution[EACH];
#pragma unroll
        for (int v = EACH - 1; v >= 0; --v) {  // x[j] is `near`, x[j+1] `far`; row j has the pivot of x[j-1]
            int j = c * EACH + v;
            T next = j == 1 ? begin : before;
            if (j > 1) {
                bool fresh = picks >> (2 * (j - 2) + 1) & 1;
                T u2 = choose(fresh, rows.diagonal[v] * pivots[j].factor, pivots[j].factor);
                T u3 = choose(fresh, rows.upper[v] * pivots[j].factor, T(0));
                next = pivots[j].right - u2 * near - u3 * far;
            }
            if (CHECK) {
                T terms[3] = {rows.lower[v] * next, rows.diagonal[v] * near, rows.upper[v] * far};
                checker.row(terms, rows.right[v], 1u << j);
                checker.unknown(near);
            }
            solution[v] = near;
            far = near, near = next;
        }
        put_chunk<CHUNKS>(tile + array, c, solution);
    }
}

// The rows were checked in substitute_part; only their marks are stored here.
template <typename T>
__device__ __forceinline__ void mark_rows(Chunk*, long long, const T*, const T*, const T*, const T*, const T*,
                                          unsigned* mine, unsigned*, RowChecker<T>& checker)
{
    if (mine != nullptr) *mine = checker.marks;
}
