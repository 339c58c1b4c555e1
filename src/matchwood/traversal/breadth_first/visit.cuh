// From a frontier to the vertices next to it, forwards: claim them, queue their rows.
//
// level[w] goes from UNSEEN to its level once, by compare-and-swap, whose winner queues w.  Within a
// level all that reach w would write the same number, so levels do not depend on scheduling; the
// order in the queue does.
#pragma once
#include "matchwood/atomics.cuh"
#include "matchwood/pieces.cuh"
#include "matchwood/resident_barrier.cuh"

using Wide = unsigned long long;

constexpr int UNSEEN = -1;
constexpr int VISIT_BATCH = 4;  // entries whose loads a lane has in flight at once
constexpr int THIN = 4;  // lanes that share a piece, where there are more lanes than pieces

// A graph that is being searched.
template <typename I>
struct Graph {
    I n, nnz;
    const I *indptr, *indices;        // arcs from a vertex
    const I *in_indptr, *in_indices;  // arcs to a vertex, rows sorted; null: not known
    I *level, *parent;                // parent: n, unless it has been found
    Piece<I>* queue;
    unsigned int* bits;               // two bitmaps
    I leaf;                           // rows of at most this length lead nowhere new

    __device__ __forceinline__ Wide words() const { return ((Wide)n + WARP - 1) / WARP; }
    __device__ __forceinline__ Piece<I> row(I v) const { return {indptr[v], indptr[v + 1]}; }
};

// Where found pieces go: the queue in device memory, behind the frontier.
template <typename I>
struct FarQueue {
    Piece<I>* end;
    const RollCall& roll;
    Wide arcs = 0;

    __device__ __forceinline__ Wide reserve(int count, Wide entries)
    {
        arcs += entries;
        return roll.add(count);
    }
    __device__ __forceinline__ void put(Wide slot, Piece<I> piece) { end[slot] = piece; }
};

// Neighbours w (or -1) of the frontier: those unvisited get the level `next` and are appended.
// `look`: read first whether w is visited, which saves the swap.  All lanes of the warp call.
template <int COUNT, typename I, typename Queue>
__device__ __forceinline__ void visit(
    const Graph<I>& graph, const I (&w)[COUNT], I next, bool look, I leaf, Queue& queue)
{
    bool open[COUNT];
    I before[COUNT];
    Piece<I> row[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) open[k] = w[k] >= 0;
    if (look) {
#pragma unroll
        for (int k = 0; k < COUNT; ++k)
            if (open[k]) before[k] = load_relaxed(&graph.level[w[k]]);
#pragma unroll
        for (int k = 0; k < COUNT; ++k) open[k] = open[k] && before[k] == UNSEEN;
    }
    // the rows are read before it is known whether the swap succeeds: both wait at the same time
#pragma unroll
    for (int k = 0; k < COUNT; ++k)
        if (open[k]) before[k] = compare_and_swap(&graph.level[w[k]], I(UNSEEN), next);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        row[k] = {0, 0};
        if (open[k]) row[k] = graph.row(w[k]);
    }
#pragma unroll
    for (int k = 0; k < COUNT; ++k)
        if (!open[k] || before[k] != UNSEEN) row[k] = {0, 0};
    append(row, leaf, queue);
}

// The level after the frontier, whose `size` pieces `fetch(i)` gives.
template <typename I, typename Fetch, typename Queue>
__device__ __forceinline__ void expand(
    const Graph<I>& graph, Wide size, Fetch fetch, int warp_, int warps, I next, bool look, Queue& queue)
{
    auto all_entries = [&](Piece<I> piece) {
        entries_of(piece).template for_batches<VISIT_BATCH>(
            [&](I at) { return graph.indices[at]; },
            [&](const auto&, const auto& w) { visit(graph, w, next, look, graph.leaf, queue); });
    };
    if (size > (Wide)warps * (WARP / THIN)) {
        for_pieces<1>(size, fetch, warp_, warps, all_entries);
        return;
    }
    for_pieces<THIN>(size, fetch, warp_, warps, [&](Piece<I> piece) {
        if (__any_sync(ALL, piece.end - piece.begin > THIN)) {
            if (lane() % THIN != 0) piece.end = piece.begin;
            all_entries(piece);
            return;
        }
        I at = piece.begin + lane() % THIN;
        I w[1] = {at < piece.end ? graph.indices[at] : I(-1)};
        visit(graph, w, next, look, graph.leaf, queue);
    });
}
