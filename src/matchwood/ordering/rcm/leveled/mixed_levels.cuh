// Wide levels, as in wide_levels.cuh, whose vertices stay in the order of discovery: one barrier, not six.
//
// Races: owner[v] goes from none to the head of the frontier once, forwards by compare-and-swap, whose
// winner lists v, backwards by the one lane that has v.  Which vertices a level has does not depend
// on scheduling; their order within it does.
#pragma once
#include "matchwood/narrow_levels.cuh"
#include "matchwood/wide_levels.cuh"

constexpr int FINDS_BYTES = 16384;       // shared memory for what a block finds in a level
constexpr int ENTRIES_ALONE = 16;        // entries that a free vertex tries alone before its warp helps,
constexpr int ENTRIES_HELPED = 1 << 30;  // and that the warp tries: all; as for breadth-first search

// What the warps of a block have found in a level.  Places are reserved for many vertices at once: all
// atomics on the one counter wait for each other.
template <typename I>
struct Finds {
    static constexpr int WARPS = LEVEL_BLOCK / WARP;
    static constexpr int ROOM = FINDS_BYTES / (int)sizeof(I) / WARPS;

    I vertex[WARPS][ROOM];
    int count[WARPS];
    Wide longest;  // row
    Wide place;

    // All threads of the block call.
    __device__ __forceinline__ void clear()
    {
        if (lane() == 0) count[warp()] = 0;
        if (threadIdx.x == 0) longest = 0;
    }
};

// What all blocks do in such a level; every step is done by all threads of all members.
template <typename I>
struct MixedLevel {
    const Places<I>& places;
    RollCall& roll;
    const Front<I>& front;
    Finds<I>& finds;
    int warp_, warps;
    I longest = 0;

    // Entries of the rows of the frontier.  Meets.
    __device__ Wide front_arcs()
    {
        Wide arcs = 0, all;
        for (Wide at = (Wide)warp_ * WARP + lane(); at < (Wide)front.size(); at += (Wide)warps * WARP)
            arcs += places.degree(load_relaxed(&places.order[front.head + at]));
        arcs = warp_reduce(arcs, Plus());
        if (lane() == 0 && arcs > 0) atomicAdd(roll.second_sum(), arcs);
        roll.meet(&all);
        return all;
    }

