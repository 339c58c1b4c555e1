// Rows of very different lengths, shared out evenly: the entries of 32 rows over a warp's lanes,
// the entries of a matrix over warps.
#pragma once
#include "matchwood/threads.cuh"

// 32 rows of a warp, one for each lane, as one list of entries.  They are counted as Count: int where
// the rows are known to be short, which saves shuffles of 64 bits.  All lanes of the warp call
// everything here, and all are called back.
template <typename I, typename Count = I>
struct WarpRows {
    Count before;  // entries of the rows of lower lanes
    Count total;   // entries of all 32
    I shift;       // where this lane's row starts, less `before`

    // Empty rows have begin == end.
    __device__ __forceinline__ WarpRows(I begin, I end)
    {
        Count length = (Count)(end - begin);
        before = warp_exclusive_sum(length);
        shift = begin - before;
        total = __shfl_sync(ALL, Count(before + length), WARP - 1);
    }

    // each(owner, entry, is_entry) for all entries, 32 at a time: the lane whose row it is in, and its
    // place.  Surplus lanes are called with is_entry false.
    template <typename Each>
    __device__ __forceinline__ void for_entries(Each each) const
    {
        for (Count first = 0; first < total; first += WARP) {
            Count t = first + lane();
            int of = owner(t);
            each(of, entry(t, of), t < total);
        }
    }

    // each(owners, items) for all entries, BATCH * 32 at a time: two arrays of BATCH.  An item is
    // read(entry), or -1 where there is no entry.  It is read as soon as its place is known, while the
    // lane looks for the next ones (a level of a breadth-first search waits 7 % longer otherwise).
    template <int BATCH, typename Read, typename Each>
    __device__ __forceinline__ void for_batches(Read read, Each each) const
    {
        for (Count first = 0; first < total; first += BATCH * WARP) {
            int owners[BATCH];
            I items[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; ++k) {
                Count t = first + k * WARP + lane();
                owners[k] = owner(t);
                I at = entry(t, owners[k]);
                items[k] = t < total ? read(at) : I(-1);
            }
            each(owners, items);
        }
    }

private:
    // The lane whose row holds the t-th entry of the list.
    __device__ __forceinline__ int owner(Count t) const
    {
        int found = 0;
#pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2)
            if (__shfl_sync(ALL, before, found + step) <= t) found += step;
        return found;
    }

    __device__ __forceinline__ I entry(Count t, int owner) const { return __shfl_sync(ALL, shift, owner) + t; }
};

// The first entry u of the lane's row [begin, end) with test(u, key), else -1.  A lane tries ALONE
// entries by itself, a few at once; then the warp helps, for up to HELPED more.  `key` is the
// lane's own: the test may be done by another one.  All lanes of the warp call.
template <int ALONE, int HELPED, typename I, typename Test>
__device__ __forceinline__ I first_in_row(const I* indices, I begin, I end, I key, Test test)
{
    constexpr int BATCH = 4;
    I found = -1, alone = end - begin > ALONE ? begin + ALONE : end, at = begin;
    while (found < 0 && at < alone) {
        I u[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; ++k) u[k] = at + k < alone ? indices[at + k] : I(-1);
#pragma unroll
        for (int k = BATCH - 1; k >= 0; --k)
            if (u[k] >= 0 && test(u[k], key)) found = u[k];
        at += BATCH;
    }
    for (unsigned left = __ballot_sync(ALL, found < 0 && at < end); left != 0; left &= left - 1) {
        int owner = __ffs(left) - 1;
        I from = __shfl_sync(ALL, at, owner), to = __shfl_sync(ALL, end, owner), its = __shfl_sync(ALL, key, owner);
        if (to - from > HELPED) to = from + HELPED;
        I u = 0;
        unsigned votes = 0;
        for (; votes == 0 && from < to; from += WARP) {
            bool here = lane() < to - from;
            if (here) u = indices[from + lane()];
            votes = __ballot_sync(ALL, here && test(u, its));
        }
        I first = __shfl_sync(ALL, u, __ffs(votes) - 1);
        if (lane() == owner && votes != 0) found = first;
    }
    return found;
}

// The last row that starts at `place` or before, in a list of all rows and entries: each row's
// start precedes its entries.  32 guesses at a time.  All lanes of the warp call.
template <typename I>
__device__ __forceinline__ long long row_at(long long place, I n, const I* indptr)
{
    long long low = 0, high = n;  // the row is in [low, high)
    while (high - low > 1) {
        long long step = (high - low + WARP - 1) / WARP;
        long long guess = low + step * (lane() + 1);
        int right = __popc(__ballot_sync(ALL, guess < high && (long long)indptr[guess] + guess <= place));
        long long end = low + step * (right + 1);
        low += step * right;
        if (end < high) high = end;
    }
    return low;
}

// The first entry at `place` or after it; `row` is row_at(place).
template <typename I>
__device__ __forceinline__ I entry_at(long long place, long long row, const I* indptr)
{
    long long entry = place - row - 1;  // before it are all rows up to this one, and as many entries
    return entry > indptr[row] ? (I)entry : indptr[row];
}

// All rows and entries, TILE of them to a warp at a time, so that neither long rows nor many empty
// ones hold a warp up.  `span(row, last, start, stop)` is called by all lanes: entries start to
// stop - 1 lie in the rows row to last.
template <int TILE, typename I, typename Span>
__device__ __forceinline__ void for_spans(I n, I nnz, const I* indptr, Span span)
{
    long long warps = all_threads() / WARP, places = (long long)n + nnz;
    for (long long first = global_thread() / WARP * TILE; first < places; first += warps * TILE) {
        long long row = row_at(first, n, indptr), last = n - 1;
        I start = entry_at(first, row, indptr), stop = nnz;
        if (first + TILE < places) {
            last = row_at(first + TILE, n, indptr);
            stop = entry_at(first + TILE, last, indptr);
        }
        span(row, last, start, stop);
    }
}

// The same, 32 rows at a time.  `rows(v, begin, end)` is called by all lanes, with a vertex of its own
// for each and the part of its row that lies in the tile; surplus lanes get an empty one.
template <int TILE, typename I, typename Rows>
__device__ __forceinline__ void for_tiles(I n, I nnz, const I* indptr, Rows rows)
{
    for_spans<TILE>(n, nnz, indptr, [&](long long row, long long last, I start, I stop) {
        for (; row <= last; row += WARP) {
            bool is_row = row + lane() <= last;
            I v = (I)(is_row ? row + lane() : last);
            I begin = is_row ? indptr[v] : stop, end = is_row ? indptr[v + 1] : stop;
            begin = begin < start ? start : begin;
            end = end > stop ? stop : end;
            rows(v, begin, end < begin ? begin : end);
        }
    });
}
