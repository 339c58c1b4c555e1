// What narrow_levels.cuh and wide_levels.cuh share: the frontier of an order that goes level by level.
#pragma once
#include "matchwood/places.cuh"
#include "matchwood/resident_barrier.cuh"

using Wide = unsigned long long;

constexpr int LEVEL_BLOCK = 1024;  // threads; one block on each multiprocessor
constexpr int READS = 4;           // that a thread has in flight where it passes over all vertices

// use(i, read(i)) for every i < size that is this thread's, of so many.  A block has a multiprocessor for
// itself, so a thread has several reads in flight: they do not wait for a condition.
template <typename Read, typename Use>
__device__ __forceinline__ void for_each_read(Wide size, Wide thread, Wide threads, Read read, Use use)
{
    for (Wide at = thread; at < size; at += READS * threads) {
        decltype(read(at)) value[READS];
#pragma unroll
        for (int k = 0; k < READS; ++k) value[k] = read(at + k * threads < size ? at + k * threads : at);
#pragma unroll
        for (int k = 0; k < READS; ++k)
            if (at + k * threads < size) use(at + k * threads, value[k]);
    }
}

// The frontier as every member knows it.
template <typename I>
struct Front {
    I head, tail;  // its window of `order`
    I depth;       // its level
    I longest;     // entries of its longest row; -1: no level comes after it
    I width;       // most vertices of two levels up to it that follow one another
    int flip;      // which of the words in turn the next wide level uses

    __device__ __forceinline__ I size() const { return tail - head; }

    // Go on to the next level, of `children` vertices; the last one stays.
    __device__ __forceinline__ void advance(I children, I longest_)
    {
        I both = size() + children;
        width = both > width ? both : width;
        longest = children > 0 ? longest_ : I(-1);
        if (children == 0) return;
        head = tail;
        tail += children;
        depth += 1;
    }
};
