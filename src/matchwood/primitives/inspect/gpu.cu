// `inspect` on the GPU, entry by entry (matchwood/entry_rows.cuh).
//
// Symmetry: the product of keyed factors over the entries above the diagonal is compared with that
// over the entries below it, modulo the prime 2^127 - 1.  Why that proves what it does: __init__.py.
//
// Past the end of a thread's entries, column and row are both 0, and the value: nothing is counted.
// Blocks go on through the chunks until there are no more, and then add up what their threads
// found, with one atomic for each fact.  Products have no atomics: each block leaves its own, and
// `join_products` multiplies them.  Sums, products and extremes are the same in any order, so
// scheduling changes nothing.
#include "matchwood/entry_rows.cuh"
#include "matchwood/exact.cuh"
#include "matchwood/status.cuh"
#include "matchwood/threads.cuh"

using Hash = unsigned long long;

// Codes of failures: places in FAULTS of __init__.py.
constexpr unsigned INDPTR_START = 1, INDPTR_ORDER = 2, INDPTR_END = 3, INDEX_RANGE = 4;
constexpr unsigned NOT_FINITE = 1;

// Places in the table of facts, all 0 at first, but STATUS as status.cuh wants it.  Extremes are
// ordered like unsigned numbers, the least one turned over, so that both begin at 0.
constexpr int STATUS = 0, DESCENTS = 1, LONGEST = 2, LOOPS = 3, ZEROS = 4, LEAST = 5, MOST = 6,
              ABOVE = 7, BELOW = 9;  // a product is two words, the low one first
[[maybe_unused]] constexpr int WORDS = 11;

// ---- numbers modulo 2^127 - 1 ----

// Any number below 2^127 stands for its remainder; `canonical` gives the least one.
struct Field {
    Hash lo, hi;
};

constexpr Hash LOW63 = 0x7fffffffffffffffull;

// 2^127 is 1: the top bit of 128 moves to the bottom.  Below 2^127 unless all 128 bits are set.
__device__ __forceinline__ Field folded(Hash lo, Hash hi)
{
    Hash sum = lo + (hi >> 63);
    return {sum, (hi & LOW63) + (sum < lo)};
}

__device__ __forceinline__ Field plus(Field a, Field b)
{
    Hash lo = a.lo + b.lo;
    return folded(lo, a.hi + b.hi + (lo < a.lo));
}

// a (word b): three words, of which the bits from 2^127 on move to the bottom.
__device__ __forceinline__ Field times(Field a, Hash b)
{
    Hash lo = a.lo * b, middle = __umul64hi(a.lo, b);
    Hash up = a.hi * b, top = __umul64hi(a.hi, b);
    middle += up;
    top += middle < up;
    Field low = folded(lo, middle);
    return plus(low, {top << 1, top >> 63});  // 2^128 is 2
}

// Schoolbook: 2^128 hh + 2^64 (lh + hl) + ll with 2^127 = 1.  Upper halves are below 2^63, so
// the middle sum stays below 2^128.
__device__ __forceinline__ Field times(Field a, Field b)
{
    Hash l0 = a.lo * b.lo, l1 = __umul64hi(a.lo, b.lo);
    Hash x0 = a.lo * b.hi, x1 = __umul64hi(a.lo, b.hi);
    Hash y0 = a.hi * b.lo, y1 = __umul64hi(a.hi, b.lo);
    Hash h0 = a.hi * b.hi, h1 = __umul64hi(a.hi, b.hi);
    Hash m0 = x0 + y0, m1 = x1 + y1 + (m0 < x0);
    Field high = folded(h0 << 1, h1 << 1 | h0 >> 63);
    Field middle = plus({m0 >> 63 | m1 << 1, m1 >> 63}, {0, m0 & LOW63});
    return plus(plus(high, middle), folded(l0, l1));
}

__device__ __forceinline__ Field canonical(Field a)
{
    return a.lo == ~0ull && a.hi == LOW63 ? Field{0, 0} : a;
}

// The products of the entries seen so far.
struct Balance {
    Field above{1, 0}, below{1, 0};

    // Entry (i, j), with the factor's part that comes from the key and the value.  Without branches:
    // one multiplication, into one product or the other, by 1 on the diagonal.
    template <typename I>
    __device__ __forceinline__ void add(I i, I j, Field rest)
    {
        Field factor = plus(rest, {(Hash)max(i, j), (Hash)min(i, j)});
        bool lower = i > j;
        Field product = lower ? below : above;
        Field next = times(product, factor);
        if (i == j) next = product;
        if (lower)
            below = next;
        else
            above = next;
    }
};

