// `inspect` on the GPU, entry by entry (matchwood/entry_rows.cuh).
//
// Symmetry: every entry (i, j) off the diagonal adds two keyed hashes of the pair {i, j} (and of its
// value) where i < j and subtracts them where i > j.  A symmetric matrix leaves two sums of zero.
// What another one leaves: __init__.py.
//
// Past the end of a thread's entries, column, row and value are 0, which counts nothing.  Blocks take
// chunks until there are no more, then combine what their threads found, with one atomic for each
// fact.  Sums modulo 2^64, minima and maxima do not depend on scheduling.
#include "matchwood/atomics.cuh"
#include "matchwood/entry_rows.cuh"
#include "matchwood/exact.cuh"
#include "matchwood/status.cuh"
#include "matchwood/threads.cuh"

using Hash = unsigned long long;

// Codes of failures: places in FAULTS of __init__.py.
constexpr unsigned INDPTR_START = 1, INDPTR_ORDER = 2, INDPTR_END = 3, INDEX_RANGE = 4;
constexpr unsigned NOT_FINITE = 1;

// Places in the table of facts, all 0 at first, but STATUS as status.cuh wants it.  Extremes are
// ordered like unsigned numbers; of the least one all bits are inverted, so that both begin at 0.
constexpr int STATUS = 0, DESCENTS = 1, LONGEST = 2, LOOPS = 3, ZEROS = 4, LEAST = 5, MOST = 6,
              SUM1 = 7, SUM2 = 8, NEGATIVE_LOOP = 9;
[[maybe_unused]] constexpr int WORDS = 10;

// ---- keyed hashes ----

constexpr int KEY_WORDS = 4;

// Secret words of the process (keys.py): an odd multiplier above, a mask below.  Kernels get them as
// numbers and not as an array, so that instructions read them from the constant bank of arguments.
struct Secret {
    Hash word[KEY_WORDS];
};

constexpr int ROUNDS_BETWEEN = 3;  // rounds after a word that another word follows
constexpr int ROUNDS_FIRST = 6;    // rounds from the last word to the first hash
constexpr int ROUNDS_SECOND = 3;   // rounds from there to the second hash

// 64 bits that words are mixed into.
struct State {
    unsigned int a = 0, b = 0;

    __device__ __forceinline__ void take(unsigned int low, unsigned int high)
    {
        a ^= low;
        b ^= high;
    }

    // A round is that of Philox: one wide product, and one operation on three words.
    template <int COUNT>
    __device__ __forceinline__ void mix(const Secret& secret, int& round)
    {
#pragma unroll
        for (int end = round + COUNT; round < end; ++round) {
            Hash word = secret.word[round % KEY_WORDS];
            Hash product = (Hash)a * (unsigned int)(word >> 32);
            a = (unsigned int)(product >> 32) ^ b ^ (unsigned int)word;
            b = (unsigned int)product;
        }
    }

    __device__ __forceinline__ Hash hash() const { return (Hash)a << 32 | b; }
};

// What the entries seen so far leave of the two sums.
struct Balance {
    Hash sum1 = 0, sum2 = 0;

