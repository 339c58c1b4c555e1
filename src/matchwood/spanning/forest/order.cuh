// The total order on edges for spanning forests, as spanning/forest/order.py has it.
#pragma once
#include "matchwood/atomics.cuh"
#include "matchwood/sorted_row.cuh"

using Code = unsigned long long;
constexpr Code NOTHING = ~Code(0);  // no edge: behind all words

// Read from eight words in device memory, which order.py's fields fill in this order.
struct Order {
    bool floating;
    Code sign, flip, base;
    int drop, places;

    __device__ __forceinline__ explicit Order(const unsigned long long* words)
        : floating(words[0] != 0), sign(words[1]), flip(words[2]), base(words[3]), drop((int)words[4]),
          places((int)words[5])
    {
    }
    __device__ __forceinline__ Code place(Code word) const { return word & ((Code(1) << places) - 1); }
    __device__ __forceinline__ Code word(Code code, Code k) const { return code >> drop << places | k; }
};

// The code of a weight given by its bits.
template <typename B>
__device__ __forceinline__ Code code_of(const Order& order, B bits)
{
    Code x = bits;
    if (order.floating) {
        if (x == order.sign) x = 0;  // -0.0
        x ^= x & order.sign ? (order.sign << 1) - 1 : order.sign;
    } else {
        x ^= order.sign;
    }
    return (x ^ order.flip) - order.base;
}

// The same for weights of 32 bits, in words of 32 bits: 64 take twice the instructions.
__device__ __forceinline__ Code code_of(const Order& order, unsigned int bits)
{
    unsigned int sign = (unsigned int)order.sign;
    if (order.floating) {
        if (bits == sign) bits = 0;  // -0.0
        bits ^= bits & sign ? ~0u : sign;
    } else {
        bits ^= sign;
    }
    return (bits ^ (unsigned int)order.flip) - (unsigned int)order.base;
}

// Of two words whose prefixes lack bits: by prefixes, codes, places.
template <typename B>
__device__ __forceinline__ bool word_before(Code x, Code y, const Order& order, const B* bits)
{
    if (x >> order.places != y >> order.places || y == NOTHING) return x < y;
    Code a = code_of(order, bits[order.place(x)]), b = code_of(order, bits[order.place(y)]);
    return a == b ? x < y : a < b;
}

// The entry of the edge {u, v}: where the larger stands in the row of the smaller; -1 where it does
// not, in a pattern that is wrongly taken for symmetric.
template <typename I>
__device__ __forceinline__ I upper_entry(const I* indptr, const I* indices, I u, I v)
{
    I row = u < v ? u : v, column = u < v ? v : u;
    I end = indptr[row + 1], k = first_not_below(indices, indptr[row], end, column);
    return k < end && indices[k] == column ? k : I(-1);
}

// The row that holds entry k, of the rows low to high - 1.
template <typename I>
__device__ __forceinline__ long long row_of(long long low, long long high, const I* indptr, long long k)
{
    while (high - low > 1) {
        long long middle = (low + high) / 2;
        if (indptr[middle] <= k)
            low = middle;
        else
            high = middle;
    }
    return low;
}