// ---- facts of a block ----

__device__ __forceinline__ void publish_sum(Hash* table, int place, Hash mine)
{
    Hash sum = block_reduce(mine, 0ull, Plus());
    if (threadIdx.x == 0 && sum != 0) atomicAdd(&table[place], sum);
}

__device__ __forceinline__ void publish_most(Hash* table, int place, Hash mine)
{
    Hash most = block_reduce(mine, 0ull, Most());
    if (threadIdx.x == 0 && most != 0) atomicMax(&table[place], most);
}

// The product over the block, left in thread 0's return value.  All threads of the block call.
__device__ __forceinline__ Field block_product(Field mine)
{
    __shared__ Field parts[WARP];
    for (int step = WARP / 2; step > 0; step /= 2)
        mine = times(mine, Field{__shfl_xor_sync(ALL, mine.lo, step), __shfl_xor_sync(ALL, mine.hi, step)});
    if (lane() == 0) parts[warp()] = mine;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int other = 1; other < (int)(blockDim.x / WARP); ++other) mine = times(mine, parts[other]);
    __syncthreads();
    return mine;
}

// products[2 b] and products[2 b + 1] belong to block b.
__device__ __forceinline__ void leave_products(const Balance& balance, Field* products)
{
    Field above = block_product(balance.above), below = block_product(balance.below);
    if (threadIdx.x == 0) {
        products[2 * blockIdx.x] = above;
        products[2 * blockIdx.x + 1] = below;
    }
}

// Bits of a number as an integer that is ordered like the number, and back.
__device__ __forceinline__ int ordered(int bits) { return bits ^ (bits >> 31 & 0x7fffffff); }
__device__ __forceinline__ long long ordered(long long bits)
{
    return bits ^ (bits >> 63 & 0x7fffffffffffffffll);
}

template <typename W>
struct Order;
template <>
struct Order<float> {
    using Key = int;
    static constexpr int MOST_KEY = 0x7fffffff;
    static __device__ __forceinline__ int key(float w) { return ordered(__float_as_int(w)); }
    static __device__ __forceinline__ float value(int key) { return __int_as_float(ordered(key)); }
};
template <>
struct Order<double> {
    using Key = long long;
    static constexpr long long MOST_KEY = 0x7fffffffffffffffll;
    static __device__ __forceinline__ long long key(double w) { return ordered(__double_as_longlong(w)); }
    static __device__ __forceinline__ double value(long long key) { return __longlong_as_double(ordered(key)); }
};

// The same order for float32 and float64, and for unsigned numbers.
template <typename W>
__device__ __forceinline__ Hash wide_key(typename Order<W>::Key key)
{
    return (Hash)Order<double>::key(widened(Order<W>::value(key))) ^ 1ull << 63;
}

// ---- kernels ----

// Is indptr sound?  Also the longest row.
template <typename I>
__global__ void check_indptr(long long rows, const I* __restrict__ indptr, long long nnz,
                             unsigned long long* table)
{
    if (global_thread() == 0) {
        if (indptr[0] != 0) fail(table + STATUS, INDPTR_START, 0);
        if (indptr[rows] != nnz) fail(table + STATUS, INDPTR_END, rows);
    }
    long long longest = 0;
    for (long long i = global_thread(); i < rows; i += all_threads()) {
        long long length = (long long)indptr[i + 1] - indptr[i];
        if (length < 0) fail(table + STATUS, INDPTR_ORDER, i);
        longest = max(longest, length);
    }
    publish_most(table, LONGEST, (Hash)longest);
}

