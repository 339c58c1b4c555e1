// The instances of the row reduction, and the cut of a matrix into tiles.  The skeleton, which
// says what an operation must have: matchwood/row_reduce.cuh.  Host: gpu.py.
#include "matchwood/atomics.cuh"
#include "matchwood/entry_rows.cuh"
#include "matchwood/exact.cuh"
#include "matchwood/row_reduce.cuh"

// ---- chunks ----

// One warp per chunk and one more: the row of its first entry.  first_row[chunks] is the last row.
template <typename I>
__global__ void first_rows(long long chunks, I n, const I* __restrict__ indptr,
                           I* __restrict__ first_row)
{
    long long c = global_thread() / WARP;
    if (c > chunks) return;
    I row = n;
    if (c < chunks) row = warp_search(I(0), n, [&](I r) { return indptr[r] <= c * CHUNK; });
    if (lane() == 0) first_row[c] = row - 1;
}

// ---- tiles ----

// Where no row is long, tile t begins with the first row r for which (indptr[r] + r) / tile is t,
// and there is one for every t.
template <typename I>
__device__ __forceinline__ long long along_path(const I* indptr, I row)
{
    return (long long)indptr[row] + row;
}

template <typename I>
__device__ __forceinline__ bool is_long(const I* indptr, I row, int tile)
{
    return indptr[row + 1] - indptr[row] > longest_short_row(tile);
}

// How many tiles begin with this row: for a long row one for each chunk; one behind a long row, and
// where the path of rows and entries enters another `tile`; else none.
template <typename I>
__device__ __forceinline__ I tiles_at(const I* indptr, I row, int tile)
{
    if (is_long(indptr, row, tile)) return (indptr[row + 1] - indptr[row] + ROW_CHUNK - 1) / ROW_CHUNK;
    if (row == 0 || is_long(indptr, (I)(row - 1), tile)) return 1;
    return along_path(indptr, row) / tile != along_path(indptr, (I)(row - 1)) / tile;
}

// One thread per row.  found[0] becomes how many tiles there are where no row is long, found[1] 1
// where one is; it was 0 before.
template <typename I>
__global__ void survey(I n, const I* __restrict__ indptr, int tile, I* found)
{
    long long r = global_thread();
    if (r >= n) return;
    if (r == n - 1) found[0] = (I)(along_path(indptr, (I)r) / tile + 1);
    if (is_long(indptr, (I)r, tile)) store_relaxed(&found[1], I(1));
}

// One warp per tile and one more, which closes the list; no row is long.
template <typename I>
__global__ void cut_evenly(long long tiles, I n, const I* __restrict__ indptr, int tile,
                           I* __restrict__ tile_row, I* __restrict__ tile_entry)
{
    long long t = global_thread() / WARP;
    if (t > tiles) return;
    I row = n;
    if (t < tiles)
        row = warp_search(I(0), n, [&](I r) { return along_path(indptr, r) < t * tile; });
    if (lane() == 0) {
        tile_row[t] = row;
        tile_entry[t] = indptr[row];
    }
}

// One thread per row.  *chunked becomes 1 when a row has more than one chunk; it was 0 before.
template <typename I>
__global__ void count_tiles(I n, const I* __restrict__ indptr, int tile, I* __restrict__ counts,
                            I* chunked)
{
    long long r = global_thread();
    if (r >= n) return;
    I count = tiles_at(indptr, (I)r, tile);
    counts[r] = count;
    if (count > 1) store_relaxed(chunked, I(1));
}

// One thread per row: it writes the tiles that begin with it.  The last one closes the list.
template <typename I>
__global__ void write_tiles(I n, const I* __restrict__ indptr, int tile,
                            const I* __restrict__ starts, I* __restrict__ tile_row, I* __restrict__ tile_entry)
{
    long long r = global_thread();
    if (r >= n) return;
    I row = (I)r, first = starts[row], count = starts[row + 1] - first;
    bool chunks = is_long(indptr, row, tile);
    for (I c = 0; c < count; ++c) {
        tile_row[first + c] = chunks ? ~row : row;
        tile_entry[first + c] = indptr[row] + c * ROW_CHUNK;
    }
    if (row == n - 1) {
        tile_row[starts[n]] = n;
        tile_entry[starts[n]] = indptr[n];
    }
}

