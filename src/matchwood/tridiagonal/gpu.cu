// The tridiagonal solver on the GPU.  Host side: gpu.py.  The method: cpu_parts.py; elements: elements.cuh.
//
//   reduce_rows         a thread reduces a part of ROWS rows to its element
//   join, top, expand   from the elements to their ends
//   substitute_rows     a thread finds the unknowns between two ends
//
// The rows of a block's parts lie in shared memory (tile.cuh), loaded in whole lines.  A thread reads
// and writes only its own part there, apart from loading and storing, which are fenced by barriers.

#include "matchwood/elements.cuh"
#include "matchwood/residual.cuh"
#include "matchwood/tile.cuh"

template <typename T>
struct Rows {
    static constexpr int ROWS = 32;  // of a part
    static constexpr int EACH = 16 / sizeof(T);
    static constexpr int CHUNKS = ROWS / EACH;
    static constexpr int ARRAY = CHUNKS * TILE_THREADS;  // chunks of an array in the tile
    static constexpr int BLOCK = ROWS * TILE_THREADS;    // rows of a block
};

// An equation in (x[s-1], x[s] | x[j], x[j+1]), and the largest size that it had so far.
template <typename T>
struct Equation {
    T l1, l2, r1, r2, f;
    Size<T> size;
};

template <typename T>
__device__ __forceinline__ T choose(bool first, T a, T b) { return first ? a : b; }

template <typename T>
__device__ __forceinline__ Size<T> row_size(T lower, T diagonal, T upper)
{
    return larger(larger(size_of(lower), size_of(diagonal)), larger(size_of(upper), least_size<T>()));
}

template <typename T>
__device__ __forceinline__ Size<T> size_now(const Equation<T>& e)
{
    return larger(larger(size_of(e.l1), size_of(e.l2)), larger(size_of(e.r1), size_of(e.r2)));
}

// What the reduction notes beside its equations: the pivots, two bits for each unknown, the sizes of the
// smallest row and of the largest number, and where a pivot was missing.
template <typename T>
struct Notes {
    unsigned long long picks;
    Size<T> least, most;
    int lacking;
};

// Eliminate x[j] from A, B and the new row (c1 x[j] + c2 x[j+1] + c3 x[j+2] = cf).  LEFT: with the
// unknowns x[s-1] and x[s], as the reduction needs.  Without, the pivots are those that the reduction took,
// and the pivot row, divided by its pivot, is left in u2, u3, g.  True when x[j] has no pivot.
template <bool LEFT, typename T>
__device__ __forceinline__ bool step(Equation<T>& A, Equation<T>& B, T c1, T c2, T c3, T cf, T& u2, T& u3, T& g,
                                     Notes<T>& notes)
{
    Size<T> c_size = Size<T>();
    bool swap, fresh;  // B is better than A; the new row is better than both
    if (LEFT) {
        c_size = row_size(c1, c2, c3);
        notes.least = c_size < notes.least ? c_size : notes.least;
        notes.most = larger(notes.most, larger(c_size, size_of(cf)));
        swap = better_pivot(B.r1, B.size, A.r1, A.size);
        fresh = better_pivot(c1, c_size, choose(swap, B.r1, A.r1), choose(swap, B.size, A.size));
        notes.picks = notes.picks >> 2 | (unsigned long long)((swap ? 1u : 0u) | (fresh ? 2u : 0u)) << 62;
    } else {
        swap = notes.picks & 1;
        fresh = notes.picks & 2;
        notes.picks >>= 2;
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
        T noise = epsilon<T>() * (magnitude(k2) + magnitude(k3));
        k1 = noise > T(0) ? noise : epsilon<T>();
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
        u2 = k2 * inverse, u3 = k3 * inverse, g = kf * inverse;
    }
    A.r1 = q.r2 - m * k2, A.r2 = -m * k3, A.f = q.f - m * kf;
    B.r1 = o2 - o * k2, B.r2 = o3 - o * k3, B.f = of - o * kf;
    if (LEFT) {
        A.size = larger(q.size, size_now(A));
        B.size = larger(choose(fresh, p.size, c_size), size_now(B));
    }
    return none;
}

