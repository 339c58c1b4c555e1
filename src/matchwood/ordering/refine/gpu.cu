// Refinement on the GPU.  Host side: gpu.py; the rule: __init__.py.
//
//   evaluate   one warp per pair of a chosen vertex and a partner: what their swap would gain
//   choose     one thread per pair: of the pairs that gain most, the smallest partner
//   complete   all warps, one kernel: the sequence of swaps by reservations, a window at a time
//
// Races of `complete`.  A round has three parts with a barrier of the grid after each.  In the first,
// swaps lower the words of their rows and ends, by atomicMin alone.  In the second, a swap that finds
// its word in all of them runs; it reads and writes those rows and ends alone, and no other swap
// holds them.  In the third, one thread goes on to the next round or window.  Words of later rounds are
// smaller than all before, so they are never cleared.
#include "matchwood/atomics.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/logs.cuh"
#include "matchwood/threads.cuh"

constexpr int BLOCK = 256;
constexpr int AROUND = 4;        // places beside the median that are tried: two on either side
constexpr int NUMBER_BITS = 40;  // bits of a swap's number in a claim; the rounds left are above them
[[maybe_unused]] constexpr int ROUNDS = 1 << 24;  // more than a launch has

// Words of a completion.
constexpr int GATE = 0, START = 1, LEFT = 2, ROUND = 3, KEPT = 4, STOP = 5;
[[maybe_unused]] constexpr int WORDS = 6;

// A swap of two vertices, by a warp: what it gains, and doing it.  As in cpu.py, which says how.

// A graph and an order of it.  `near` has the places of the neighbours, row by row, ascending; `table`
// that of logarithms, null where gaps are added up as they are.
template <typename I>
struct PlacedGraph {
    const I *indptr, *indices;
    I *place, *near;
    const int* table;
};

// The first index in low..high whose place is p or more, or high.
template <typename I>
__device__ __forceinline__ I first_from(const I* near, I low, I high, I p)
{
    while (low < high) {
        I middle = low + (high - low) / 2;
        if (near[middle] < p) low = middle + 1;
        else high = middle;
    }
    return low;
}

// What a place between two others adds to the metric of a row; -1 where there is no other.
template <typename I>
__device__ __forceinline__ long long bend(I left, I middle, I right, const int* table)
{
    long long total = 0;
    if (left >= 0) total += log_of((long long)middle - left, table);
    if (right >= 0) total += log_of((long long)right - middle, table);
    if (left >= 0 && right >= 0) total -= log_of((long long)right - left, table);
    return total;
}

// By how much the sum of logarithms falls when b takes the place of a in a row.
template <typename I>
__device__ __forceinline__ long long log_change(const I* near, I begin, I end, I a, I b, const int* table)
{
    I i = first_from(near, begin, end, a < b ? a : b), j = first_from(near, i, end, a < b ? b : a);
    I at, left_of_b, right_of_b;
    if (a < b) {
        if (i >= end || near[i] != a || (j < end && near[j] == b)) return 0;
        at = i;
        left_of_b = j - 1 > i ? j - 1 : i - 1;
        right_of_b = j;
    } else {
        if (j >= end || near[j] != a || near[i] == b) return 0;
        at = j;
        left_of_b = i - 1;
        right_of_b = i < j ? i : j + 1;
    }
    I left = at > begin ? near[at - 1] : I(-1), right = at + 1 < end ? near[at + 1] : I(-1);
    long long lost = bend(left, a, right, table);
    left = left_of_b >= begin ? near[left_of_b] : I(-1);
    right = right_of_b < end ? near[right_of_b] : I(-1);
    return lost - bend(left, b, right, table);
}

// By how much the distance from first to last falls when b takes the place of a in a row.
template <typename I>
__device__ __forceinline__ long long linear_change(const I* near, I begin, I end, I a, I b)
{
    if (end - begin < 2) return 0;
    I least = near[begin], most = near[end - 1];
    if (a != least && a != most && least < b && b < most) return 0;
    I at = first_from(near, begin, end, b);
    if (at < end && near[at] == b) return 0;
    I new_least = a == least ? near[begin + 1] : least, new_most = a == most ? near[end - 2] : most;
    if (b < new_least) new_least = b;
    if (b > new_most) new_most = b;
    return ((long long)most - least) - ((long long)new_most - new_least);
}