// ---- instances ----

// P: what NumPy makes of M times X.  S: what it makes of A plus P.  Without VALUES all entries are
// 1 and `data` is not read.
template <typename I, typename M, typename X, typename Y, typename A, typename P, typename S, bool VALUES>
struct Multiply {
    using Product = P;
    using Accumulator = A;
    const M* __restrict__ data;
    const X* __restrict__ x;
    Y* __restrict__ y;

    __device__ __forceinline__ P multiply(I k, I col) const
    {
        return VALUES ? (P)data[k] * (P)x[col] : (P)x[col];
    }
    __device__ __forceinline__ A start(I) const { return A(0); }
    __device__ __forceinline__ void add(A& sum, P term) const { sum = (A)((S)sum + (S)term); }
    __device__ __forceinline__ void merge(A& sum, const A& other) const { sum += other; }
    __device__ __forceinline__ void finish(I row, const A& sum) const { y[row] = (Y)sum; }
};

template <typename I, typename M, typename X, typename Y, typename A, typename P, typename S, bool VALUES, int TILE>
__global__ void __launch_bounds__(ROW_BLOCK)
spmv(const I* __restrict__ indptr, const I* __restrict__ indices, const I* __restrict__ tile_row,
     const I* __restrict__ tile_entry, unsigned char* partials, unsigned int* chunks_done,
     const M* __restrict__ data, const X* __restrict__ x, Y* __restrict__ y)
{
    Multiply<I, M, X, Y, A, P, S, VALUES> op{data, x, y};
    reduce_rows<TILE>(indptr, indices, RowTiles<I>{tile_row, tile_entry}, op, partials, chunks_done);
}

template <typename I, typename W>
struct Neighbour {
    W weight;
    I col;  // -1: none
};

// N neighbours, heaviest first, equal ones by smaller column; the first `n` of them are wanted.
template <typename I, typename W, int N>
struct Strongest {
    using Product = Neighbour<I, W>;
    struct Accumulator {
        Product best[N];
        I row;
    };
    const W* __restrict__ data;
    int n;
    I* __restrict__ columns;
    W* __restrict__ weights;

    __device__ __forceinline__ Product multiply(I k, I col) const { return {data[k], col}; }
    __device__ __forceinline__ Accumulator start(I row) const
    {
        Accumulator none;
        for (int s = 0; s < N; ++s) none.best[s] = {W(0), I(-1)};
        none.row = row;
        return none;
    }
    __device__ __forceinline__ void add(Accumulator& sum, Product next) const
    {
        if (better(next, sum.best[N - 1]) && next.col != sum.row && next.weight == next.weight)
            insert(sum, next);
    }
    // The best N of two sorted lists are the better ones of each pair (s, N - 1 - s), and lie so
    // that a few exchanges sort them (K. E. Batcher, 1968).
    __device__ __forceinline__ void merge(Accumulator& sum, const Accumulator& other) const
    {
#pragma unroll
        for (int s = 0; s < N; ++s)
            if (better(other.best[N - 1 - s], sum.best[s])) sum.best[s] = other.best[N - 1 - s];
#pragma unroll
        for (int step = N / 2; step > 0; step /= 2) {
#pragma unroll
            for (int s = 0; s < N; ++s) {
                if ((s & step) == 0 && better(sum.best[s + step], sum.best[s])) {
                    Product swap = sum.best[s];
                    sum.best[s] = sum.best[s + step];
                    sum.best[s + step] = swap;
                }
            }
        }
    }
    __device__ __forceinline__ void finish(I row, const Accumulator& sum) const
    {
#pragma unroll
        for (int s = 0; s < N; ++s) {
            if (s >= n) return;
            columns[(long long)row * n + s] = sum.best[s].col;
            weights[(long long)row * n + s] = sum.best[s].weight;
        }
    }
    // Sink through the list; registers only, since all places are known when it is compiled.
    static __device__ __forceinline__ void insert(Accumulator& sum, Product next)
    {
#pragma unroll
        for (int s = 0; s < N; ++s) {
            if (better(next, sum.best[s])) {
                Product swap = sum.best[s];
                sum.best[s] = next;
                next = swap;
            }
        }
    }
    static __device__ __forceinline__ bool better(const Product& a, const Product& b)
    {
        if (a.col < 0 || b.col < 0) return b.col < a.col;
        return exactly_less(b.weight, a.weight) ||
               (exactly_equal(a.weight, b.weight) && a.col < b.col);
    }
};