// Four arrays of the block's tile; rows past the end are x = 0.  With `perm` the right-hand side of
// row i is b[perm[i]], which is also written to gathered[i].
template <typename T, typename I>
__device__ __forceinline__ void load_rows(Chunk* tile, long long n, const T* dl, const T* d, const T* du,
                                          const T* b, const I* perm, T* gathered)
{
    long long first = (long long)blockIdx.x * Rows<T>::BLOCK;
    constexpr int array = Rows<T>::ARRAY;
    auto zero = [](int) { return T(0); };
    load_tile<Rows<T>::CHUNKS>(tile, dl, first, n, zero);
    load_tile<Rows<T>::CHUNKS>(tile + array, d, first, n, [](int) { return T(1); });
    load_tile<Rows<T>::CHUNKS>(tile + 2 * array, du, first, n, zero);
    if (perm == nullptr) {
        load_tile<Rows<T>::CHUNKS>(tile + 3 * array, b, first, n, zero);
    } else {
        gather_tile<Rows<T>::CHUNKS>(tile + 3 * array, b, perm, first, n, gathered);
    }
}

// Wait for them, and clear what is not part of the matrix.
template <typename T>
__device__ __forceinline__ void rows_loaded(Chunk* tile, long long n)
{
    tile_loaded();
    long long first = (long long)blockIdx.x * Rows<T>::BLOCK;
    constexpr int array = Rows<T>::ARRAY;
    long long start = first + (long long)threadIdx.x * Rows<T>::ROWS;
    int item = threadIdx.x * Rows<T>::ROWS;
    if (start == 0) tile_item<Rows<T>::CHUNKS, T>(tile, item) = T(0);
    if (start < n && n <= start + Rows<T>::ROWS)
        tile_item<Rows<T>::CHUNKS, T>(tile + 2 * array, item + (int)(n - 1 - start)) = T(0);
}

// Rows of chunk c from FROM on are eliminated; the pivot row of x[j-1] takes the place of row j.
template <bool LEFT, int FROM, typename T>
__device__ __forceinline__ void eliminate_chunk(Chunk* tile, int c, Equation<T>& A, Equation<T>& B, Notes<T>& notes)
{
    constexpr int EACH = Rows<T>::EACH, CHUNKS = Rows<T>::CHUNKS;
    constexpr int array = Rows<T>::ARRAY;
    T lower[EACH], diagonal[EACH], upper[EACH], right[EACH];
    get_chunk<CHUNKS>(tile, c, lower);
    get_chunk<CHUNKS>(tile + array, c, diagonal);
    get_chunk<CHUNKS>(tile + 2 * array, c, upper);
    get_chunk<CHUNKS>(tile + 3 * array, c, right);
#pragma unroll
    for (int v = FROM; v < EACH; ++v) {
        T u2, u3, g;
        bool none = step<LEFT>(A, B, lower[v], diagonal[v], upper[v], right[v], u2, u3, g, notes);
        if (LEFT) {
            if (none && notes.lacking < 0) notes.lacking = c * EACH + v - 1;
        } else {
            lower[v] = u2, upper[v] = u3, right[v] = g;
        }
    }
    if (!LEFT) {
        put_chunk<CHUNKS>(tile, c, lower);
        put_chunk<CHUNKS>(tile + 2 * array, c, upper);
        put_chunk<CHUNKS>(tile + 3 * array, c, right);
    }
}

// The whole part of this thread, of which A and B are the first two rows.
template <bool LEFT, typename T>
__device__ __forceinline__ void eliminate_part(Chunk* tile, Equation<T>& A, Equation<T>& B, Notes<T>& notes)
{
    if (Rows<T>::EACH > 2) eliminate_chunk<LEFT, 2>(tile, 0, A, B, notes);
#pragma unroll 1
    for (int c = 1; c < Rows<T>::CHUNKS; ++c) eliminate_chunk<LEFT, 0>(tile, c, A, B, notes);
}

