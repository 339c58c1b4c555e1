// What one unit would exchange: its arms, paths and cycles.  The definition: __init__.py; bounds: cpu.py.
//
// A group of threads works on a unit, a warp or a block; all of its threads call with the same vertex.
#pragma once
#include "matchwood/atomics.cuh"
#include "matchwood/exact.cuh"
#include "matchwood/first_edge.cuh"
#include "matchwood/sorted_row.cuh"
#include "matchwood/threads.cuh"

constexpr long long ANYTHING = 1ll << 61;  // more than two weights; two of these fit into 64 bits
constexpr long long LEAST_GAIN = 3;        // units of the last bit, see __init__.py

// The gain of an arm or a cycle, and where it leads to.
template <typename I>
struct Choice {
    long long value;
    I x;  // NOBODY: none
};

// Whether one of two arms of u is better.
template <typename I>
struct FirstArm {
    I u;
    Ties ties;
    __device__ __forceinline__ bool operator()(Choice<I> a, Choice<I> b) const
    {
        if (a.value != b.value) return a.value > b.value;
        return a.x != b.x && a.x >= 0 && (b.x < 0 || tied_first(u, a.x, u, b.x, ties));
    }
};

// Whether one of two cycles is better; of equal gains the smaller x is.
struct FirstCycle {
    template <typename I>
    __device__ __forceinline__ bool operator()(Choice<I> a, Choice<I> b) const
    {
        if (a.value != b.value) return a.value > b.value;
        return a.x >= 0 && b.x >= 0 && a.x < b.x;
    }
};

struct WarpGroup {
    __device__ __forceinline__ static int rank() { return lane(); }
    __device__ __forceinline__ static int size() { return WARP; }
    __device__ __forceinline__ static long long number() { return global_thread() / WARP; }
    __device__ __forceinline__ static long long all() { return all_threads() / WARP; }

    // The best of the values that the threads hold, returned to all of them.
    template <typename I, typename Before>
    __device__ __forceinline__ static Choice<I> first(Choice<I> mine, Before before)
    {
#pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2) {
            Choice<I> other{__shfl_xor_sync(ALL, mine.value, step), __shfl_xor_sync(ALL, mine.x, step)};
            if (before(other, mine)) mine = other;
        }
        return mine;
    }
    __device__ __forceinline__ static long long most(long long mine) { return warp_reduce(mine, Most()); }
};

struct BlockGroup {
    __device__ __forceinline__ static int rank() { return threadIdx.x; }
    __device__ __forceinline__ static int size() { return blockDim.x; }
    __device__ __forceinline__ static long long number() { return blockIdx.x; }
    __device__ __forceinline__ static long long all() { return gridDim.x; }

    template <typename I, typename Before>
    __device__ __forceinline__ static Choice<I> first(Choice<I> mine, Before before)
    {
        __shared__ long long values[WARP];
        __shared__ I ends[WARP];
        mine = WarpGroup::first(mine, before);
        if (lane() == 0) {
            values[warp()] = mine.value;
            ends[warp()] = mine.x;
        }
        __syncthreads();
        int from = lane() < (int)(blockDim.x / WARP) ? lane() : 0;
        mine = WarpGroup::first(Choice<I>{values[from], ends[from]}, before);
        __syncthreads();
        return mine;
    }
    __device__ __forceinline__ static long long most(long long mine)
    {
        return first(Choice<int>{mine, NOBODY}, FirstCycle()).value;
    }
};

template <typename I, typename W>
struct Exchanges {
    const I *indptr, *indices;
    const W* data;
    Ties ties;
    double first_factor, second_factor;  // see `two_factors`
    const I* mate;
    const long long* price;  // integer weight of the edge at v, 0 for free vertices
    long long* arm;          // the most that the best arm of v gains
    long long* heaviest;     // the heaviest weight in the row, or more
    I* target;               // where the arm led to when v was scanned
    I* stale;                // 1: arm may have risen since

    __device__ __forceinline__ long long cut(W w) const { return (long long)(widened(w) * first_factor * second_factor); }
    __device__ __forceinline__ I degree(I v) const { return indptr[v + 1] - indptr[v]; }
    __device__ __forceinline__ I unit(I v) const { return mate[v] >= 0 && mate[v] < v ? mate[v] : v; }

    // Where v is in the row of u, or the end of that row where it is not.
    __device__ __forceinline__ I place(I u, I v) const
    {
        I end = indptr[u + 1], k = first_not_below(indices, indptr[u], end, v);
        return k < end && indices[k] == v ? k : end;
    }

    // The weight of {u, v}; 0 where the row lacks it, if a matrix is wrongly declared symmetric.
    __device__ __forceinline__ W weight(I u, I v) const
    {
        I row = degree(v) < degree(u) ? v : u, k = place(row, row == u ? v : u);
        return k < indptr[row + 1] ? data[k] : W(0);
    }

    // The best arm of u that leads to neither of two vertices; *most is the heaviest weight.
    template <typename Group>
    __device__ Choice<I> scan(Group, I u, I avoided, I also, long long* most) const
    {
        Choice<I> best{0, NOBODY};
        long long top = 0;
        FirstArm<I> before{u, ties};
        for (long long k = (long long)indptr[u] + Group::rank(); k < indptr[u + 1]; k += Group::size()) {
            I x = indices[k];
            long long w = cut(data[k]), value = w - price[x];
            top = w > top ? w : top;
            if (value <= 0 || value < best.value || x == avoided || x == also) continue;
            if (before(Choice<I>{value, x}, best)) best = {value, x};
        }
        *most = Group::most(top);
        return Group::first(best, before);
    }

