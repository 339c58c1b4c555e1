// Which row an entry belongs to, for kernels that take a matrix entry by entry.
//
// The entries are cut into chunks of CHUNK, whatever rows they belong to, and a list says in which
// row each chunk begins (primitives/row_reduce/gpu.py, Chunks).  A block takes a chunk; a thread
// takes EACH neighbouring entries, looks for the row of the first among the rows of the chunk, and
// walks on from there.  So all threads have the same work, however long the rows are, and no
// thread needs a whole row.
#pragma once
#include "matchwood/threads.cuh"

constexpr int CHUNK_THREADS = 256;            // threads of a block
constexpr int EACH = 8;                       // entries of a thread
constexpr int CHUNK = CHUNK_THREADS * EACH;   // entries of a block

// The first number in low .. high - 1 for which `before` is false, high where there is none; it is
// true up to there.  All lanes of the warp call, and test 32 numbers at a time.
template <typename I, typename Before>
__device__ __forceinline__ I warp_search(I low, I high, Before before)
{
    while (low < high) {
        long long step = ((long long)high - low + WARP - 1) / WARP, at = low + lane() * step;
        int passed = __popc(__ballot_sync(ALL, at < high && before((I)at)));
        if (passed == 0) break;
        high = (I)min((long long)high, low + passed * step);
        low += (I)((passed - 1) * step + 1);
    }
    return low;
}

// The last row in low .. high that begins at or before entry k: the row of k if it is one of them.
template <typename I>
__device__ __forceinline__ I row_of(const I* __restrict__ indptr, I low, I high, I k)
{
    while (low < high) {
        I middle = low + (high - low + 1) / 2;
        if (indptr[middle] <= k)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

template <typename T>
struct alignas(16) Sixteen {
    T value[16 / sizeof(T)];
};

// Entries first .. first + count - 1 of an array, 16 bytes at a time where that is aligned; `first` is a
// multiple of EACH.  The rest is 0.
template <typename T>
__device__ __forceinline__ void load_entries(const T* __restrict__ array, long long first, int count,
                                             T (&value)[EACH])
{
    constexpr int HOLDS = 16 / sizeof(T);
    const T* from = array + first;
    if (count == EACH && reinterpret_cast<unsigned long long>(array) % 16 == 0) {
#pragma unroll
        for (int e = 0; e < EACH; e += HOLDS) {
            Sixteen<T> part = *reinterpret_cast<const Sixteen<T>*>(from + e);
#pragma unroll
            for (int h = 0; h < HOLDS; ++h) value[e + h] = part.value[h];
        }
    } else {
#pragma unroll
        for (int e = 0; e < EACH; ++e) value[e] = e < count ? from[e] : T(0);
    }
}

// This thread's first entry in a chunk, and how many it has there, of m in all.
__device__ __forceinline__ long long first_entry(long long chunk)
{
    return chunk * CHUNK + threadIdx.x * EACH;
}
__device__ __forceinline__ int entries_here(long long first, long long m)
{
    return (int)max(0ll, min((long long)EACH, m - first));
}

// The rows of this thread's entries in a chunk, first .. first + count - 1.  Returns a bit for each of
// EACH: set where it begins its row.  Past the end rows are 0 and bits set.
template <typename I>
__device__ __forceinline__ unsigned int find_rows(const I* __restrict__ indptr,
                                                  const I* __restrict__ first_row, long long chunk,
                                                  long long first, int count, I (&rows)[EACH])
{
#pragma unroll
    for (int e = 0; e < EACH; ++e) rows[e] = 0;
    unsigned int begins = ~0u << count;
    if (count == 0) return begins;
    I low = first_row[chunk], last = first_row[chunk + 1], k = (I)first;

    // a first guess: if all rows are equally long, they are distributed evenly over the threads
    I guess = low + (I)((unsigned long long)(last - low) * threadIdx.x / CHUNK_THREADS);
    I above = max(low, guess - 1), below = min(last, guess + 1);
    I starts = indptr[above], ends = indptr[below + 1];
    I row = row_of(indptr, starts <= k ? above : low, k < ends ? below : last, k);
    if (indptr[row] == k) begins |= 1;

    I end = indptr[row + 1], next_end = indptr[row < last ? row + 2 : last + 1];
    if (count == EACH && indptr[last - row > 1 ? row + 3 : last + 1] >= first + EACH) {
        // at most two rows end before the last entry: no branches
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            k = (I)(first + e);
            rows[e] = row + (k >= end) + (k >= next_end);
            if (k == end || k == next_end) begins |= 1u << e;
        }
        return begins;
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        if (e >= count) break;
        k = (I)(first + e);
        if (k >= end) {
            begins |= 1u << e;
            row = row_of(indptr, I(row + 1), k < next_end ? I(row + 1) : last, k);
            end = indptr[row + 1];
            next_end = indptr[row < last ? row + 2 : last + 1];
        }
        rows[e] = row;
    }
    return begins;
}