    template <typename I>
    __device__ __forceinline__ void add(I i, I j, const Secret& secret)
    {
        take<I, false>(i, j, 0, secret);
    }
    template <typename I>
    __device__ __forceinline__ void add(I i, I j, Hash value, const Secret& secret)
    {
        take<I, true>(i, j, value, secret);
    }

private:
    template <typename I, bool VALUED>
    __device__ __forceinline__ void take(I i, I j, Hash value, const Secret& secret)
    {
        Hash u = (Hash)min(i, j), v = (Hash)max(i, j);
        State state;
        int round = 0;
        state.take((unsigned int)u, (unsigned int)v);
        if constexpr (sizeof(I) == 8) {
            state.mix<ROUNDS_BETWEEN>(secret, round);
            state.take((unsigned int)(u >> 32), (unsigned int)(v >> 32));
        }
        if constexpr (VALUED) {
            state.mix<ROUNDS_BETWEEN>(secret, round);
            state.take((unsigned int)value, (unsigned int)(value >> 32));
        }
        state.mix<ROUNDS_FIRST>(secret, round);
        Hash first = state.hash();
        state.take((unsigned int)u, (unsigned int)v);  // otherwise the second hash would follow from the first
        state.mix<ROUNDS_SECOND>(secret, round);
        Hash second = state.hash();
        // plus where i < j, minus where i > j, nothing where they are equal; without branches
        Hash minus = i > j ? ~0ull : 0ull, counts = i != j ? ~0ull : 0ull;
        sum1 += ((first ^ minus) & counts) - minus;
        sum2 += ((second ^ minus) & counts) - minus;
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
         const I* __restrict__ first_row, long long chunks, unsigned long long key0,
         unsigned long long key1, unsigned long long key2, unsigned long long key3,
         unsigned long long* table)
{
    Balance balance;
    const Secret secret{{key0, key1, key2, key3}};
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
            balance.add(row[e], col[e], secret);
        }
    }
    publish_sum(table, LOOPS, loops);
    publish_sum(table, SUM1, balance.sum1);
    publish_sum(table, SUM2, balance.sum2);
}

// The blocks of a multiprocessor: as many as the registers for EACH entries allow.
template <typename I, typename W>
constexpr int VALUE_BLOCKS = sizeof(I) == 8 ? 3 : sizeof(W) == 8 ? 4 : 5;

template <typename I, typename W>
__global__ void __launch_bounds__(CHUNK_THREADS, VALUE_BLOCKS<I, W>)
values(long long m, const I* __restrict__ indptr, const I* __restrict__ indices,
       const W* __restrict__ data, const I* __restrict__ first_row, long long chunks,
       unsigned long long key0, unsigned long long key1, unsigned long long key2,
       unsigned long long key3, unsigned long long* table)
{
    using Key = typename Order<W>::Key;
    Balance balance;
    const Secret secret{{key0, key1, key2, key3}};
    unsigned int zeros = 0;
    Key least = Order<W>::MOST_KEY, most = ~Order<W>::MOST_KEY;
    for (long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        long long first = first_entry(chunk);
        int count = entries_here(first, m);
        I col[EACH];
        W weight[EACH];
        load_entries(indices, first, count, col);
        load_entries(data, first, count, weight);
        bool finite = true, negative_loop = false;
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
            negative_loop = negative_loop || (!off_diagonal && !zero && key < 0);
            zeros += zero && off_diagonal;
            Hash bits = zero ? 0 : value_bits(w);  // -0.0 counts as 0.0
            balance.add(row[e], col[e], bits, secret);
        }
        if (!finite)
            for (int e = 0; e < count; ++e)
                if (!is_finite(data[first + e])) fail(table + STATUS, NOT_FINITE, first + e);
        if (negative_loop) store_relaxed(table + NEGATIVE_LOOP, 1ull);  // all write the same
    }
    publish_sum(table, ZEROS, zeros);
    publish_sum(table, SUM1, balance.sum1);
    publish_sum(table, SUM2, balance.sum2);
    bool any = least <= most;
    publish_most(table, LEAST, any ? ~wide_key<W>(least) : 0);
    publish_most(table, MOST, any ? wide_key<W>(most) : 0);
}

// The two sums of `checksum` of __init__.py over words of any width.
template <typename U>
__global__ void sum_words(long long count, const U* __restrict__ words, unsigned long long spread,
                          unsigned long long* table)
{
    Hash one = 0, two = 0;
    for (long long k = global_thread(); k < count; k += all_threads()) {
        Hash u = (Hash)words[k] * spread;
        Hash h = u ^ u >> 32;
        one += h;
        two += h * (Hash)(count - k);
    }
    publish_sum(table, SUM1, one);
    publish_sum(table, SUM2, two);
}