// This lane's part of what the rows of v's neighbours fall by when v goes from place a to b.
template <typename I>
__device__ __forceinline__ long long changes(const PlacedGraph<I>& order, I v, I a, I b)
{
    long long total = 0, stop = order.indptr[v + 1];
    for (long long k = order.indptr[v] + (long long)lane(); k < stop; k += WARP) {
        I w = order.indices[k], begin = order.indptr[w], end = order.indptr[w + 1];
        total += order.table == nullptr ? linear_change(order.near, begin, end, a, b)
                                        : log_change(order.near, begin, end, a, b, order.table);
    }
    return total;
}

// By how much the metric falls when u and v swap places.  All lanes of the warp call and get it.
template <typename I>
__device__ __forceinline__ long long gain_of(const PlacedGraph<I>& order, I u, I v)
{
    I a = order.place[u], b = order.place[v];
    return warp_reduce(changes(order, u, a, b) + changes(order, v, b, a), Plus());
}

// Replace a by b in a row that holds a and not b; else leave it as it is.
template <typename I>
__device__ __forceinline__ void replace(I* near, I begin, I end, I a, I b)
{
    I i = first_from(near, begin, end, a), j = first_from(near, begin, end, b);
    if (i >= end || near[i] != a || (j < end && near[j] == b)) return;
    if (a < b)
        for (; i + 1 < j; ++i) near[i] = near[i + 1];
    else
        for (; i > j; --i) near[i] = near[i - 1];
    near[i] = b;
}

// Replace a by b in the rows of v's neighbours, one lane per row.
template <typename I>
__device__ __forceinline__ void move(const PlacedGraph<I>& order, I v, I a, I b)
{
    long long stop = order.indptr[v + 1];
    for (long long k = order.indptr[v] + (long long)lane(); k < stop; k += WARP) {
        I w = order.indices[k];
        replace(order.near, order.indptr[w], order.indptr[w + 1], a, b);
    }
    __syncwarp();
}

// Swap the places of u and v.  All lanes of the warp call.
template <typename I>
__device__ __forceinline__ void swap(const PlacedGraph<I>& order, I u, I v)
{
    I a = order.place[u], b = order.place[v];
    __syncwarp();
    move(order, u, a, b);
    move(order, v, b, a);
    if (lane() == 0) {
        order.place[u] = b;
        order.place[v] = a;
    }
    __syncwarp();
}

// The sweep

// The partner of pair `item` of chosen vertex u: a neighbour, or one around the median; -1: none.
template <typename I>
__device__ __forceinline__ I partner_of(const PlacedGraph<I>& order, I n, I u, I item, const I* vertex)
{
    I begin = order.indptr[u], degree = order.indptr[u + 1] - begin;
    if (item < degree) return order.indices[begin + item];
    int which = (int)(item - degree), step = which < AROUND / 2 ? which - AROUND / 2 : which - AROUND / 2 + 1;
    long long place = (long long)order.near[begin + degree / 2] + step;
    if (place < 0 || place >= n) return I(-1);
    I v = vertex[place];
    return v == u ? I(-1) : v;
}

// gain[item]: what the pair gains; best[k]: the most of any pair of chosen vertex k, 0 at first.
// starts[k]: the first pair of chosen vertex k, owner[item] that vertex.
template <typename I>
__global__ void __launch_bounds__(BLOCK)
    evaluate(I n, long long first, long long last, const I* chosen, const long long* starts, const I* owner,
             const I* vertex, const I* indptr, const I* indices, I* place, I* near, const int* table, long long* gain,
             unsigned long long* best)
{
    PlacedGraph<I> order{indptr, indices, place, near, table};
    long long warps = all_threads() / WARP;
    for (long long item = first + global_thread() / WARP; item < last; item += warps) {
        I k = owner[item], u = chosen[k];
        I v = partner_of(order, n, u, (I)(item - starts[k]), vertex);
        long long found = v < 0 ? 0 : gain_of(order, u, v);
        if (lane() == 0) {
            gain[item] = found;
            if (found > 0) atomicMax(&best[k], (unsigned long long)found);
        }
    }
}

