// A set of vertices on the device: a queue that lists them, a bitmap that marks them.
//
// The order in a queue depends on scheduling: sort it, or use it only for what does not depend on
// the order.  A bitmap is 64-bit words as on the CPU; vertex v is bit v % 64 of word v / 64.
#pragma once
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

using Word = unsigned long long;

// Append v to the queue where `wanted`; one atomic for the warp.  All lanes of the warp call.
// Returns the place, or -1.
template <typename I, typename C>
__device__ __forceinline__ long long append(I* queue, C* size, I v, bool wanted)
{
    unsigned votes = __ballot_sync(ALL, wanted);
    if (votes == 0) return -1;
    int leader = __ffs(votes) - 1;
    C start = 0;
    if (lane() == leader) start = take(size, C(__popc(votes)));
    start = __shfl_sync(ALL, start, leader);
    if (!wanted) return -1;
    long long place = (long long)start + __popc(votes & lanes_below());
    queue[place] = v;
    return place;
}

// As append, for `count` vertices of each thread, and one atomic for the block: the place where
// this thread's vertices go.  All threads of the block call.
template <typename C>
__device__ __forceinline__ long long append_block(C* size, int count)
{
    __shared__ long long start;
    int total;
    int before = block_exclusive_sum(count, &total);
    if (threadIdx.x == 0) start = total ? (long long)take(size, C(total)) : 0;
    __syncthreads();
    long long place = start + before;
    __syncthreads();
    return place;
}

// A plain read: right where the bitmap is not written by the same kernel.
template <typename I>
__device__ __forceinline__ bool test_bit(const Word* bitmap, I v)
{
    return bitmap[v >> 6] >> (v & 63) & 1;
}

// True when this call set the bit.  Reads first: most visits find it set, and a read is cheaper.
template <typename I>
__device__ __forceinline__ bool set_bit(Word* bitmap, I v)
{
    Word bit = Word(1) << (v & 63);
    if (load_relaxed(&bitmap[v >> 6]) & bit) return false;
    return (atomicOr(&bitmap[v >> 6], bit) & bit) == 0;
}

// Lanes of a warp hold the flags of 32 vertices in a row, the first of which is a multiple of 32:
// write them as half a word, without atomics.  All lanes of the warp call.
template <typename I>
__device__ __forceinline__ void store_flags(Word* bitmap, I first, bool flag)
{
    unsigned votes = __ballot_sync(ALL, flag);
    if (lane() == 0) reinterpret_cast<unsigned int*>(bitmap)[first >> 5] = votes;
}
