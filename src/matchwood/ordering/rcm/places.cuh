// What the orders of Cuthill and McKee share on the device: places, owners, long lists of children.
//
// order[place] = vertex is the result and the queue at once.  owner[v] is the least place of a
// neighbour that has offered itself: `none` before any has, -1 for a start.  It is lowered by
// atomicMin alone, so it does not depend on scheduling once all smaller places have offered, and a
// vertex that has its place is never changed: its owner is placed before all vertices that offer later.
#pragma once
#include "matchwood/atomics.cuh"
#include "matchwood/block_sort.cuh"

template <typename I>
struct Places {
    I n;
    const I *indptr, *indices;
    I *order, *owner;

    __device__ __forceinline__ I none() const { return n; }
    __device__ __forceinline__ I degree(I v) const { return indptr[v + 1] - indptr[v]; }
};

// The `size` children of the vertex at `place`, by (degree, vertex), go to target[0 ..]; `size` is
// their number.  `a` and `b` have room for `size` vertices each.  The row is sorted, so they are
// taken from it in order of vertices, and sorted by the digits of the degree that differ: a pass
// for 8 bits.  All threads of the block call; owners are final.
template <int THREADS, typename I>
__device__ void place_many(const Places<I>& places, I place, I size, I* a, I* b, I* target,
                           SortSpace<THREADS>& space)
{
    __shared__ unsigned long long differ;
    if (threadIdx.x == 0) differ = 0;
    __syncthreads();
    I v = load_relaxed(&places.order[place]);
    I begin = places.indptr[v], end = places.indptr[v + 1];
    unsigned long long differs = 0, any = 0;
    long long taken = 0;
    for (long long first = begin; first < end; first += THREADS) {
        I w = 0;
        int mine = 0;
        if (first + threadIdx.x < end) {
            w = places.indices[first + threadIdx.x];
            mine = load_relaxed(&places.owner[w]) == place;
        }
        int total;
        int before = block_exclusive_sum(mine, &total);
        if (mine) {
            a[taken + before] = w;
            unsigned long long degree = (unsigned long long)places.degree(w);
            any = any == 0 ? degree : any;
            differs |= any ^ degree;
        }
        taken += total;
    }
    __syncthreads();  // a[] is read by all
    unsigned long long common = size > 0 ? (unsigned long long)places.degree(a[0]) : 0;
    if (any != 0) differs |= any ^ common;
    if (differs != 0) atomicOr(&differ, differs);
    __syncthreads();
    unsigned long long bits = differ;
    I *from = a, *to = b;
    for (int shift = 0; shift < 64 && bits >> shift != 0; shift += DIGIT_BITS) {
        if ((bits >> shift & (DIGITS - 1)) == 0) continue;
        sort_by_digit<THREADS>(
            space, (long long)size,
            [&](long long i) { return (int)((unsigned long long)places.degree(from[i]) >> shift & (DIGITS - 1)); },
            [&](long long i, long long at) { to[at] = from[i]; });
        I* swap = from;
        from = to;
        to = swap;
    }
    for (I i = threadIdx.x; i < size; i += THREADS) target[i] = from[i];
    __syncthreads();
}
