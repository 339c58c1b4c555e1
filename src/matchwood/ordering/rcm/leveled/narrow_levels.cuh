// Levels of an order of Cuthill and McKee with few vertices and short rows: one block, or one cluster,
// works without the others, the frontier in shared memory, some lanes per row.  A level takes two barriers:
//   offer | count and rank children, send the counts to the other blocks | write them
//
// Owners are read after the barrier behind all offers of the level; the next offers come after the
// barrier behind those reads.  Every place of `order` has one writer.
#pragma once
#include "matchwood/levels.cuh"

// Measured: bench/ordering/rcm_gpu.py, H200.
constexpr int ROOM_BYTES = 4096;     // shared memory of one of the six lists of a block
constexpr int SOLO_LANES = 1024;     // lanes up to which one block works alone
constexpr int NARROW_LANES = 16384;  // lanes up to which one cluster works alone
constexpr int NARROW_ROW = 128;       // entries of the longest row of a narrow level
constexpr int ENTRIES_PER_LANE = 4;  // entries per lane where rows have more than 32
constexpr bool FETCH_AHEAD = true;   // fetch what the next step reads
constexpr int SPARE_ROWS = 64;       // rows that a block may have beyond twice its share

// log2 of the lanes that a row gets in a narrow level: all its entries, or a warp.
template <typename I>
__device__ __forceinline__ int lanes_log(I longest)
{
    int log = 1;
    while (log < 5 && (I(1) << log) < longest) ++log;
    return log;
}

// Rows of a block's part of the frontier, and of what it finds.
template <typename I>
struct Near {
    static constexpr int ROOM = ROOM_BYTES / sizeof(I);

    I vertex[2][ROOM], begin[2][ROOM], length[2][ROOM];
    unsigned int in_warp[2][LEVEL_BLOCK / WARP];
    unsigned int counts[2][CLUSTER], longest[2][CLUSTER];  // stored here by each of the blocks
    unsigned int mine;                                     // longest row found by this block
};

// Prefetch a word, without waiting for it.
__device__ __forceinline__ void fetch_ahead(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// The rows of a side offer their places.  Where their neighbours' rows are is needed next.
template <typename I>
__device__ __forceinline__ void offer_rows(
    const Places<I>& places, const Near<I>& near, int side, int rows, I place, int log)
{
    for (int j = threadIdx.x >> log; j < rows; j += LEVEL_BLOCK >> log) {
        I begin = near.begin[side][j], length = near.length[side][j];
        for (I e = threadIdx.x & ((1 << log) - 1); e < length; e += 1 << log) {
            I w = places.indices[begin + e];
            atomicMin(&places.owner[w], I(place + j));
            if (FETCH_AHEAD) fetch_ahead(&places.indptr[w]);
        }
    }
}

// The children of the rows of a side, in their order, go to the other side, or to `target` if there
// is one.  Returns how many there are.  COUNT entries per lane.
template <int COUNT, typename I>
__device__ __forceinline__ int place_rows(
    const Places<I>& places, Near<I>& near, int side, int rows, I place, int log, I* target)
{
    int total = 0, turn = 0, group = lane() >> log << log;
    unsigned lower = (1u << group) - 1, inside = (log == 5 ? ALL : (1u << (1 << log)) - 1) << group;
    I most = 0;
    for (int from = 0; from < rows; from += LEVEL_BLOCK >> log, turn = 1 - turn) {
        int j = from + (threadIdx.x >> log), e = lane() - group;
        I w[COUNT], begin[COUNT], degree[COUNT], owner[COUNT];
        bool mine[COUNT];
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            mine[k] = j < rows && e + k * WARP < near.length[side][j];
            if (mine[k]) w[k] = places.indices[near.begin[side][j] + e + k * WARP];
        }
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            if (mine[k]) {
                owner[k] = load_relaxed(&places.owner[w[k]]);
                begin[k] = places.indptr[w[k]];
                degree[k] = places.indptr[w[k] + 1];
            }
        }
        int before = 0, all = 0, siblings = 0;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            mine[k] = mine[k] && owner[k] == place + j;
            degree[k] = mine[k] ? degree[k] - begin[k] : places.n;  // more than any
            unsigned votes = __ballot_sync(ALL, mine[k]);
            before += __popc(votes & lower);
            siblings += __popc(votes & inside);
            all += __popc(votes);
        }
        int rank[COUNT] = {};
        if (__any_sync(ALL, siblings > 1)) {
#pragma unroll
            for (int other = 0; other < COUNT; ++other) {
                for (int s = 0; s < 1 << log; ++s) {
                    I its = __shfl_sync(ALL, degree[other], group + s);
#pragma unroll
                    for (int k = 0; k < COUNT; ++k)
                        rank[k] += its < degree[k] ||
                                   (its == degree[k] && its != places.n && other * WARP + s < k * WARP + e);
                }
            }
        }
        if (lane() == 0) near.in_warp[turn][warp()] = all;
        __syncthreads();
        int part = lane() < LEVEL_BLOCK / WARP ? near.in_warp[turn][lane()] : 0;
        int start = warp_exclusive_sum(part), sum = __shfl_sync(ALL, start + part, WARP - 1);
        start = total + __shfl_sync(ALL, start, warp()) + before;
        total += sum;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            if (!mine[k]) continue;
            int at = start + rank[k];
            if (FETCH_AHEAD) fetch_ahead(&places.indices[begin[k]]);
            if (target != nullptr) {
                target[at] = w[k];
            } else if (at < Near<I>::ROOM) {
                near.vertex[1 - side][at] = w[k];
                near.begin[1 - side][at] = begin[k];
                near.length[1 - side][at] = degree[k];
            }
            most = degree[k] > most ? degree[k] : most;
        }
    }
    unsigned int longest = __reduce_max_sync(ALL, (unsigned int)most);
    if (lane() == 0 && longest > 0) atomicMax(&near.mine, longest);
    __syncthreads();
    return total;
}

