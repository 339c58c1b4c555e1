// A frontier of vertices as pieces of their rows, [begin, end) in `indices`, each at most PIECE
// entries long: so long rows are shared among warps, and the warp of a piece need not read
// where the row is.  The vertex itself is not kept.
#pragma once
#include "matchwood/edges.cuh"

constexpr int PIECE = 256;  // entries; 8 for each lane of a warp

template <typename I>
struct alignas(2 * sizeof(I)) Piece {
    I begin, end;
};

template <typename I>
__device__ __forceinline__ I pieces_of(I length)
{
    return (length + PIECE - 1) / PIECE;
}

// As append, where some rows are longer than a piece: their pieces are written by all lanes.
template <int COUNT, typename I, typename Queue>
__device__ void append_long(const Piece<I> (&row)[COUNT], I leaf, Queue& queue)
{
    int pieces = 0;
    unsigned long long entries = 0;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        I length = row[k].end - row[k].begin;
        if (length > leaf) {
            pieces += (int)pieces_of(length);
            entries += length;
        }
    }
    int before = warp_exclusive_sum(pieces);
    entries = warp_reduce(entries, Plus());
    unsigned long long slot = 0;
    if (lane() == WARP - 1) slot = queue.reserve(before + pieces, entries);
    slot = __shfl_sync(ALL, slot, WARP - 1) + before;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        I length = row[k].end - row[k].begin;
        if (length > leaf && length <= PIECE) queue.put(slot++, row[k]);
        unsigned cut = __ballot_sync(ALL, length > leaf && length > PIECE);
        for (; cut != 0; cut &= cut - 1) {
            int owner = __ffs(cut) - 1;
            I begin = __shfl_sync(ALL, row[k].begin, owner), end = __shfl_sync(ALL, row[k].end, owner);
            unsigned long long start = __shfl_sync(ALL, slot, owner);
            I count = pieces_of(I(end - begin));
            for (I i = lane(); i < count; i += WARP) {
                I from = begin + i * PIECE;
                queue.put(start + i, {from, end - from > PIECE ? from + PIECE : end});
            }
            if (lane() == owner) slot += count;
        }
    }
}

// Append rows to a queue, cut into pieces; those no longer than `leaf` are left out.
// `queue.reserve(pieces, entries)` is called by one lane and gives the first slot,
// `queue.put(slot, piece)` by any.  All lanes of the warp call.
template <int COUNT, typename I, typename Queue>
__device__ __forceinline__ void append(const Piece<I> (&row)[COUNT], I leaf, Queue& queue)
{
    unsigned votes[COUNT];
    unsigned entries = 0, any = 0;
    bool cut = false;
    int total = 0;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        I length = row[k].end - row[k].begin;
        votes[k] = __ballot_sync(ALL, length > leaf);
        any |= votes[k];
        total += __popc(votes[k]);
        if (length > leaf) entries += (unsigned)length;
        cut |= length > PIECE;
    }
    if (any == 0) return;
    if (__any_sync(ALL, cut)) {
        append_long(row, leaf, queue);
        return;
    }
    entries = __reduce_add_sync(ALL, entries);
    unsigned long long slot = 0;
    if (lane() == 0) slot = queue.reserve(total, entries);
    slot = __shfl_sync(ALL, slot, 0);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        if (votes[k] >> lane() & 1) queue.put(slot + __popc(votes[k] & lanes_below()), row[k]);
        slot += __popc(votes[k]);
    }
}

// `size` pieces, got by `fetch(i)`, shared among `warps` warps, up to WARP / WIDTH at a time:
// `each(piece)` is called by all lanes; WIDTH neighbouring lanes have the same piece, or none.
template <int WIDTH, typename Fetch, typename Each>
__device__ __forceinline__ void for_pieces(unsigned long long size, Fetch fetch, int warp_, int warps, Each each)
{
    unsigned long long even = (size + warps - 1) / warps;
    int chunk = even < WARP / WIDTH ? (int)even : WARP / WIDTH, mine = lane() / WIDTH;
    for (unsigned long long at = (unsigned long long)warp_ * chunk; at < size;
         at += (unsigned long long)warps * chunk) {
        decltype(fetch(at)) piece = {0, 0};
        if (mine < chunk && at + mine < size) piece = fetch(at + mine);
        each(piece);
    }
}

// The entries of a warp's pieces, one for each lane, as one list.  Pieces are short.
template <typename I>
__device__ __forceinline__ WarpRows<I, int> entries_of(Piece<I> piece)
{
    return WarpRows<I, int>(piece.begin, piece.end);
}
