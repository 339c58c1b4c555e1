// Rows of very different lengths, shared out evenly: the entries of 32 rows over a warp's lanes,
// the entries of a matrix over warps.
#pragma once
#include "matchwood/threads.cuh"

// 32 rows of a warp, one for each lane, as one list of entries.
template <typename I>
struct WarpRows {
    I before;  // entries of the rows of lower lanes
    I shift;   // where this lane's row starts, less `before`
    I total;   // entries of all 32

    // All lanes of the warp call; empty rows have begin == end.
    __device__ __forceinline__ WarpRows(I begin, I end)
    {
        before = warp_exclusive_sum(I(end - begin));
        shift = begin - before;
        total = __shfl_sync(ALL, I(before + (end - begin)), WARP - 1);
    }

    // The lane whose row holds the t-th entry of the list.  All lanes of the warp call.
    __device__ __forceinline__ int owner(I t) const
    {
        int found = 0;
#pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2)
            if (__shfl_sync(ALL, before, found + step) <= t) found += step;
        return found;
    }

    __device__ __forceinline__ I entry(I t, int owner) const { return __shfl_sync(ALL, shift, owner) + t; }
};

// The row that holds an entry: 32 guesses at a time.  All lanes of the warp call.
template <typename I>
__device__ __forceinline__ I row_of(I entry, I n, const I* indptr)
{
    long long low = 0, high = n;  // indptr[low] <= entry < indptr[high]
    while (high - low > 1) {
        long long step = (high - low + WARP - 1) / WARP;
        long long guess = low + step * (lane() + 1);
        int right = __popc(__ballot_sync(ALL, guess < high && indptr[guess] <= entry));
        long long end = low + step * (right + 1);
        low += step * right;
        if (end < high) high = end;
    }
    return (I)low;
}

// All entries, TILE to a warp at a time, 32 rows after each other: `rows(v, begin, end)` is called
// by all lanes, with a vertex of its own for each and the part of its row that lies in the tile.
template <int TILE, typename I, typename Rows>
__device__ __forceinline__ void for_tiles(I n, I nnz, const I* indptr, Rows rows)
{
    long long warps = all_threads() / WARP;
    for (long long first = global_thread() / WARP * TILE; first < nnz; first += warps * TILE) {
        I start = (I)first, stop = (I)(nnz - first < TILE ? nnz : first + TILE);
        I at = start;
        for (I row = row_of(start, n, indptr); at < stop; row += WARP) {
            bool is_row = lane() < n - row;
            I begin = is_row ? indptr[row + lane()] : stop;
            I end = is_row ? indptr[row + lane() + 1] : stop;
            begin = begin < start ? start : begin > stop ? stop : begin;
            end = end < start ? start : end > stop ? stop : end;
            rows(is_row ? I(row + lane()) : I(n - 1), begin, end);
            at = __shfl_sync(ALL, end, WARP - 1);
        }
    }
}