// Narrow levels by one cluster (TOGETHER) or one block, until the frontier grows wide or ends, all
// `total` vertices are placed, two levels have `limit` vertices, or `stop` comes.  A block goes on with
// the children that it found, unless some found far more than others.
template <bool TOGETHER, typename I>
__device__ __forceinline__ void go_narrow(
    const Places<I>& places, Near<I>& near, Front<I>& front, I total, I limit, I stop)
{
    constexpr int BLOCKS = TOGETHER ? CLUSTER : 1;
    constexpr I LIMIT = TOGETHER ? NARROW_LANES : SOLO_LANES;
    auto barrier = [] {
        if (TOGETHER)
            cluster_barrier();
        else
            __syncthreads();
    };
    int me = TOGETHER ? cluster_rank() : 0, side = 0, turn = 0, rows = 0;
    I place = 0;
    bool known = false;  // the block's rows lie in shared memory
    if (threadIdx.x == 0) near.mine = 0;
    __syncthreads();
    while (true) {
        if (!known) {
            I share = (front.size() + BLOCKS - 1) / BLOCKS;
            I from = share * me < front.size() ? share * me : front.size();
            rows = (int)(front.size() - from < share ? front.size() - from : share);
            place = front.head + from;
            for (int j = threadIdx.x; j < rows; j += LEVEL_BLOCK) {
                I v = load_relaxed(&places.order[place + j]);
                near.begin[side][j] = places.indptr[v];
                near.length[side][j] = places.degree(v);
            }
            __syncthreads();
        }
        int log = lanes_log(front.longest);
        bool lone = front.longest <= WARP;
        offer_rows(places, near, side, rows, place, log);
        barrier();
        int count = lone ? place_rows<1>(places, near, side, rows, place, log, (I*)nullptr)
                         : place_rows<ENTRIES_PER_LANE>(places, near, side, rows, place, log, (I*)nullptr);
        if (TOGETHER) {
            if (threadIdx.x < CLUSTER) {
                store_at(&near.counts[turn][me], threadIdx.x, (unsigned int)count);
                store_at(&near.longest[turn][me], threadIdx.x, near.mine);
            }
        } else if (threadIdx.x == 0) {
            near.counts[turn][0] = count;
            near.longest[turn][0] = near.mine;
        }
        barrier();
        I before = 0, sum = 0, most = 0, longest = 0;
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b) {
            I its = near.counts[turn][b], row = near.longest[turn][b];
            if (b < me) before += its;
            sum += its;
            most = its > most ? its : most;
            longest = row > longest ? row : longest;
        }
        turn = 1 - turn;
        if (threadIdx.x == 0) near.mine = 0;  // read before the barrier, used after the next
        I* target = places.order + front.tail + before;
        if (most <= Near<I>::ROOM) {
            for (int i = threadIdx.x; i < count; i += LEVEL_BLOCK) store_relaxed(&target[i], near.vertex[1 - side][i]);
        } else if (lone) {
            place_rows<1>(places, near, side, rows, place, log, target);
        } else {
            place_rows<ENTRIES_PER_LANE>(places, near, side, rows, place, log, target);
        }
        front.advance(sum, longest);
        if (sum == 0 || front.tail >= total || front.width >= limit || front.depth >= stop || longest > NARROW_ROW ||
            sum > BLOCKS * Near<I>::ROOM)
            return;
        I lanes = sum << lanes_log(longest);
        if (lanes > 2 * LIMIT || (TOGETHER && lanes < SOLO_LANES / 4)) return;
        known = most <= Near<I>::ROOM && most <= 2 * sum / BLOCKS + SPARE_ROWS;
        if (known) {
            place = front.head + before;
            rows = count;
            side = 1 - side;
            __syncthreads();  // mine is 0 before it is raised
        } else {
            barrier();  // order is written
            if (threadIdx.x == 0) near.mine = 0;
            __syncthreads();
        }
    }
}