// Indices out of range; entries that are not larger than the one before in their row.  Does nothing
// where `check_indptr` has found a fault.
template <typename I>
__global__ void __launch_bounds__(CHUNK_THREADS)
structure(long long m, const I* __restrict__ indptr, const I* __restrict__ indices,
          const I* __restrict__ first_row, long long chunks, I n, unsigned long long* table)
{
    if (failed(table + STATUS)) return;
    unsigned int descents = 0;
    for (long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        long long first = first_entry(chunk);
        int count = entries_here(first, m);
        I col[EACH];
        load_entries(indices, first, count, col);
        I before = first > 0 && count > 0 ? indices[first - 1] : I(0);
        I row[EACH];
        unsigned int begins = find_rows(indptr, first_row, chunk, first, count, row);
        bool in_range = true;
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            in_range = in_range && (e >= count || (col[e] >= 0 && col[e] < n));
            descents += !(begins >> e & 1) && col[e] <= before;
            before = col[e];
        }
        if (!in_range)
            for (int e = 0; e < count; ++e) {
                I wrong = indices[first + e];
                if (wrong < 0 || wrong >= n) fail(table + STATUS, INDEX_RANGE, first + e);
            }
    }
    publish_sum(table, DESCENTS, descents);
}

template <typename I>
__global__ void __launch_bounds__(CHUNK_THREADS)
symmetry(long long m, const I* __restrict__ indptr, const I* __restrict__ indices,
         const I* __restrict__ first_row, long long chunks,
         unsigned long long r_lo, unsigned long long r_hi, unsigned long long* table,
         unsigned long long* products)
{
    Balance balance;
    Field r{r_lo, r_hi};
    unsigned int loops = 0;
    for (long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        long long first = first_entry(chunk);
        int count = entries_here(first, m);
        I col[EACH];
        load_entries(indices, first, count, col);
        I row[EACH];
        find_rows(indptr, first_row, chunk, first, count, row);
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            loops += e < count && col[e] == row[e];
            balance.add(row[e], col[e], r);
        }
    }
    publish_sum(table, LOOPS, loops);
    leave_products(balance, reinterpret_cast<Field*>(products));
}

template <typename I, typename W>
__global__ void __launch_bounds__(CHUNK_THREADS)
values(long long m, const I* __restrict__ indptr, const I* __restrict__ indices,
       const W* __restrict__ data, const I* __restrict__ first_row, long long chunks,
       unsigned long long r_lo, unsigned long long r_hi, unsigned long long t_lo,
       unsigned long long t_hi, unsigned long long* table, unsigned long long* products)
{
    using Key = typename Order<W>::Key;
    Balance balance;
    Field r{r_lo, r_hi}, t{t_lo, t_hi};
    unsigned int zeros = 0;
    Key least = Order<W>::MOST_KEY, most = ~Order<W>::MOST_KEY;
    for (long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        long long first = first_entry(chunk);
        int count = entries_here(first, m);
        I col[EACH];
        W weight[EACH];
        load_entries(indices, first, count, col);
        load_entries(data, first, count, weight);
        bool finite = true;
        I row[EACH];
        find_rows(indptr, first_row, chunk, first, count, row);
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            W w = weight[e];
            bool zero = is_zero(w), off_diagonal = row[e] != col[e];
            finite = finite && is_finite(w);
            Key key = Order<W>::key(w);
            least = off_diagonal ? min(least, key) : least;
            most = off_diagonal ? max(most, key) : most;
            zeros += zero && off_diagonal;
            Hash bits = zero ? 0 : value_bits(w);  // -0.0 counts as 0.0
            balance.add(row[e], col[e], plus(r, times(t, bits)));
        }
        if (!finite)
            for (int e = 0; e < count; ++e)
                if (!is_finite(data[first + e])) fail(table + STATUS, NOT_FINITE, first + e);
    }
    publish_sum(table, ZEROS, zeros);
    leave_products(balance, reinterpret_cast<Field*>(products));
    bool any = least <= most;
    publish_most(table, LEAST, any ? ~wide_key<W>(least) : 0);
    publish_most(table, MOST, any ? wide_key<W>(most) : 0);
}

// One block: the products of all blocks in one.
__global__ void join_products(long long blocks, const unsigned long long* __restrict__ products,
                              unsigned long long* table)
{
    const Field* parts = reinterpret_cast<const Field*>(products);
    Field above{1, 0}, below{1, 0};
    for (long long b = threadIdx.x; b < blocks; b += blockDim.x) {
        above = times(above, parts[2 * b]);
        below = times(below, parts[2 * b + 1]);
    }
    above = canonical(block_product(above));
    below = canonical(block_product(below));
    if (threadIdx.x == 0) {
        table[ABOVE] = above.lo;
        table[ABOVE + 1] = above.hi;
        table[BELOW] = below.lo;
        table[BELOW + 1] = below.hi;
    }
}
