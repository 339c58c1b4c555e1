// What the orders of Cuthill and McKee share on the device: the queue, owners, and long lists of children.
//
// order[place] = vertex is the result and the queue at once.  owner[v] is the least place of a
// neighbour that has offered itself: `none` before any has, -1 for a start.  It is lowered by
// atomicMin alone, so it does not depend on scheduling once all smaller places have offered, and a
// vertex that has its place is never changed: its owner is placed before all vertices that offer later.
#pragma once
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// A stable counting sort by one block: for lists of any length, in shared or in device memory.

constexpr int DIGIT_BITS = 8;            // bits of a key sorted in one pass
constexpr int DIGITS = 1 << DIGIT_BITS;  // counters of a pass

// What the sort needs in shared memory, for blocks of THREADS threads.
template <int THREADS>
struct SortSpace {
    unsigned short ahead[THREADS / WARP][DIGITS];  // of a tile: equal digits in the warps before
    long long next[DIGITS], base[DIGITS];          // where the next of each digit goes
};

// `move(i, place)` is called once for every i < size, so that ascending places have ascending
// `digit(i)` (0 to DIGITS - 1), and equal ones keep their order.  All threads of the block call.
template <int THREADS, typename Digit, typename Move>
__device__ void sort_by_digit(SortSpace<THREADS>& space, long long size, Digit digit, Move move)
{
    for (int d = threadIdx.x; d < DIGITS; d += THREADS) space.next[d] = 0;
    __syncthreads();
    for (long long first = 0; first < size; first += THREADS) {
        long long i = first + threadIdx.x;
        int mine = i < size ? digit(i) : DIGITS;
        unsigned same = __match_any_sync(ALL, mine);
        if (i < size && (same & lanes_below()) == 0)
            atomicAdd(reinterpret_cast<unsigned long long*>(&space.next[mine]), (unsigned long long)__popc(same));
    }
    __syncthreads();
    if (warp() == 0) {
        constexpr int EACH = DIGITS / WARP;
        long long sum = 0;
        for (int k = 0; k < EACH; ++k) sum += space.next[lane() * EACH + k];
        long long before = warp_exclusive_sum(sum);
        for (int k = 0; k < EACH; ++k) {
            long long count = space.next[lane() * EACH + k];
            space.next[lane() * EACH + k] = before;
            before += count;
        }
    }
    for (long long first = 0; first < size; first += THREADS) {
        unsigned int* cells = reinterpret_cast<unsigned int*>(&space.ahead[0][0]);
        for (int c = threadIdx.x; c < THREADS / WARP * DIGITS / 2; c += THREADS) cells[c] = 0;
        __syncthreads();
        long long i = first + threadIdx.x;
        int mine = i < size ? digit(i) : DIGITS;
        unsigned same = __match_any_sync(ALL, mine);
        int before = __popc(same & lanes_below());
        if (i < size && before == 0) space.ahead[warp()][mine] = (unsigned short)__popc(same);
        __syncthreads();
        for (int d = threadIdx.x; d < DIGITS; d += THREADS) {
            int sum = 0;
            for (int w = 0; w < THREADS / WARP; ++w) {
                int count = space.ahead[w][d];
                space.ahead[w][d] = (unsigned short)sum;
                sum += count;
            }
            space.base[d] = space.next[d];
            space.next[d] += sum;
        }
        __syncthreads();
        if (i < size) move(i, space.base[mine] + space.ahead[warp()][mine] + before);
        __syncthreads();
    }
}

// The queue and the owners, as explained above.

template <typename I>
struct Queue {
    I n;
    const I *indptr, *indices;
    I *order, *owner;

    __device__ __forceinline__ I none() const { return n; }
    __device__ __forceinline__ I degree(I v) const { return indptr[v + 1] - indptr[v]; }
};

// The `size` children of the vertex at `place`, by (degree, vertex), go to target[0 ..].  `a` and `b`
// have room for `size` vertices each.  The row is sorted, so children are taken from it in order, and
// sorted by the digits in which degrees differ, 8 bits a pass.  All threads of the block call; owners are final.
template <int THREADS, typename I>
__device__ void place_many(const Queue<I>& queue, I place, I size, I* a, I* b, I* target,
                           SortSpace<THREADS>& space)
{
    __shared__ unsigned long long differ;
    if (threadIdx.x == 0) differ = 0;
    __syncthreads();
    I v = load_relaxed(&queue.order[place]);
    I begin = queue.indptr[v], end = queue.indptr[v + 1];
    unsigned long long differs = 0, any = 0;
    long long taken = 0;
    for (long long first = begin; first < end; first += THREADS) {
        I w = 0;
        int mine = 0;
        if (first + threadIdx.x < end) {
            w = queue.indices[first + threadIdx.x];
            mine = load_relaxed(&queue.owner[w]) == place;
        }
        int total;
        int before = block_exclusive_sum(mine, &total);
        if (mine) {
            a[taken + before] = w;
            unsigned long long degree = (unsigned long long)queue.degree(w);
            any = any == 0 ? degree : any;
            differs |= any ^ degree;
        }
        taken += total;
    }
    __syncthreads();  // a[] is read by all
    unsigned long long common = size > 0 ? (unsigned long long)queue.degree(a[0]) : 0;
    if (any != 0) differs |= any ^ common;
    if (differs != 0) atomicOr(&differ, differs);
    __syncthreads();
    unsigned long long bits = differ;
    I *from = a, *to = b;
    for (int shift = 0; shift < 64 && bits >> shift != 0; shift += DIGIT_BITS) {
        if ((bits >> shift & (DIGITS - 1)) == 0) continue;
        sort_by_digit<THREADS>(
            space, (long long)size,
            [&](long long i) { return (int)((unsigned long long)queue.degree(from[i]) >> shift & (DIGITS - 1)); },
            [&](long long i, long long at) { to[at] = from[i]; });
        I* swap = from;
        from = to;
        to = swap;
    }
    for (I i = threadIdx.x; i < size; i += THREADS) target[i] = from[i];
    __syncthreads();
}
