// A list of edges that warps append to, and trees that keep the first edge offered to them.
// For lists/gpu.cu and boruvka/gpu.cu.
//
// An edge's word is the prefix of its weight above the place k of its entry in the upper triangle
// (order.py): words ascend as edges do.  With EXACT prefixes words alone decide; else of two
// equal ones the weights at their entries decide.
#pragma once
#include "matchwood/atomics.cuh"
#include "matchwood/order.cuh"
#include "matchwood/threads.cuh"

constexpr int LIST_BLOCK = 256;  // threads of blocks that write lists

// A list that the lanes of a warp append to; 32 edges at a time are written side by side.
template <typename I>
struct Appender {
    I* ends;     // two for each edge
    Code* words;
    unsigned long long* size;  // counts also those for which there is no room
    unsigned long long room;
    I (*a)[2 * WARP];  // of this block's warps, in shared memory
    I (*b)[2 * WARP];
    Code (*w)[2 * WARP];
    int fill;

    __device__ __forceinline__ void write(int count)
    {
        unsigned long long start = 0;
        if (lane() == 0) start = atomicAdd(size, (unsigned long long)count);
        unsigned long long place = __shfl_sync(ALL, start, 0) + lane();
        if (lane() < count && place < room) {
            ends[2 * place] = a[warp()][lane()];
            ends[2 * place + 1] = b[warp()][lane()];
            words[place] = w[warp()][lane()];
        }
        __syncwarp();
    }

    // All lanes of the warp call.
    __device__ __forceinline__ void push(bool wanted, I x, I y, Code word)
    {
        unsigned votes = __ballot_sync(ALL, wanted);
        if (votes == 0) return;
        int place = fill + __popc(votes & lanes_below());
        if (wanted) {
            a[warp()][place] = x;
            b[warp()][place] = y;
            w[warp()][place] = word;
        }
        fill += __popc(votes);
        __syncwarp();
        if (fill < WARP) return;
        write(WARP);
        fill -= WARP;
        I next_a = a[warp()][WARP + lane()], next_b = b[warp()][WARP + lane()];
        Code next_w = w[warp()][WARP + lane()];
        __syncwarp();
        a[warp()][lane()] = next_a;
        b[warp()][lane()] = next_b;
        w[warp()][lane()] = next_w;
        __syncwarp();
    }

    __device__ __forceinline__ void finish()
    {
        if (fill > 0) write(fill);
    }
};

template <bool EXACT, typename I, typename B>
__device__ __forceinline__ void offer(Code* best, I c, Code word, const Order& order, const B* bits)
{
    Code seen = load_relaxed(&best[c]);
    if constexpr (EXACT) {
        if (word < seen) atomicMin(&best[c], word);
    } else {
        while (word_before(word, seen, order, bits)) {
            Code before = atomicCAS(&best[c], seen, word);
            if (before == seen) return;
            seen = before;
        }
    }
}
