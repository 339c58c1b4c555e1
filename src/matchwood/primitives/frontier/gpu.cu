// Queue to bitmap and back.  What other kernels call: matchwood/frontier.cuh.
#include "matchwood/frontier.cuh"
#include "matchwood/status.cuh"

constexpr unsigned NO_VERTEX = 1;  // code of the failure

// One thread per place in the queue.  Bits are set by atomicOr, so it does not matter which of
// two equal vertices is first.  Fails with NO_VERTEX and the first place that holds no vertex.
template <typename I>
__global__ void mark(long long size, const I* __restrict__ queue, long long n, Word* bitmap,
                     unsigned long long* status)
{
    long long k = global_thread();
    if (k >= size) return;
    I v = queue[k];
    if (v < 0 || v >= n)
        fail(status, NO_VERTEX, k);
    else
        set_bit(bitmap, v);
}

// One thread per word.
__global__ void count_bits(int words, const Word* __restrict__ bitmap, int* __restrict__ counts)
{
    int k = global_thread();
    if (k < words) counts[k] = __popcll(bitmap[k]);
}

// One warp per 32 words: word after word, lanes write the vertices of their two bits.
template <typename I>
__global__ void list_bits(int words, const Word* __restrict__ bitmap,
                          const long long* __restrict__ starts, I* __restrict__ queue)
{
    int mine = global_thread();
    Word word = mine < words ? bitmap[mine] : 0;
    long long start = mine < words ? starts[mine] : 0;
    for (int k = 0; k < WARP; ++k) {
        Word bits = __shfl_sync(ALL, word, k);
        if (bits == 0) continue;
        long long place = __shfl_sync(ALL, start, k);
        I first = ((I)mine - lane() + k) * 64;
#pragma unroll
        for (int half = 0; half < 64; half += WARP) {
            int bit = half + lane();
            if (bits >> bit & 1) queue[place + __popcll(bits & ((Word(1) << bit) - 1))] = first + bit;
        }
    }
}
