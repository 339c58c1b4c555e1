// Elements that go to chosen ranks: how many go to each, and the place of each among those of its rank.
// The order within a rank depends on scheduling.
#pragma once
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// The place of this lane's element among those for `owner`, where `wanted`; counts[owner] grows.  One atomic for
// the lanes of a warp that have the same owner.  All lanes of the warp call.
__device__ __forceinline__ unsigned long long take_place(unsigned long long* counts, int owner, bool wanted)
{
    unsigned long long place = 0;
    unsigned left = __ballot_sync(ALL, wanted);
    while (left != 0) {
        int leader = __ffs(left) - 1;
        int theirs = __shfl_sync(ALL, owner, leader);
        bool same = wanted && owner == theirs;
        unsigned votes = __ballot_sync(ALL, same);
        unsigned long long start = 0;
        if (lane() == leader) start = take(&counts[owner], (unsigned long long)__popc(votes));
        start = __shfl_sync(ALL, start, leader);
        if (same) place = start + __popc(votes & lanes_below());
        left &= ~votes;
    }
    return place;
}

// Where the elements for `owner` begin, once all are counted.
__device__ __forceinline__ unsigned long long first_of(const unsigned long long* counts, int owner)
{
    unsigned long long first = 0;
    for (int k = 0; k < owner; ++k) first += counts[k];
    return first;
}

// Records of words of 4 bytes, whose fields have 4 or 8 bytes each.
template <typename T>
__device__ __forceinline__ unsigned* write_field(unsigned* at, T x)
{
    memcpy(at, &x, sizeof(T));
    return at + sizeof(T) / 4;
}

template <typename T>
__device__ __forceinline__ const unsigned* read_field(const unsigned* at, T* x)
{
    memcpy(x, at, sizeof(T));
    return at + sizeof(T) / 4;
}
