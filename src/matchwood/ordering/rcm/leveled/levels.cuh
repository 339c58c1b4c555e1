// What narrow_levels.cuh and wide_levels.cuh share: the front of an order that goes level by level.
#pragma once
#include "matchwood/places.cuh"
#include "matchwood/roll_call.cuh"

using Wide = unsigned long long;

constexpr int LEVEL_BLOCK = 1024;       // threads; one block on each multiprocessor

// The front as every member knows it.
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
