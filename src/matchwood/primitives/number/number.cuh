// Things numbered by the blocks of a grid, in the order of their places: each block has a run of
// places, counts what is wanted in it, and, after all blocks have counted, starts where the blocks
// before it end.
#pragma once
#include "matchwood/threads.cuh"

// The places [first, end) of this block, of n in all.
struct Run {
    long long first, end;

    __device__ __forceinline__ Run(long long length, long long n) : first(blockIdx.x * length)
    {
        end = first + length < n ? first + length : n;
    }
};

// How many places of the run are wanted; thread 0 has the sum.  All threads of the block call.
template <typename I, typename Wanted>
__device__ __forceinline__ I count_wanted(const Run& run, Wanted wanted)
{
    I count = 0;
    for (long long v = run.first + threadIdx.x; v < run.end; v += blockDim.x) count += wanted(v);
    return block_reduce(count, I(0), Plus());
}

// The sum of the counts of the blocks before this one.  All threads of the block call.
template <typename I>
__device__ __forceinline__ I counted_before(const I* counts)
{
    __shared__ I start;
    I before = 0;
    for (int block = threadIdx.x; block < (int)blockIdx.x; block += blockDim.x) before += counts[block];
    before = block_reduce(before, I(0), Plus());
    if (threadIdx.x == 0) start = before;
    __syncthreads();
    return start;
}

// give(v, number) for the wanted places of the run, numbers from `next` on; returns the number
// after the last.  All threads of the block call.
template <typename I, typename Wanted, typename Give>
__device__ __forceinline__ I number_wanted(const Run& run, I next, Wanted wanted, Give give)
{
    for (long long at = run.first; at < run.end; at += blockDim.x) {
        long long v = at + threadIdx.x;
        bool here = v < run.end && wanted(v);
        int count, place = block_exclusive_sum(int(here), &count);
        if (here) give(v, I(next + place));
        next += count;
    }
    return next;
}
