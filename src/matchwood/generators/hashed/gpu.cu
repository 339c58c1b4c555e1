// Random graphs from a hash.  Host side: gpu.py.  What is drawn: reference.py.
//
//   draw_quarters   one thread per edge of R-MAT
//   pick_pairs      one thread per edge of G(n, m)
//   count_row       one warp per row of G(n, p): its degree
//   fill_row        one warp per row of G(n, p): its neighbours, in order
//
// No two threads write the same word, and nothing is read that another thread writes.
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"

typedef unsigned long long u64;

// Number k of the stream that starts at `key`.
__device__ __forceinline__ u64 value(u64 key, u64 k) { return mix64(key + k * GOLDEN); }

__device__ __forceinline__ u64 relabelled(u64 x, u64 mask, int half, const u64* labels)
{
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        x = (x * labels[2 * r] + labels[2 * r + 1]) & mask;
        x ^= x >> half;
    }
    return x;
}

template <typename I>
__global__ void draw_quarters(long long samples, int scale, unsigned long long key,
                              unsigned long long a, unsigned long long ab, unsigned long long abc,
                              bool permute, const unsigned long long* __restrict__ labels,
                              I* __restrict__ rows, I* __restrict__ cols)
{
    long long e = global_thread();
    if (e >= samples) return;
    int each = (scale + 1) / 2;
    u64 u = 0, v = 0, drawn = 0;
    for (int level = 0; level < scale; ++level) {
        u64 x;
        if (level % 2 == 0) {
            drawn = value(key, (u64)e * each + level / 2);
            x = drawn & 0xffffffffull;
        } else {
            x = drawn >> 32;
        }
        u64 down = x >= ab;
        u = u << 1 | down;
        v = v << 1 | ((x >= a) ^ down ^ (x >= abc));
    }
    if (permute) {
        u64 mask = (1ull << scale) - 1;
        u = relabelled(u, mask, each, labels);
        v = relabelled(v, mask, each, labels);
    }
    rows[e] = (I)u;
    cols[e] = (I)v;
}

__device__ __forceinline__ u64 feistel(u64 x, int low_bits, u64 high_mask, u64 low_mask,
                                       const u64* keys, int rounds)
{
    u64 high = x >> low_bits, low = x & low_mask;
    for (int r = 0; r < rounds; r += 2) {
        high ^= value(keys[r], low) & high_mask;
        low ^= value(keys[r + 1], high) & low_mask;
    }
    return high << low_bits | low;
}

template <typename I>
__global__ void pick_pairs(long long m, unsigned long long n, bool directed,
                           unsigned long long pairs, int high_bits, int low_bits,
                           const unsigned long long* __restrict__ keys, int rounds,
                           I* __restrict__ rows, I* __restrict__ cols)
{
    long long k = global_thread();
    if (k >= m) return;
    u64 high_mask = (1ull << high_bits) - 1, low_mask = (1ull << low_bits) - 1;
    u64 t = (u64)k;
    do
        t = feistel(t, low_bits, high_mask, low_mask, keys, rounds);
    while (t >= pairs);
    u64 u, v;
    if (directed) {
        u = t / (n - 1), v = t % (n - 1);
        v += v >= u;
    } else {
        u = t % n;
        v = (u + t / n + 1) % n;
    }
    rows[k] = (I)u;
    cols[k] = (I)v;
}

__device__ __forceinline__ bool present(u64 n, bool directed, u64 key, u64 threshold, u64 u, u64 v)
{
    u64 counter = directed || u < v ? u * n + v : v * n + u;
    return u != v && value(key, counter) >> 11 < threshold;
}

__global__ void count_row(long long n, bool directed, unsigned long long key,
                          unsigned long long threshold, long long* counts)
{
    long long u = global_thread() / WARP;
    if (u >= n) return;  // the whole warp leaves together
    long long degree = 0;
    for (long long v = lane(); v < n; v += WARP)
        degree += present(n, directed, key, threshold, u, v);
    degree = warp_reduce(degree, Plus());
    if (lane() == 0) counts[u] = degree;
}

template <typename I>
__global__ void fill_row(long long n, bool directed, unsigned long long key,
                         unsigned long long threshold, const I* __restrict__ indptr,
                         I* __restrict__ indices)
{
    long long u = global_thread() / WARP;
    if (u >= n) return;
    long long place = indptr[u];
    for (long long first = 0; first < n; first += WARP) {
        long long v = first + lane();
        bool here = v < n && present(n, directed, key, threshold, u, v);
        unsigned all = __ballot_sync(ALL, here);
        if (here) indices[place + __popc(all & lanes_below())] = (I)v;
        place += __popc(all);
    }
}
