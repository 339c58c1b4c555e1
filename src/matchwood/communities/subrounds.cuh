// The vertices of a sub-round, dealt out to lanes and blocks by the length of their rows.
//
// Host side: gpu_subrounds.py, which sorts the vertices of a round by sub-round and class
// (matchwood/tally.cuh has the classes).  begins[p * ROW_CLASSES + class] says where they begin in
// `order`; vertices without neighbours are not in it.
#pragma once
#include "matchwood/tally.cuh"

// Tables in global memory for rows that are too long for shared memory: one for each of the first
// `blocks` blocks.
template <typename I>
struct Hubs {
    I* key;
    long long* weight;
    long long slots;  // of a table
    int blocks;
};

// each(open, v) for groups of WIDTH lanes; all lanes of a warp call at the same time.
template <int WIDTH, typename I, typename Each>
__device__ __forceinline__ void for_groups(const I* order, I begin, I end, Each each)
{
    constexpr int GROUPS = WARP / WIDTH;  // of a warp
    long long first = global_thread() / WARP * GROUPS, step = all_threads() / WARP * GROUPS;
    for (long long at = first; at < end - begin; at += step) {
        long long i = at + lane() / WIDTH;
        bool open = i < end - begin;
        each(open, open ? order[begin + i] : I(0));
    }
}

// each(v) by whole blocks, the first `blocks` of the grid.
template <typename I, typename Each>
__device__ __forceinline__ void for_blocks(const I* order, I begin, I end, int blocks, Each each)
{
    if ((int)blockIdx.x >= blocks) return;
    for (long long i = begin + (long long)blockIdx.x; i < end; i += blocks) each(order[i]);
}

// Every open vertex of a sub-round looks at its row; hubs first, they take longest.  All threads call.
template <typename I, typename Rule>
__device__ __forceinline__ void look_around(const LabelRows<I>& rows, const I* order, const I* begins, const Hubs<I>& hubs,
                                            Rule& rule)
{
    __shared__ I keys[SHARED_SLOTS];
    __shared__ long long weights[SHARED_SLOTS];
    if (hubs.blocks > 0) {
        long long mine = (long long)blockIdx.x * hubs.slots;
        for_blocks(order, begins[5], begins[6], hubs.blocks, [&](I v) {
            if (rule.open(v)) tally_block(rows, v, Table<I>{hubs.key + mine, hubs.weight + mine}, rule);
        });
    }
    for_blocks(order, begins[4], begins[5], (int)gridDim.x, [&](I v) {
        if (rule.open(v)) tally_block(rows, v, Table<I>{keys, weights}, rule);
    });
    for_groups<32>(order, begins[3], begins[4],
                   [&](bool here, I v) { tally_lanes<32>(rows, here && rule.open(v), v, rule); });
    for_groups<16>(order, begins[2], begins[3],
                   [&](bool here, I v) { tally_lanes<16>(rows, here && rule.open(v), v, rule); });
    for_groups<8>(order, begins[1], begins[2],
                  [&](bool here, I v) { tally_lanes<8>(rows, here && rule.open(v), v, rule); });
    for_groups<4>(order, begins[0], begins[1],
                  [&](bool here, I v) { tally_lanes<4>(rows, here && rule.open(v), v, rule); });
}

// each(v, me, us) for every vertex of a sub-round: it is number `me` of `us` threads that have v, lanes
// of a warp (us <= 32) or a block.  All threads of the block call; those without a vertex have v = -1.
template <typename I, typename Each>
__device__ __forceinline__ void for_vertices(const I* order, const I* begins, Each each)
{
    for_blocks(order, begins[4], begins[6], (int)gridDim.x, [&](I v) {
        each(v, (int)threadIdx.x, (int)blockDim.x);
        __syncthreads();
    });
    for_groups<16>(order, begins[0], begins[4],
                   [&](bool here, I v) { each(here ? v : I(-1), lane() & 15, 16); });
}

// What the threads that share a vertex must pass before one of them writes what all have read.
__device__ __forceinline__ void meet(int us)
{
    if (us > WARP)
        __syncthreads();
    else
        __syncwarp();
}
