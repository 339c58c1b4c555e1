// A swap of two vertices, by a warp: what it gains, and doing it.  As cpu_swaps.py, whose page says how.
#pragma once
#include "matchwood/logs.cuh"
#include "matchwood/threads.cuh"

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

// b instead of a in a row that holds a and not b; else it stays as it is.
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

// b instead of a in the rows of v's neighbours, one lane per row.
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