// Row `row` of this thread's part, as an equation in (x[j-1], x[j] | x[j+1]).
template <typename T>
__device__ __forceinline__ Equation<T> first_row(Chunk* tile, int row)
{
    constexpr int CHUNKS = Rows<T>::CHUNKS;
    constexpr int array = Rows<T>::ARRAY;
    int item = threadIdx.x * Rows<T>::ROWS + row;
    T lower = tile_item<CHUNKS, T>(tile, item), diagonal = tile_item<CHUNKS, T>(tile + array, item);
    T upper = tile_item<CHUNKS, T>(tile + 2 * array, item), right = tile_item<CHUNKS, T>(tile + 3 * array, item);
    return {lower, diagonal, upper, T(0), right, row_size(lower, diagonal, upper)};
}

template <typename T, typename I>
__global__ void reduce_rows(long long n, const T* __restrict__ dl, const T* __restrict__ d,
                            const T* __restrict__ du, const T* __restrict__ b, const I* __restrict__ perm,
                            T* __restrict__ gathered, T* __restrict__ elements, long long total, long long parts,
                            unsigned long long* status)
{
    extern __shared__ Chunk tile[];
    load_rows(tile, n, dl, d, du, b, perm, gathered);
    rows_loaded<T>(tile, n);
    long long part = global_thread();
    if (part >= parts) return;
    Equation<T> A = first_row<T>(tile, 0), B = first_row<T>(tile, 1);
    B.r2 = B.r1, B.r1 = B.l2, B.l2 = B.l1, B.l1 = T(0);
    Notes<T> notes;
    notes.picks = 0, notes.lacking = -1;
    notes.least = A.size < B.size ? A.size : B.size;
    notes.most = larger(larger(A.size, B.size), larger(size_of(A.f), size_of(B.f)));
    eliminate_part<true>(tile, A, B, notes);
    if (notes.lacking >= 0) fail(status, SINGULAR, part * Rows<T>::ROWS + notes.lacking);
    // what is not a number in any row has spread to both equations
    T finite = T(0) * A.l1 + T(0) * A.l2 + T(0) * A.r1 + T(0) * A.r2 + T(0) * A.f;
    finite += T(0) * B.l1 + T(0) * B.l2 + T(0) * B.r1 + T(0) * B.r2 + T(0) * B.f;
    bool fits = as_number(notes.least) >= 1 / large<T>() && as_number(notes.most) <= large<T>();
    if (!(finite == T(0) && fits)) fail(status, NOT_FINITE, part * Rows<T>::ROWS);
    T fields[10] = {A.l1, A.l2, A.r1, A.r2, A.f, B.l1, B.l2, B.r1, B.r2, B.f};
#pragma unroll
    for (int f = 0; f < 10; ++f) elements[f * total + part] = fields[f];
    put_picks<10>(elements, total, part, notes.picks);
}

// Do the rows of this block hold?  The solution is in shared memory; the rows are read once more, which
// lie in the cache.  Each thread has a chunk of them at a time.
template <typename T>
__device__ __forceinline__ void look_at_rows(Chunk* solution, long long n, const T* dl, const T* d, const T* du,
                                             const T* b, long long parts, const T* ends, Limits<T> limits,
                                             unsigned long long* status)
{
    constexpr int EACH = Rows<T>::EACH, CHUNKS = Rows<T>::CHUNKS;
    long long first = (long long)blockIdx.x * Rows<T>::BLOCK;
    long long beyond = (long long)(blockIdx.x + 1) * TILE_THREADS;  // the part after the block's last
    T before = ends[2 * (beyond - TILE_THREADS)], after = beyond <= parts ? ends[2 * beyond + 1] : T(0);
    Count count = {0, 0};
#pragma unroll 1
    for (int j = 0; j < CHUNKS; ++j) {
        int item = (j * TILE_THREADS + threadIdx.x) * EACH;
        T lower[EACH], diagonal[EACH], upper[EACH], right[EACH];
        read_chunk(dl, first + item, n, lower);
        read_chunk(d, first + item, n, diagonal);
        read_chunk(du, first + item, n, upper);
        read_chunk(b, first + item, n, right);
        T left = item == 0 ? before : tile_item<CHUNKS, T>(solution, item - 1);
        T here = tile_item<CHUNKS, T>(solution, item);
#pragma unroll
        for (int v = 0; v < EACH; ++v) {
            long long row = first + item + v;
            T next = item + v + 1 == Rows<T>::BLOCK ? after : tile_item<CHUNKS, T>(solution, item + v + 1);
            T terms[3] = {row == 0 ? T(0) : lower[v] * left, diagonal[v] * here,
                          row >= n - 1 ? T(0) : upper[v] * next};
            if (row < n) judge(terms, right[v], limits, count);
            left = here, here = next;
        }
    }
    report(count, limits, first, status);
}

