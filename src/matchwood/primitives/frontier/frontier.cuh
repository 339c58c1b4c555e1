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

// True when this call set the bit.  Reads first: most visits find it set, and a read is cheaper.
template <typename I>
__device__ __forceinline__ bool set_bit(Word* bitmap, I v)
{
    Word bit = Word(1) << (v & 63);
    if (load_relaxed(&bitmap[v >> 6]) & bit) return false;
    return (atomicOr(&bitmap[v >> 6], bit) & bit) == 0;
}
