// `inspect` on the GPU: the idea (hashed vectors x and y, x'Ay against y'Ax) is in __init__.py.
// The entries are read by the row reduction (matchwood/row_reduce.cuh); what is found is summed up
// in members of the operation, then in the block, then with one atomic for each fact and block.
// Sums are modulo 2^64 and extremes are extremes, so scheduling changes nothing.
#include "matchwood/atomics.cuh"
#include "matchwood/exact.cuh"
#include "matchwood/row_reduce.cuh"
#include "matchwood/status.cuh"

using Hash = unsigned long long;

// Codes of failures: places in FAULTS of __init__.py.
constexpr unsigned INDPTR_START = 1, INDPTR_ORDER = 2, INDPTR_END = 3, INDEX_RANGE = 4;
constexpr unsigned NOT_FINITE = 1;

// Places in the table of facts.
constexpr int DESCENTS = 0, LOOPS = 1, LONGEST = 2, SUM1 = 3, SUM2 = 4, ZEROS = 5;

// x1, y1, x2, y2 of one vertex (or of the bits of one value): a chain in which none is linear in
// the one before; the same as in cpu.py.
struct Hashes {
    Hash a, b, c, d;
};

__device__ __forceinline__ Hash first_hash(Hash v)
{
    Hash h = v * 0x9E3779B97F4A7C15ull + 0xD6E8FEB86659FD93ull;
    h = (h ^ h >> 32) * 0xBF58476D1CE4E5B9ull;
    return h ^ h >> 29;
}

__device__ __forceinline__ Hash next_hash(Hash h, Hash k)
{
    h *= k;
    return h ^ h >> 31;
}

__device__ __forceinline__ Hashes hashes(long long v)
{
    Hashes h;
    h.a = first_hash((Hash)v);
    h.b = next_hash(h.a, 0x94D049BB133111EBull);
    h.c = next_hash(h.b, 0x9E3779B97F4A7C15ull);
    h.d = next_hash(h.c, 0xD6E8FEB86659FD93ull);
    return h;
}

// One thread per row, one at least.
template <typename I>
__global__ void check_indptr(long long rows, const I* __restrict__ indptr, long long nnz,
                             unsigned long long* status)
{
    long long i = global_thread();
    if (i == 0) {
        if (indptr[0] != 0) fail(status, INDPTR_START, 0);
        if (indptr[rows] != nnz) fail(status, INDPTR_END, rows);
    }
    if (i < rows && indptr[i] > indptr[i + 1]) fail(status, INDPTR_ORDER, i);
}

template <typename I>
struct Structure {
    using Product = I;        // 1 where an entry is not larger than the one before, in any row
    using Accumulator = int;  // nothing to merge: the sums go over rows
    const I* __restrict__ indptr;
    const I* __restrict__ indices;
    I n;
    unsigned long long* status;
    long long descents, longest;

    __device__ __forceinline__ I multiply(I k, I col) const
    {
        if (col < 0 || col >= n) fail(status, INDEX_RANGE, k);
        return I(k > 0 && col <= indices[k - 1]);
    }
    __device__ __forceinline__ int start(I) const { return 0; }
    __device__ __forceinline__ void add(int&, I descends) { descents += descends; }
    __device__ __forceinline__ void merge(int&, int) const {}
    __device__ __forceinline__ void finish(I i, int)
    {
        I begin = indptr[i], end = indptr[i + 1];
        longest = max(longest, (long long)(end - begin));
        if (begin > 0 && begin < end) descents -= indices[begin] <= indices[begin - 1];
    }
};

__device__ __forceinline__ void publish(unsigned long long* table, int place, unsigned long long mine)
{
    unsigned long long sum = block_reduce(mine, 0ull, Plus());
    if (threadIdx.x == 0 && sum != 0) atomicAdd(&table[place], sum);
}

template <typename I, int TILE>
__global__ void __launch_bounds__(ROW_BLOCK)
structure(const I* __restrict__ indptr, const I* __restrict__ indices,
          const I* __restrict__ tile_row, const I* __restrict__ tile_entry,
          unsigned char* partials, unsigned int* chunks_done, I n, unsigned long long* table,
          unsigned long long* status)
{
    Structure<I> op{indptr, indices, n, status, 0, 0};
    reduce_rows<TILE>(indptr, indices, RowTiles<I>{tile_row, tile_entry}, op, partials, chunks_done);
    __syncthreads();
    publish(table, DESCENTS, (unsigned long long)op.descents);
    long long longest = block_reduce(op.longest, 0ll, Most());
    if (threadIdx.x == 0) atomicMax(&table[LONGEST], (unsigned long long)longest);
}

