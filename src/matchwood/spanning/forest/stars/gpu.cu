// Awerbuch's and Shiloach's rounds on the GPU: the steps of cpu.py, one launch each, so
// that no thread reads a half-hooked tree.  Host side: gpu.py.
//
//   find_edges    1, 2  one warp per row: the first edge into another tree, offered to the root
//   hook_stars    3     roots of stars hook
//   keep_roots    4     of two that chose each other the smaller stays; edges are marked
//   jump          5     parents become grandparents
//   find_tall, spread_tall    which vertices are in a star
//
// Races: chosen[r] is a vertex, replaced by compare-and-swap when another one's edge comes before;
// what that vertex found, at[], is written before and made visible by a fence.  star[] is only
// ever set to 0 by find_tall and spread_tall, with relaxed stores.
#include "matchwood/frontier.cuh"
#include "matchwood/order.cuh"

// Does the edge that u found come before the one that v found?
template <typename I, typename B>
__device__ bool edge_before(I u, I v, const I* at, const I* indices, const B* bits, const Order& order)
{
    I k = load_relaxed(&at[u]), j = load_relaxed(&at[v]);
    Code a = code_of(order, bits[k]), b = code_of(order, bits[j]);
    if (a != b) return a < b;
    I x = indices[k], y = indices[j];
    I low_u = u < x ? u : x, low_v = v < y ? v : y;
    return low_u == low_v ? (u < x ? x : u) < (v < y ? y : v) : low_u < low_v;
}

template <typename I, typename B>
__global__ void find_edges(I n, const I* __restrict__ indptr, const I* __restrict__ indices,
                           const B* __restrict__ bits, const unsigned long long* order_words,
                           const I* __restrict__ parent, const int* __restrict__ star, I* at, I* chosen)
{
    Order order(order_words);
    long long row = global_thread() / WARP;
    if (row >= n || star[row] == 0) return;
    I u = (I)row, mine = parent[u], found = -1;
    Code best = ~Code(0);
    for (long long k = (long long)indptr[u] + lane(); k < indptr[u + 1]; k += WARP) {
        Code code = code_of(order, bits[k]);
        if ((found < 0 || code < best) && parent[indices[k]] != mine) {
            best = code;
            found = (I)k;
        }
    }
    __syncwarp();
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        Code code = __shfl_xor_sync(ALL, best, step);
        I k = __shfl_xor_sync(ALL, found, step);
        if (k >= 0 && (found < 0 || code < best || (code == best && k < found))) {
            best = code;
            found = k;
        }
    }
    if (lane() != 0 || found < 0) return;
    store_relaxed(&at[u], found);
    fence();
    I seen = load_relaxed(&chosen[mine]);
    fence();
    while (seen < 0 || edge_before(u, seen, at, indices, bits, order)) {
        I before = compare_and_swap(&chosen[mine], seen, u);
        fence();
        if (before == seen) return;
        seen = before;
    }
}

// One thread per vertex.
template <typename I>
__global__ void hook_stars(I n, const I* indices, const I* parent, const int* star, const I* at, const I* chosen,
                           I* above, int* changed)
{
    long long v = global_thread();
    if (v >= n) return;
    bool hooks = parent[v] == v && star[v] != 0 && chosen[v] >= 0;
    above[v] = hooks ? parent[indices[at[chosen[v]]]] : parent[v];
    if (hooks && load_relaxed(changed) == 0) store_relaxed(changed, 1);
}

// One thread per vertex.  kept[r]: r stays a root.
template <typename I>
__global__ void keep_roots(I n, const I* indptr, const I* indices, const I* parent, const int* star, const I* at,
                           const I* chosen, const I* above, bool* kept, Word* marks)
{
    long long r = global_thread();
    if (r >= n) return;
    kept[r] = false;
    if (parent[r] != r || star[r] == 0 || chosen[r] < 0) return;
    I other = above[r];
    if (above[other] == r && r < other) {
        kept[r] = true;
        return;
    }
    I u = chosen[r], k = at[u], v = indices[k];
    if (u > v) k = upper_entry(indptr, indices, u, v);
    if (k >= 0) set_bit(marks, k);
}

// One thread per vertex.
template <typename I>
__global__ void jump(I n, const I* above, const bool* kept, I* parent, int* star, I* chosen, int* changed)
{
    long long v = global_thread();
    if (v >= n) return;
    I up = kept[v] ? (I)v : above[v];
    I grand = kept[up] ? up : above[up];
    if (grand != parent[v] && load_relaxed(changed) == 0) store_relaxed(changed, 1);
    parent[v] = grand;
    star[v] = 1;
    chosen[v] = -1;
}

template <typename I>
__global__ void find_tall(I n, const I* parent, int* star)
{
    long long v = global_thread();
    if (v >= n) return;
    I up = parent[v], grand = parent[up];
    if (up == grand) return;
    store_relaxed(&star[v], 0);
    store_relaxed(&star[grand], 0);
}

template <typename I>
__global__ void spread_tall(I n, const I* parent, int* star)
{
    long long v = global_thread();
    if (v < n && load_relaxed(&star[parent[v]]) == 0) store_relaxed(&star[v], 0);
}
