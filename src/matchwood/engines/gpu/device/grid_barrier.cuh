// A barrier for all blocks of a grid, so that one kernel can run many rounds.
//
// Caller: launch with cooperative=True (all blocks must be resident, else it waits forever), and
// hand over two words that are 0 before the launch.  They are fit for the next launch afterwards.
#pragma once
#include "matchwood/atomics.cuh"

struct GridBarrier {
    unsigned int* arrived;     // blocks at the barrier
    unsigned int* generation;  // barriers passed

    __device__ __forceinline__ explicit GridBarrier(unsigned int* words)
        : arrived(words), generation(words + 1) {}

    // What any thread wrote before is visible to all threads afterwards.  All threads call.
    __device__ __forceinline__ void wait() const
    {
        __syncthreads();  // the block's writes happen before thread 0 goes on
        if (threadIdx.x == 0) {
            __threadfence();
            unsigned int now = load_acquire(generation);
            if (add_release(arrived, 1u) == gridDim.x - 1) {
                store_relaxed(arrived, 0u);
                add_release(generation, 1u);
            } else {
                while (load_acquire(generation) == now) __nanosleep(20);
            }
            __threadfence();
        }
        __syncthreads();
    }
};
