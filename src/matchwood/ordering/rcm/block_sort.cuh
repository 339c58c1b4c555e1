// A stable counting sort by one block: for lists of any length, in shared or in device memory.
#pragma once
#include "matchwood/threads.cuh"

constexpr int DIGIT_BITS = 8;            // bits of a key sorted in one pass
constexpr int DIGITS = 1 << DIGIT_BITS;  // counters of a pass

// What the sort needs in shared memory, for blocks of THREADS threads.
template <int THREADS>
struct SortSpace {
    unsigned short ahead[THREADS / WARP][DIGITS];  // of a tile: equal digits in the warps before
    long long next[DIGITS], base[DIGITS];          // where the next of each digit goes
};

// `move(i, place)` is called once for every i < size, so that ascending places have ascending
// `digit(i)` (0 to DIGITS - 1), and equal ones keep their order.  All threads of the block call.
template <int THREADS, typename Digit, typename Move>
__device__ void sort_by_digit(SortSpace<THREADS>& space, long long size, Digit digit, Move move)
{
    for (int d = threadIdx.x; d < DIGITS; d += THREADS) space.next[d] = 0;
    __syncthreads();
    for (long long first = 0; first < size; first += THREADS) {
        long long i = first + threadIdx.x;
        int mine = i < size ? digit(i) : DIGITS;
        unsigned same = __match_any_sync(ALL, mine);
        if (i < size && (same & lanes_below()) == 0)
            atomicAdd(reinterpret_cast<unsigned long long*>(&space.next[mine]), (unsigned long long)__popc(same));
    }
    __syncthreads();
    if (warp() == 0) {
        constexpr int EACH = DIGITS / WARP;
        long long sum = 0;
        for (int k = 0; k < EACH; ++k) sum += space.next[lane() * EACH + k];
        long long before = warp_exclusive_sum(sum);
        for (int k = 0; k < EACH; ++k) {
            long long count = space.next[lane() * EACH + k];
            space.next[lane() * EACH + k] = before;
            before += count;
        }
    }
    for (long long first = 0; first < size; first += THREADS) {
        unsigned int* cells = reinterpret_cast<unsigned int*>(&space.ahead[0][0]);
        for (int c = threadIdx.x; c < THREADS / WARP * DIGITS / 2; c += THREADS) cells[c] = 0;
        __syncthreads();
        long long i = first + threadIdx.x;
        int mine = i < size ? digit(i) : DIGITS;
        unsigned same = __match_any_sync(ALL, mine);
        int before = __popc(same & lanes_below());
        if (i < size && before == 0) space.ahead[warp()][mine] = (unsigned short)__popc(same);
        __syncthreads();
        for (int d = threadIdx.x; d < DIGITS; d += THREADS) {
            int sum = 0;
            for (int w = 0; w < THREADS / WARP; ++w) {
                int count = space.ahead[w][d];
                space.ahead[w][d] = (unsigned short)sum;
                sum += count;
            }
            space.base[d] = space.next[d];
            space.next[d] += sum;
        }
        __syncthreads();
        if (i < size) move(i, space.base[mine] + space.ahead[warp()][mine] + before);
        __syncthreads();
    }
}
