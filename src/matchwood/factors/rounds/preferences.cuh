// Which neighbours a vertex prefers: candidates by weight, then by hash or column, and sorted lists
// of the best N of them.  Weights are compared by their bits, which order positive ones; the sign
// is free for a charge.
#pragma once
#include "matchwood/edge_order.cuh"

template <typename W> struct WeightKey;
template <> struct WeightKey<float> {
    using Key = int;  // the weight's bits; the sign holds a charge
    static constexpr Key SIGN = (Key)0x80000000u, MOST = 0x7fffffff;
    static __device__ __forceinline__ Key of(float w) { return __float_as_int(w); }
    static __device__ __forceinline__ float weight(Key key) { return __int_as_float(key); }
};
template <> struct WeightKey<double> {
    using Key = long long;
    static constexpr Key SIGN = (Key)0x8000000000000000ull, MOST = 0x7fffffffffffffffll;
    static __device__ __forceinline__ Key of(double w) { return __double_as_longlong(w); }
    static __device__ __forceinline__ double weight(Key key) { return __longlong_as_double(key); }
};

// A neighbour that may be proposed to.  Key 0 and column -1: none.
template <typename I, typename W>
struct Offer {
    typename WeightKey<W>::Key key;
    I col;
};

template <typename I, typename W, bool HASH>
struct Candidate : Offer<I, W> {};
template <typename I, typename W>
struct Candidate<I, W, true> : Offer<I, W> {
    unsigned long long hash;
};

__device__ __forceinline__ long long packed(const Offer<int, float>& a)
{
    return (long long)((unsigned long long)(unsigned)a.key << 32 | (unsigned)~a.col);
}

// Whether a vertex prefers neighbour a to b.  Negative keys come after all others; none (-1) does
// not come before none.
__device__ __forceinline__ bool better(const Candidate<int, float, false>& a,
                                       const Candidate<int, float, false>& b)
{
    return packed(a) > packed(b);
}
template <typename I, typename W>
__device__ __forceinline__ bool better(const Candidate<I, W, false>& a, const Candidate<I, W, false>& b)
{
    return a.key > b.key || (a.key == b.key && (unsigned long long)(long long)a.col < (unsigned long long)(long long)b.col);
}
template <typename I, typename W>
__device__ __forceinline__ bool better(const Candidate<I, W, true>& a, const Candidate<I, W, true>& b)
{
    if (a.key != b.key) return a.key > b.key;
    if (a.hash != b.hash) return a.hash > b.hash;
    return (unsigned long long)(long long)a.col < (unsigned long long)(long long)b.col;
}

template <typename I>
__device__ __forceinline__ void hash_if_asked(Offer<I, float>&, I, unsigned long long) {}
template <typename I>
__device__ __forceinline__ void hash_if_asked(Offer<I, double>&, I, unsigned long long) {}
template <typename I, typename W>
__device__ __forceinline__ void hash_if_asked(Candidate<I, W, true>& a, I row, unsigned long long seed)
{
    a.hash = a.col < 0 ? 0 : tie_hash(row, a.col, seed);
}

// The best N of two sorted lists are the better ones of each pair (s, N - 1 - s), and lie so that a
// few exchanges sort them (K. E. Batcher, 1968).
template <int N, typename Entry>
__device__ __forceinline__ void merge_sorted(Entry (&best)[N], const Entry (&other)[N])
{
#pragma unroll
    for (int s = 0; s < N; ++s)
        if (better(other[N - 1 - s], best[s])) best[s] = other[N - 1 - s];
#pragma unroll
    for (int step = N / 2; step > 0; step /= 2) {
#pragma unroll
        for (int s = 0; s < N; ++s) {
            if ((s & step) == 0 && better(best[s + step], best[s])) {
                Entry swap = best[s];
                best[s] = best[s + step];
                best[s + step] = swap;
            }
        }
    }
}