template <typename I>
struct Symmetry {
    using Product = I;  // the column
    using Accumulator = int;
    I row;
    Hashes at_row;
    long long loops;
    Hash sum1, sum2;

    __device__ __forceinline__ I multiply(I, I col) const { return col; }
    __device__ __forceinline__ int start(I i)
    {
        row = i;
        at_row = hashes(i);
        return 0;
    }
    __device__ __forceinline__ void add(int&, I col)
    {
        Hashes at_col = hashes(col);
        sum1 += at_row.a * at_col.b - at_row.b * at_col.a;
        sum2 += at_row.c * at_col.d - at_row.d * at_col.c;
        loops += col == row;
    }
    __device__ __forceinline__ void merge(int&, int) const {}
    __device__ __forceinline__ void finish(I, int) const {}
};

template <typename I, int TILE>
__global__ void __launch_bounds__(ROW_BLOCK)
symmetry(const I* __restrict__ indptr, const I* __restrict__ indices,
         const I* __restrict__ tile_row, const I* __restrict__ tile_entry, unsigned char* partials,
         unsigned int* chunks_done, unsigned long long* table)
{
    Symmetry<I> op{0, {}, 0, 0, 0};
    reduce_rows<TILE>(indptr, indices, RowTiles<I>{tile_row, tile_entry}, op, partials, chunks_done);
    __syncthreads();
    publish(table, LOOPS, (unsigned long long)op.loops);
    publish(table, SUM1, op.sum1);
    publish(table, SUM2, op.sum2);
}

template <typename I, typename W>
struct Values {
    struct Product {
        W weight;
        I col;
    };
    using Accumulator = int;
    const W* __restrict__ data;
    unsigned long long* status;
    I row;
    Hashes at_row;
    long long zeros;
    Hash sum1, sum2;
    double least, most;

    __device__ __forceinline__ Product multiply(I k, I col) const
    {
        W w = data[k];
        if (!is_finite(w)) fail(status, NOT_FINITE, k);
        return {w, col};
    }
    __device__ __forceinline__ int start(I i)
    {
        row = i;
        at_row = hashes(i);
        return 0;
    }
    __device__ __forceinline__ void add(int&, Product entry)
    {
        bool zero = is_zero(entry.weight);
        if (entry.col != row) {
            double w = widened(entry.weight);
            if (w < least) least = w;
            if (w > most) most = w;
            zeros += zero;
        }
        // -0.0 counts as 0.0
        Hash h = zero ? 0x94D049BB133111EBull : first_hash(value_bits(entry.weight));
        Hashes at_col = hashes(entry.col);
        sum1 += h * (at_row.a * at_col.b - at_row.b * at_col.a);
        sum2 += h * (at_row.c * at_col.d - at_row.d * at_col.c);
    }
    __device__ __forceinline__ void merge(int&, int) const {}
    __device__ __forceinline__ void finish(I, int) const {}
};

// range[0] is plus infinity before, range[1] minus infinity.
template <typename I, typename W, int TILE>
__global__ void __launch_bounds__(ROW_BLOCK)
values(const I* __restrict__ indptr, const I* __restrict__ indices,
       const I* __restrict__ tile_row, const I* __restrict__ tile_entry, unsigned char* partials,
       unsigned int* chunks_done, const W* __restrict__ data, unsigned long long* table,
       double* range, unsigned long long* status)
{
    double infinity = __longlong_as_double(0x7ff0000000000000ll);
    Values<I, W> op{data, status, 0, {}, 0, 0, 0, infinity, -infinity};
    reduce_rows<TILE>(indptr, indices, RowTiles<I>{tile_row, tile_entry}, op, partials, chunks_done);
    __syncthreads();
    publish(table, ZEROS, (unsigned long long)op.zeros);
    publish(table, SUM1, op.sum1);
    publish(table, SUM2, op.sum2);
    double least = block_reduce(op.least, infinity, Least());
    double most = block_reduce(op.most, -infinity, Most());
    if (threadIdx.x == 0) {
        lower_to(&range[0], least);
        raise_to(&range[1], most);
    }
}