// partner[k]: the smallest partner of those that gain most; n at first, and where none gains.
template <typename I>
__global__ void choose(I n, long long items, const I* chosen, const long long* starts, const I* owner, const I* vertex,
                       const I* indptr, const I* indices, I* place, I* near, const long long* gain,
                       const unsigned long long* best, I* partner)
{
    PlacedGraph<I> order{indptr, indices, place, near, nullptr};
    for (long long item = global_thread(); item < items; item += all_threads()) {
        I k = owner[item];
        if (gain[item] <= 0 || (unsigned long long)gain[item] != best[k]) continue;
        lower_to(&partner[k], partner_of(order, n, chosen[k], (I)(item - starts[k]), vertex));
    }
}

// each(place in claims) for the rows and the end of v; one lane for each.
template <typename I, typename Each>
__device__ __forceinline__ void for_claims(const PlacedGraph<I>& order, I n, I v, Each each)
{
    if (lane() == 0) each((long long)n + v);
    long long stop = order.indptr[v + 1];
    for (long long k = order.indptr[v] + (long long)lane(); k < stop; k += WARP) each((long long)order.indices[k]);
}

template <typename I>
__device__ __forceinline__ bool holds_all(
    const PlacedGraph<I>& order, I n, I u, I v, const unsigned long long* claims, unsigned long long word)
{
    bool all = true;
    auto look = [&](long long at) { all = all && load_relaxed(&claims[at]) == word; };
    for_claims(order, n, u, look);
    for_claims(order, n, v, look);
    return __all_sync(ALL, all);
}

// `claims`: n rows, then n ends, all bits set before the first launch; `done`: 0 for every swap.
// words[START], words[LEFT], words[ROUND]: 0, the swaps of the first window, 1 before the first launch.
// Stops after `cycles`, and goes on when launched again.
template <typename I>
__global__ void __launch_bounds__(BLOCK)
    complete(I n, long long swaps, long long window, const I* first, const I* second, const I* indptr, const I* indices,
             I* place, I* near, const int* table, unsigned long long* claims, unsigned char* done, long long cycles,
             unsigned long long* words)
{
    PlacedGraph<I> order{indptr, indices, place, near, table};
    GridBarrier gate(reinterpret_cast<unsigned int*>(words + GATE));
    long long began = clock64(), warps = all_threads() / WARP, me = global_thread() / WARP;
    while (true) {
        long long start = (long long)load_relaxed(&words[START]);
        if (start >= swaps || load_relaxed(&words[STOP]) != 0) return;
        long long size = swaps - start < window ? swaps - start : window;
        unsigned long long above = (ROUNDS - load_relaxed(&words[ROUND])) << NUMBER_BITS;
        for (long long k = start + me; k < start + size; k += warps) {
            if (load_relaxed(&done[k]) != 0) continue;
            unsigned long long word = above | (unsigned long long)k;
            auto claim = [&](long long at) {
                if (load_relaxed(&claims[at]) > word) atomicMin(&claims[at], word);
            };
            for_claims(order, n, first[k], claim);
            for_claims(order, n, second[k], claim);
        }
        gate.wait();
        for (long long k = start + me; k < start + size; k += warps) {
            if (load_relaxed(&done[k]) != 0) continue;
            I u = first[k], v = second[k];
            if (!holds_all(order, n, u, v, claims, above | (unsigned long long)k)) continue;
            bool gains = gain_of(order, u, v) > 0;
            if (gains) swap(order, u, v);
            if (lane() == 0) {
                store_relaxed(&done[k], (unsigned char)1);
                atomicAdd(&words[LEFT], ~0ull);
                if (gains) atomicAdd(&words[KEPT], 1ull);
            }
        }
        gate.wait();
        if (global_thread() == 0) {
            if (load_relaxed(&words[LEFT]) == 0) {
                long long next = start + size, left = swaps - next < window ? swaps - next : window;
                store_relaxed(&words[START], (unsigned long long)next);
                store_relaxed(&words[LEFT], (unsigned long long)left);
            }
            atomicAdd(&words[ROUND], 1ull);
            if (clock64() - began > cycles) store_relaxed(&words[STOP], 1ull);
        }
        gate.wait();
    }
}