    template <typename Group>
    __device__ __forceinline__ Choice<I> rescan(Group group, I u) const
    {
        long long most;
        Choice<I> best = scan(group, u, I(NOBODY), I(NOBODY), &most);
        if (Group::rank() == 0) {  // others may read the bounds meanwhile: the old ones hold, too
            store_relaxed(&arm[u], best.value);
            store_relaxed(&target[u], best.x);
            store_relaxed(&heaviest[u], most);
            store_relaxed(&stale[u], I(0));
        }
        return best;
    }

    // The best arm of u, searched again where it has changed.
    template <typename Group>
    __device__ __forceinline__ Choice<I> fresh_arm(Group group, I u) const
    {
        Choice<I> known{load_relaxed(&arm[u]), load_relaxed(&target[u])};
        bool stays = load_relaxed(&stale[u]) == 0;
        if (stays && known.value > 0)
            stays = known.x != mate[u] && cut(weight(u, known.x)) - price[known.x] == known.value;
        group_wait(group);  // all have read what the leader may write
        if (!stays) return rescan(group, u);
        return known.value > 0 ? known : Choice<I>{0, NOBODY};
    }

    __device__ __forceinline__ static void group_wait(WarpGroup) { __syncwarp(); }
    __device__ __forceinline__ static void group_wait(BlockGroup) { __syncthreads(); }

    __device__ __forceinline__ bool path_may_gain(I u) const
    {
        return load_relaxed(&arm[u]) + load_relaxed(&arm[mate[u]]) > price[u];
    }

    __device__ __forceinline__ bool cycle_may_gain(I u, long long least) const
    {
        I v = mate[u];
        long long a = load_relaxed(&arm[u]), b = load_relaxed(&arm[v]);
        if (a + b == 0) return false;
        long long at_u = a + load_relaxed(&heaviest[v]), at_v = b + load_relaxed(&heaviest[u]);
        return (at_u < at_v ? at_u : at_v) > price[u] + least;
    }

    // The best cycle that gains more than `least`, and the x at u.
    template <typename Group>
    __device__ Choice<I> cycle(Group, I u, long long least) const
    {
        I v = mate[u], a = u, b = v;
        if (degree(v) < degree(u)) a = v, b = u;
        long long given_up = price[u], most = load_relaxed(&heaviest[b]);
        Choice<I> best{least, NOBODY};
        FirstCycle before;
        for (long long k = (long long)indptr[a] + Group::rank(); k < indptr[a + 1]; k += Group::size()) {
            I x = indices[k];
            long long half = cut(data[k]) - price[x] - given_up;
            if (half + most < best.value || price[x] > given_up) continue;
            I y = mate[x];
            if (y < 0 || y == a || half + load_relaxed(&heaviest[y]) < best.value) continue;
            I at = place(b, y);
            if (at == indptr[b + 1]) continue;
            Choice<I> found{half + cut(data[at]), a == u ? x : y};
            if (before(found, best)) best = found;
        }
        return Group::first(best, before);
    }

    // The best edge of the free u to a free neighbour.
    template <typename Group>
    __device__ Choice<I> edge(Group, I u) const
    {
        Choice<I> best{0, NOBODY};
        FirstArm<I> before{u, ties};
        for (long long k = (long long)indptr[u] + Group::rank(); k < indptr[u + 1]; k += Group::size()) {
            I x = indices[k];
            if (mate[x] >= 0) continue;
            Choice<I> found{cut(data[k]), x};
            if (found.value > 0 && before(found, best)) best = found;
        }
        return Group::first(best, before);
    }

    // The gain of the unit with the smaller end u, and its new mates.
    template <typename Group>
    __device__ long long exchange(Group group, I u, I& x, I& y) const
    {
        I v = mate[u];
        x = y = NOBODY;
        if (v < 0) {
            Choice<I> best = edge(group, u);
            x = best.x;
            return best.value;
        }
        long long gain = 0;
        bool by_path = path_may_gain(u);
        group_wait(group);  // all have decided before bounds change
        if (by_path) {
            Choice<I> a = fresh_arm(group, u), b = fresh_arm(group, v);
            if (a.x >= 0 && b.x >= 0 && a.value + b.value > price[u] && unit(a.x) == unit(b.x)) {
                long long unused;
                Choice<I> a2 = scan(group, u, a.x, mate[a.x], &unused);
                Choice<I> b2 = scan(group, v, b.x, mate[b.x], &unused);
                if (a.value + b2.value >= a2.value + b.value)
                    b = b2;
                else
                    a = a2;
            }
            gain = a.value + b.value - price[u];
            x = a.x;
            y = b.x;
            if (gain < 0) gain = 0;
        }
        if (x == v || y == u) {  // only where a matrix is wrongly declared symmetric
            gain = 0;
            x = y = NOBODY;
        }
        group_wait(group);
        if (cycle_may_gain(u, gain)) {
            Choice<I> best = cycle(group, u, gain);
            if (best.x >= 0) {
                x = best.x;
                y = mate[x];
                gain = best.value;
            }
        }
        return gain;
    }
};
