// The vertices of a round, sorted by sub-round and by the length of their rows.  Host side:
// gpu_subrounds.py; the rule: subrounds.py.
//
// A block has TILE vertices.  It counts them for each pair (sub-round, class) in shared memory and asks
// for their places at once.  Which block comes first is open, and so is the order within a pair; nothing
// depends on it.
#include "matchwood/hashing.cuh"
#include "matchwood/tally.cuh"

constexpr int TILE = 2048;  // vertices of a block

// The pair of v, or -1 where it has no neighbours.
template <typename I>
__device__ __forceinline__ int pair_of(I v, const I* indptr, unsigned long long start, unsigned long long round,
                                       int parts)
{
    I length = indptr[v + 1] - indptr[v];
    if (length == 0) return -1;
    unsigned long long h = mix64(mix64(start ^ (unsigned long long)v) ^ round);
    return (int)(h % (unsigned)parts) * ROW_CLASSES + row_class(length);
}

template <typename I>
__global__ void count_turns(I n, const I* __restrict__ indptr, unsigned long long start, unsigned long long round,
                            int parts, I* counts)
{
    extern __shared__ int here[];
    int pairs = parts * ROW_CLASSES;
    for (int p = threadIdx.x; p < pairs; p += blockDim.x) here[p] = 0;
    __syncthreads();
    long long first = (long long)blockIdx.x * TILE;
    for (long long v = first + threadIdx.x; v < n && v < first + TILE; v += blockDim.x) {
        int p = pair_of((I)v, indptr, start, round, parts);
        if (p >= 0) atomicAdd(&here[p], 1);
    }
    __syncthreads();
    for (int p = threadIdx.x; p < pairs; p += blockDim.x)
        if (here[p]) take(&counts[p], I(here[p]));
}

// next[p]: the first free place of pair p.
template <typename I>
__global__ void deal_turns(I n, const I* __restrict__ indptr, unsigned long long start, unsigned long long round,
                           int parts, I* next, I* order)
{
    extern __shared__ int here[];
    int pairs = parts * ROW_CLASSES;
    I* base = reinterpret_cast<I*>(here + pairs + pairs % 2);
    for (int p = threadIdx.x; p < pairs; p += blockDim.x) here[p] = 0;
    __syncthreads();
    long long first = (long long)blockIdx.x * TILE;
    for (long long v = first + threadIdx.x; v < n && v < first + TILE; v += blockDim.x) {
        int p = pair_of((I)v, indptr, start, round, parts);
        if (p >= 0) atomicAdd(&here[p], 1);
    }
    __syncthreads();
    for (int p = threadIdx.x; p < pairs; p += blockDim.x) {
        base[p] = here[p] ? take(&next[p], I(here[p])) : I(0);
        here[p] = 0;
    }
    __syncthreads();
    for (long long v = first + threadIdx.x; v < n && v < first + TILE; v += blockDim.x) {
        int p = pair_of((I)v, indptr, start, round, parts);
        if (p >= 0) order[base[p] + atomicAdd(&here[p], 1)] = (I)v;
    }
}