template <typename I, typename W, int N, int TILE>
__global__ void __launch_bounds__(ROW_BLOCK)
strongest(const I* __restrict__ indptr, const I* __restrict__ indices,
          const I* __restrict__ tile_row, const I* __restrict__ tile_entry,
          unsigned char* partials, unsigned int* chunks_done, const W* __restrict__ data, int n,
          I* __restrict__ columns, W* __restrict__ weights)
{
    Strongest<I, W, N> op{data, n, columns, weights};
    reduce_rows<TILE>(indptr, indices, RowTiles<I>{tile_row, tile_entry}, op, partials, chunks_done);
}

template <typename I, typename L>
struct Smallest {
    using Product = L;
    using Accumulator = L;
    const L* __restrict__ label;
    L* __restrict__ out;

    __device__ __forceinline__ L multiply(I, I col) const { return label[col]; }
    __device__ __forceinline__ L start(I row) const { return label[row]; }
    __device__ __forceinline__ void add(L& least, L next) const { least = min(least, next); }
    __device__ __forceinline__ void merge(L& least, const L& next) const { least = min(least, next); }
    __device__ __forceinline__ void finish(I row, const L& least) const { out[row] = least; }
};

template <typename I, typename L, int TILE>
__global__ void __launch_bounds__(ROW_BLOCK)
smallest(const I* __restrict__ indptr, const I* __restrict__ indices,
         const I* __restrict__ tile_row, const I* __restrict__ tile_entry,
         unsigned char* partials, unsigned int* chunks_done, const L* __restrict__ label,
         L* __restrict__ out)
{
    Smallest<I, L> op{label, out};
    reduce_rows<TILE>(indptr, indices, RowTiles<I>{tile_row, tile_entry}, op, partials, chunks_done);
}

template <typename I, typename X>
struct Largest {
    using Product = X;
    using Accumulator = X;
    const X* __restrict__ x;
    X lowest;
    X* __restrict__ out;

    __device__ __forceinline__ X multiply(I, I col) const { return x[col]; }
    __device__ __forceinline__ X start(I) const { return lowest; }
    __device__ __forceinline__ void add(X& most, X next) const
    {
        if (exactly_less(most, next)) most = next;
    }
    __device__ __forceinline__ void merge(X& most, const X& next) const { add(most, next); }
    __device__ __forceinline__ void finish(I row, const X& most) const { out[row] = most; }
};

template <typename I, typename X, int TILE>
__global__ void __launch_bounds__(ROW_BLOCK)
largest(const I* __restrict__ indptr, const I* __restrict__ indices,
        const I* __restrict__ tile_row, const I* __restrict__ tile_entry, unsigned char* partials,
        unsigned int* chunks_done, const X* __restrict__ x, X lowest, X* __restrict__ out)
{
    Largest<I, X> op{x, lowest, out};
    reduce_rows<TILE>(indptr, indices, RowTiles<I>{tile_row, tile_entry}, op, partials, chunks_done);
}
