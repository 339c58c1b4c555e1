// The root that most vertices of a sample have: probably that of the largest component.
#pragma once
#include "matchwood/hashing.cuh"
#include "matchwood/union_find.cuh"

constexpr int SAMPLE = 1024; // vertices, one for each thread of the block that counts them
constexpr int SLOTS = 2048;  // of the table that counts their roots
constexpr int OTHERS_PART = 8;  // settled: at most 1 / OTHERS_PART of the sample have another root

// One block of SAMPLE threads.  Each draws a number below n by a hash; vertex(number) is the vertex whose root
// counts, or -1 for none.  *largest: the most frequent root, any of equals, -1 when there is none; *settled: whether
// most have it.
template <typename I, typename Vertex>
__device__ __forceinline__ void most_frequent_root(I n, const I* parent, Vertex vertex, I* largest, I* settled)
{
    __shared__ int sampled;
    __shared__ I root[SLOTS];
    __shared__ int count[SLOTS];
    __shared__ unsigned long long best;
    for (int slot = threadIdx.x; slot < SLOTS; slot += blockDim.x) {
        root[slot] = -1;
        count[slot] = 0;
    }
    if (threadIdx.x == 0) {
        best = 0;
        sampled = 0;
    }
    __syncthreads();
    I v = vertex((I)(mix64(threadIdx.x + GOLDEN) % (unsigned long long)n));
    if (v >= 0) {
        I mine = peek_root(parent, v);
        int slot = (int)(mix64((unsigned long long)mine) % SLOTS);
        while (true) {  // ends: there are more slots than threads
            I there = compare_and_swap(&root[slot], I(-1), mine);
            if (there == I(-1) || there == mine) break;
            slot = (slot + 1) % SLOTS;
        }
        atomicAdd(&count[slot], 1);
        atomicAdd(&sampled, 1);
    }
    __syncthreads();
    // count above, slot below: one word to compare
    for (int slot = threadIdx.x; slot < SLOTS; slot += blockDim.x)
        if (count[slot] > 0) atomicMax(&best, (unsigned long long)count[slot] << 32 | (unsigned)slot);
    __syncthreads();
    if (threadIdx.x == 0) {
        *largest = best == 0 ? I(-1) : root[(unsigned)best];
        *settled = sampled - (int)(best >> 32) <= sampled / OTHERS_PART;
    }
}
