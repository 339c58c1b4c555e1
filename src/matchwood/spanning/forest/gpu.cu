// The marked entries on the GPU, in their order, as edges with weights.  Host side: gpu.py.
#include "matchwood/frontier.cuh"
#include "matchwood/number.cuh"
#include "matchwood/order.cuh"

constexpr int MANY_MARKS = 4;  // in a word of the bitmap, from which on a warp writes them

// Words of the bitmap are distributed to blocks in runs of `length`; each block counts its marks.
template <typename I>
__global__ void count_marks(long long n_words, long long length, const Word* marks, I* counts)
{
    I count = count_wanted<I>(Run(length, n_words), [&](long long i) { return __popcll(marks[i]); });
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// A block adds up the counts of the blocks before it, and writes its edges: one thread per
// word, or for a word with many marks one warp, a lane per bit.
template <typename I, typename B>
__global__ void write_edges(I n, long long n_words, long long length, const Word* marks, const I* counts,
                            const I* indptr, const I* indices, const B* bits, I* edges, B* weights, I* total)
{
    I next = counted_before(counts);
    Run run(length, n_words);
    for (long long at = run.first; at < run.end; at += blockDim.x) {
        long long i = at + threadIdx.x;
        Word mine = i < run.end ? marks[i] : 0;
        int here;
        I place = next + (I)block_exclusive_sum(__popcll(mine), &here);
        next += here;
        I row = mine == 0 ? I(0) : (I)row_of(0, n, indptr, 64 * i + __ffsll((long long)mine) - 1);
        bool many = __popcll(mine) > MANY_MARKS;
        if (!many)
            for (Word left = mine; left != 0; left &= left - 1) {
                I k = (I)(64 * i + __ffsll((long long)left) - 1);
                if (place >= n) break;  // a forest has fewer edges, where the pattern is symmetric
                while (indptr[row + 1] <= k) ++row;
                edges[2 * (long long)place] = row;
                edges[2 * (long long)place + 1] = indices[k];
                weights[place++] = bits[k];
            }
        __syncwarp();
        for (unsigned left = __ballot_sync(ALL, many); left != 0; left &= left - 1) {
            int owner = __ffs(left) - 1;
            Word word = __shfl_sync(ALL, mine, owner);
            I u = __shfl_sync(ALL, row, owner), from = __shfl_sync(ALL, place, owner);
            long long begin = 64 * (i - lane() + owner);
#pragma unroll
            for (int half = 0; half < 64; half += WARP) {
                int bit = half + lane();
                if (!(word >> bit & 1)) continue;
                I k = (I)(begin + bit), to = from + __popcll(word & ((Word(1) << bit) - 1));
                if (to >= n) continue;
                while (indptr[u + 1] <= k) ++u;
                edges[2 * (long long)to] = u;
                edges[2 * (long long)to + 1] = indices[k];
                weights[to] = bits[k];
            }
            __syncwarp();
        }
    }
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) *total = next;
}
