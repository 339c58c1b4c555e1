// All proposals of the suitor matching, in one launch.  Kernels: gpu.cu and gpu_lists.cu; races: gpu.cu.
//
// The parameter `Offers` keeps who has proposed to whom.  It is a struct that answers as first_edge.cuh asks, with
//   Next propose(u, v, w)   the proposal of u to v; who has to propose next, and its next edge's weight at most
//   B* want                 the state of giants
#pragma once
#include "matchwood/first_edge.cuh"
#include "matchwood/frontier.cuh"

constexpr int BLOCK = 512;  // threads of a block
// Measured on an H200, R-MAT 22, grid 2048^2, mesh 128^3: 3 blocks 2.04, 0.97, 1.45 ms; 2 blocks 2.38,
// 1.03, 1.76; 4 blocks 2.24, 1.16, 1.51.  GIANT_ROW = 2048 instead, with 2 blocks: 2.90, 1.20, 1.80.
constexpr int RESIDENT_BLOCKS = 3;  // blocks on a multiprocessor
constexpr int GIANT_ROW = 4096;  // entries
constexpr int PENDING = 0, TAKEN = 1;  // as bits of a weight: less than, and not more than, any weight

// Who proposes next, and what its edge weighs at most: it proposes along lighter and lighter edges.
template <typename I, typename B>
struct Next {
    I u;  // NOBODY: nobody
    B most;
};

template <typename I, typename W>
__device__ __forceinline__ bool is_giant(const Rows<I, W>& rows, I u)
{
    return rows.indptr[u + 1] - rows.indptr[u] > GIANT_ROW;
}

template <typename I>
__global__ void list_giants(I n, const I* indptr, I* giants, unsigned long long* count)
{
    long long v = global_thread();
    bool wanted = v < n && indptr[v + 1] - indptr[v] > GIANT_ROW;
    append(giants, count, (I)v, wanted);
}

// WIDTH lanes per vertex.  A group goes on with its next vertex while others follow a chain of
// displacements.  starts(k): who proposes k-th, of `count`; nobody where that vertex has nothing to propose.
template <int WIDTH, bool FAR, typename I, typename W, typename Offers, typename Starts>
__device__ __forceinline__ void propose_by_lanes(long long count, const Rows<I, W>& rows, const Offers& offers,
                                                 const Starts& starts)
{
    using B = WeightBits<W>;
    long long groups = all_threads() / WIDTH, place = global_thread() / WIDTH;
    Next<I, B> next{NOBODY, 0};
    while (true) {
        for (; next.u < 0 && place < count; place += groups) next = starts(place);
        I u = next.u;
        if (!__any_sync(ALL, u >= 0)) return;
        I begin = u >= 0 ? rows.indptr[u] : 0, end = u >= 0 ? rows.indptr[u + 1] : 0;
        Edge<I, B> best = first_by_lanes<WIDTH, FAR>(rows, u, begin, end, offers, next.most);
        next = {NOBODY, 0};
        if (lane() % WIDTH == 0 && best.w != 0) {
            next = offers.propose(u, best.v, best.w);
            if (next.u >= 0 && next.u != u && is_giant(rows, next.u)) {
                fence();
                store_relaxed(&offers.want[next.u], B(PENDING));
                next.u = NOBODY;
            }
        }
        int leader = lane() / WIDTH * WIDTH;
        next = {__shfl_sync(ALL, next.u, leader), __shfl_sync(ALL, next.most, leader)};
    }
}

// Takes a pending giant for this block; NOBODY when there is none.  All threads of the block call.
template <typename I, typename B>
__device__ __forceinline__ I claim_giant(const I* giants, long long count, B* want)
{
    __shared__ int place;
    __shared__ I claimed;
    while (true) {
        if (threadIdx.x == 0) place = -1;
        __syncthreads();
        long long shift = count * blockIdx.x / gridDim.x;  // blocks begin at different giants
        for (long long k = threadIdx.x; k < count && *(volatile int*)&place < 0; k += blockDim.x) {
            long long at = (k + shift) % count;
            if (load_relaxed(&want[giants[at]]) == B(PENDING)) atomicCAS(&place, -1, (int)at);
        }
        __syncthreads();
        if (place < 0) return NOBODY;
        if (threadIdx.x == 0) {
            I g = giants[place];
            claimed = compare_and_swap(&want[g], B(PENDING), B(TAKEN)) == B(PENDING) ? g : I(NOBODY);
            fence();
        }
        __syncthreads();
        I mine = claimed;
        if (mine >= 0) return mine;
    }
}

// Pending giants propose, a block to each.  All threads of the block call, when its lanes have done all other vertices.
template <bool FAR, typename I, typename W, typename Offers>
__device__ __forceinline__ void propose_by_blocks(const Rows<I, W>& rows, const Offers& offers, const I* giants,
                                                  long long count)
{
    __shared__ I following;
    if (count == 0) return;
    fence();
    __syncthreads();
    I u = NOBODY;
    while (true) {
        if (u < 0) u = claim_giant(giants, count, offers.want);
        if (u < 0) return;
        Edge<I, WeightBits<W>> best = first_by_block<FAR>(rows, u, offers);
        if (threadIdx.x == 0) {
            following = best.w != 0 ? offers.propose(u, best.v, best.w).u : I(NOBODY);
            fence();
        }
        __syncthreads();
        u = following;
        __syncthreads();
    }
}
