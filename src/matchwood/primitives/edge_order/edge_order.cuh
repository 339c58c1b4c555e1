// Which of two weighted edges comes first: the heavier; of equal weights the one with the larger
// hash; of equal hashes the one with the smaller ends.  The rule: primitives/edge_order/__init__.py.
//
// Weights are positive and compared by their bits: positive floats order like unsigned integers,
// and no subnormal number is flushed.
#pragma once
#include "matchwood/exact.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"

// The hash that decides between edges of equal weight.
template <typename I>
__device__ __forceinline__ unsigned long long tie_hash(I u, I v, unsigned long long seed)
{
    return u < v ? hash2(u, v, seed) : hash2(v, u, seed);
}

// The edge {u1, v1} comes before {u2, v2}, both being of the same weight.
template <typename I>
__device__ __forceinline__ bool prefers_tied(I u1, I v1, I u2, I v2, unsigned long long seed, bool by_hash)
{
    if (by_hash) {
        unsigned long long h1 = tie_hash(u1, v1, seed), h2 = tie_hash(u2, v2, seed);
        if (h1 != h2) return h1 > h2;
    }
    I low1 = u1 < v1 ? u1 : v1, low2 = u2 < v2 ? u2 : v2;
    if (low1 != low2) return low1 < low2;
    return (u1 < v1 ? v1 : u1) < (u2 < v2 ? v2 : u2);
}

// The edge {u1, v1} of weight w1 comes before the edge {u2, v2} of weight w2.
template <typename I, typename W>
__device__ __forceinline__ bool prefers(W w1, I u1, I v1, W w2, I u2, I v2, unsigned long long seed, bool by_hash)
{
    unsigned long long b1 = value_bits(w1), b2 = value_bits(w2);
    if (b1 != b2) return b1 > b2;
    return prefers_tied(u1, v1, u2, v2, seed, by_hash);
}

// The first edges of one vertex, in the registers of a warp: lane k holds the k-th, for k < held.
template <typename I, typename W>
struct WarpEdges {
    W w;  // this lane's edge
    I v;
    int held, room;  // edges in it; edges that it may have, at most WARP
    bool left_out;   // some edge did not get in

    // An edge with fewer bits than these does not get in.  All lanes of the warp call.
    __device__ __forceinline__ unsigned long long weakest() const
    {
        unsigned long long bits = __shfl_sync(ALL, value_bits(w), (room + WARP - 1) % WARP);
        return held < room ? 0 : bits;
    }

    // Fill an empty list with the edges {u, y} of weight x of all lanes where `there`.  All lanes of the warp call.
    // A bitonic sort: 32 edges in 15 steps.
    __device__ __forceinline__ void fill(I u, W x, I y, bool there, unsigned long long seed, bool by_hash)
    {
        unsigned votes = __ballot_sync(ALL, there);
        w = there ? x : W(0);  // no edge weighs 0, so these come last
        v = y;
        int count = __popc(votes), width = votes >> 16 != 0 ? 32 : votes >> 8 != 0 ? 16 : 8;
        for (int size = 2; size <= width; size *= 2)
            for (int step = size / 2; step > 0; step /= 2) {
                W other = __shfl_xor_sync(ALL, w, step);
                I other_v = __shfl_xor_sync(ALL, v, step);
                unsigned long long mine = value_bits(w), others = value_bits(other);
                bool wants_first = ((lane() & step) == 0) == ((lane() & size) == 0), is_first = mine > others;
                if (mine == others) is_first = mine == 0 ? wants_first : prefers_tied(u, v, u, other_v, seed, by_hash);
                if (is_first != wants_first) w = other, v = other_v;
            }
        held = count < room ? count : room;
        if (count > room) left_out = true;
    }

    // Insert the edge {u, y} of weight x.  All lanes of the warp call, with the same edge.
    __device__ __forceinline__ void insert(I u, W x, I y, unsigned long long seed, bool by_hash)
    {
        bool before = lane() < held && prefers(w, u, v, x, u, y, seed, by_hash);
        int place = __popc(__ballot_sync(ALL, before));  // those before it are the first lanes
        W above = __shfl_up_sync(ALL, w, 1);
        I above_v = __shfl_up_sync(ALL, v, 1);
        if (held == room) left_out = true;
        if (place >= room) return;
        if (lane() > place) w = above, v = above_v;
        if (lane() == place) w = x, v = y;
        if (held < room) ++held;
    }
};