// Two numbers of `ends` are before each part.  At last the solution takes the place of d in shared memory.
// Unless `status` is null, it is told where the solution does not hold.
template <typename T, typename I>
__global__ void substitute_rows(long long n, const T* __restrict__ dl, const T* __restrict__ d,
                                const T* __restrict__ du, const T* __restrict__ b, const T* __restrict__ elements,
                                long long total, long long parts, const T* __restrict__ ends,
                                const I* __restrict__ perm, T* __restrict__ x, T small, T large, int rare,
                                unsigned long long* status)
{
    constexpr int EACH = Rows<T>::EACH, CHUNKS = Rows<T>::CHUNKS, array = Rows<T>::ARRAY;
    extern __shared__ Chunk tile[];
    load_rows<T, I>(tile, n, dl, d, du, b, nullptr, nullptr);
    long long part = global_thread();
    T before = T(0), begin = T(0), near = T(0), far = T(0);
    if (part < parts) before = ends[2 * part], begin = ends[2 * part + 1], near = ends[2 * part + 2], far = ends[2 * part + 3];
    rows_loaded<T>(tile, n);
    if (part < parts) {
        Equation<T> A = first_row<T>(tile, 0), B = first_row<T>(tile, 1);
        A.f -= A.l1 * before + A.l2 * begin;
        B.f -= B.l1 * begin;
        B.r2 = B.r1, B.r1 = B.l2;
        Notes<T> notes;
        notes.picks = get_picks<10>(elements, total, part, 2 * (Rows<T>::ROWS - 2));
        eliminate_part<false>(tile, A, B, notes);
        T lower[EACH], upper[EACH], right[EACH], solution[EACH];
#pragma unroll 1
        for (int c = CHUNKS - 1; c >= 0; --c) {
            get_chunk<CHUNKS>(tile, c, lower);
            get_chunk<CHUNKS>(tile + 2 * array, c, upper);
            get_chunk<CHUNKS>(tile + 3 * array, c, right);
#pragma unroll
            for (int v = EACH - 1; v >= 0; --v) {  // x[c * EACH + v] is `near`
                solution[v] = near;
                T next = right[v] - lower[v] * near - upper[v] * far;
                if (v < 2 && c == 0) next = begin;
                far = near;
                near = next;
            }
            put_chunk<CHUNKS>(tile + array, c, solution);
        }
    }
    __syncwarp();
    long long first = (long long)blockIdx.x * Rows<T>::BLOCK;
    if (perm == nullptr) {
        store_tile<CHUNKS>(tile + array, x, first, n);
    } else {
        scatter_tile<CHUNKS>(tile + array, x, perm, first, n);
    }
    if (status != nullptr) look_at_rows(tile + array, n, dl, d, du, b, parts, ends, Limits<T>{small, large, rare}, status);
}

template <typename T>
__global__ void __launch_bounds__(Tree<1, T>::THREADS) join(T* elements, long long total, long long start, long long size, long long out, unsigned level,
                     long long rows, long long n, unsigned long long* status)
{
    extern __shared__ Chunk tile[];
    join_level(Elements<1, T>{elements, total}, start, size, out, tile, level, rows, n, status);
}

template <typename T>
__global__ void __launch_bounds__(Tree<1, T>::THREADS) expand(T* elements, long long total, long long start, long long size, const T* outer, T* ends)
{
    extern __shared__ Chunk tile[];
    expand_level(Elements<1, T>{elements, total}, start, size, tile, outer, ends);
}

template <typename T>
__global__ void __launch_bounds__(Tree<1, T>::THREADS) top(T* elements, long long total, long long start, long long size, T* ends, unsigned level,
                    long long rows, long long n, unsigned long long* status)
{
    extern __shared__ Chunk tile[];
    solve_top(Elements<1, T>{elements, total}, start, size, tile, ends, level, rows, n, status);
}