    // Vertices of the next level, and the lengths of their rows.  All lanes of the warp call.
    template <int COUNT>
    __device__ __forceinline__ void list(const I (&w)[COUNT], const I (&length)[COUNT], const bool (&fresh)[COUNT])
    {
        unsigned votes[COUNT];
        int all = 0, here = finds.count[warp()];
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            votes[k] = __ballot_sync(ALL, fresh[k]);
            all += __popc(votes[k]);
        }
        if (all == 0) return;
        I* target = finds.vertex[warp()] + here;
        if (here + all > Finds<I>::ROOM) {  // these and what is here go to the queue
            Wide place = lane() == 0 ? roll.add(here + all) : 0;
            target = places.order + front.tail + __shfl_sync(ALL, place, 0);
            for (int i = lane(); i < here; i += WARP) store_relaxed(&target[i], finds.vertex[warp()][i]);
            target += here;
            all = -here;
        }
        __syncwarp();
        if (lane() == 0) finds.count[warp()] = here + all;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            if (fresh[k]) {
                target[__popc(votes[k] & lanes_below())] = w[k];
                longest = Most()(longest, length[k]);
            }
            target += __popc(votes[k]);
        }
        __syncwarp();
    }

    // Neighbours w (or -1) of the frontier.  All lanes of the warp call.
    __device__ __forceinline__ void visit(const I (&w)[LEVEL_BATCH])
    {
        I seen[LEVEL_BATCH], length[LEVEL_BATCH];
        bool fresh[LEVEL_BATCH];
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) seen[k] = w[k] >= 0 ? load_relaxed(&places.owner[w[k]]) : I(-1);
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) fresh[k] = seen[k] == places.none();
        // lengths are read before it is known whether the swap succeeds: both wait at the same time
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k)
            if (fresh[k]) seen[k] = compare_and_swap(&places.owner[w[k]], places.none(), front.head);
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) length[k] = fresh[k] ? places.degree(w[k]) : I(0);
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) fresh[k] = seen[k] == places.none();
        list(w, length, fresh);
    }

    // All rows of the frontier are short: some lanes per row, a few rows at once.
    __device__ __forceinline__ void go_evenly()
    {
        int log = lanes_log(front.longest), rows = WARP >> log;
        Wide size = front.size(), turns = (size + (Wide)warps * rows - 1) / ((Wide)warps * rows);
        int count = turns < LEVEL_BATCH ? (int)turns : LEVEL_BATCH;
        for (Wide at = (Wide)warp_ * rows * count; at < size; at += (Wide)warps * rows * count) {
            I w[LEVEL_BATCH], begin[LEVEL_BATCH], end[LEVEL_BATCH];
#pragma unroll
            for (int k = 0; k < LEVEL_BATCH; ++k) {
                Wide i = at + k * rows + (lane() >> log);
                begin[k] = -1;
                if (k < count && i < size) begin[k] = load_relaxed(&places.order[front.head + i]);
            }
#pragma unroll
            for (int k = 0; k < LEVEL_BATCH; ++k) {
                end[k] = begin[k] >= 0 ? places.indptr[begin[k] + 1] : I(0);
                begin[k] = begin[k] >= 0 ? places.indptr[begin[k]] : I(0);
            }
#pragma unroll
            for (int k = 0; k < LEVEL_BATCH; ++k) {
                I entry = begin[k] + (lane() & ((1 << log) - 1));
                w[k] = entry < end[k] ? places.indices[entry] : I(-1);
            }
            visit(w);
        }
    }

    // The neighbours of rows, one row for each lane.
    __device__ __forceinline__ void reach(I begin, I end)
    {
        WarpRows<I>(begin, end).template for_batches<LEVEL_BATCH>(
            [&](I at) { return places.indices[at]; }, [&](const auto&, const auto& w) { visit(w); });
    }

    // `row(i, begin, end)` gives the i-th of so many rows.
    template <typename Row>
    __device__ __forceinline__ void reach_all(Wide size, Row row)
    {
        Wide even = (size + warps - 1) / warps;
        int chunk = even < WARP ? (int)even : WARP;
        for (Wide at = (Wide)warp_ * chunk; at < size; at += (Wide)warps * chunk) {
            I begin = 0, end = 0;
            if (lane() < chunk && at + lane() < size) row(at + lane(), begin, end);
            reach(begin, end);
        }
    }

    // From the frontier; `piece` lists parts of its long rows.
    __device__ void go_forwards(const I* piece, Wide pieces)
    {
        reach_all(front.size(), [&](Wide i, I& begin, I& end) {
            I v = load_relaxed(&places.order[front.head + i]);
            begin = places.indptr[v];
            end = places.indptr[v + 1];
            if (end - begin > LONG_ROW) end = begin;
        });
        reach_all(pieces, [&](Wide i, I& begin, I& end) {
            I v = load_relaxed(&places.order[piece[2 * i]]);
            begin = places.indptr[v] + piece[2 * i + 1] * LONG_ROW;
            end = places.indptr[v + 1] - begin > LONG_ROW ? begin + LONG_ROW : places.indptr[v + 1];
        });
    }

    // Free vertices look for a neighbour in the frontier, and stop at the first.  Of a free vertex all
    // neighbours that are not free are in the frontier: `bits` tells, which the L2 cache holds where
    // it does not hold the owners.  Meets.
    __device__ void go_backwards(unsigned int* bits)
    {
        for (Wide at = (Wide)warp_ * WARP * READS; at < (Wide)places.n; at += (Wide)warps * WARP * READS) {
            I owner[READS];
#pragma unroll
            for (int k = 0; k < READS; ++k) {
                Wide v = at + k * WARP + lane();
                owner[k] = v < (Wide)places.n ? load_relaxed(&places.owner[v]) : places.none();
            }
#pragma unroll
            for (int k = 0; k < READS; ++k) {
                unsigned votes = __ballot_sync(ALL, owner[k] < front.head);
                if (lane() == 0 && at + k * WARP < (Wide)places.n) store_relaxed(&bits[at / WARP + k], votes);
            }
        }
        roll.meet();
        auto known = [&](I u) { return (load_relaxed(&bits[u / WARP]) >> (u % WARP) & 1) != 0; };
        // of two vertices the first entries at once, which find a neighbour for most
        for (Wide at = (Wide)warp_ * 2 * WARP; at < (Wide)places.n; at += (Wide)warps * 2 * WARP) {
            I v[2], begin[2], end[2], length[2], u[2][LEVEL_BATCH];
            bool fresh[2] = {false, false};
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                Wide mine = at + j * WARP + lane();
                bool open = mine < (Wide)places.n && !known((I)mine);
                v[j] = (I)mine;
                begin[j] = open ? places.indptr[mine] : I(0);
                end[j] = open ? places.indptr[mine + 1] : I(0);
                length[j] = end[j] - begin[j];
            }
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int k = 0; k < LEVEL_BATCH; ++k)
                    u[j][k] = k < length[j] ? places.indices[begin[j] + k] : I(-1);
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int k = 0; k < LEVEL_BATCH; ++k) fresh[j] |= u[j][k] >= 0 && known(u[j][k]);
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                I from = fresh[j] || length[j] <= LEVEL_BATCH ? end[j] : begin[j] + LEVEL_BATCH;
                I up = first_in_row<ENTRIES_ALONE, ENTRIES_HELPED>(
                    places.indices, from, end[j], v[j], [&](I w, I) { return known(w); });
                fresh[j] = fresh[j] || up >= 0;
                if (fresh[j]) store_relaxed(&places.owner[v[j]], front.head);
            }
            list(v, length, fresh);
        }
    }

    // Write down what the block has found, and meet.  Returns how many all have found, and the
    // longest of their rows.
    __device__ Wide deliver(Wide* most)
    {
        longest = warp_reduce(longest, Most());
        if (lane() == 0 && longest > 0) atomicMax(&finds.longest, (Wide)longest);
        __syncthreads();
        int part = lane() < Finds<I>::WARPS ? finds.count[lane()] : 0, before = warp_exclusive_sum(part);
        int all = __shfl_sync(ALL, before + part, WARP - 1), count = __shfl_sync(ALL, part, warp());
        if (threadIdx.x == 0 && finds.longest > 0) {
            finds.place = roll.add(all);
            raise_to(roll.second_sum(), finds.longest);
        }
        __syncthreads();
        I* target = places.order + front.tail + finds.place + __shfl_sync(ALL, before, warp());
        for (int i = lane(); i < count; i += WARP) store_relaxed(&target[i], finds.vertex[warp()][i]);
        finds.clear();
        return roll.meet(most);
    }
};
