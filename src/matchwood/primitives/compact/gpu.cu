// Compaction: count what each tile keeps, then (gpu.py scans the counts) write it in order.
// A tile is TILE flags; a warp reads its part in turns of 32 neighbouring flags and votes.
#include "matchwood/threads.cuh"

constexpr int BLOCK = 256;                             // threads of a block
constexpr int TURNS = 16;                              // turns of a warp; WARP flags in each
constexpr int TILE = TURNS * WARP * (BLOCK / WARP);    // flags of a block

// The votes of this warp's turns, in every lane; returns how many it keeps.
template <typename T>
__device__ __forceinline__ int vote(long long n, const T* __restrict__ mask, long long first,
                                    unsigned (&votes)[TURNS])
{
    T flag[TURNS];
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
        long long at = first + turn * WARP + lane();
        flag[turn] = at < n ? mask[at] : T(0);
    }
    int kept = 0;
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
        votes[turn] = __ballot_sync(ALL, flag[turn] != 0);
        kept += __popc(votes[turn]);
    }
    return kept;
}

__device__ __forceinline__ long long warp_first()
{
    return (long long)blockIdx.x * TILE + warp() * (TURNS * WARP);
}

template <typename T>
__global__ void __launch_bounds__(BLOCK)
count_kept(long long n, const T* __restrict__ mask, int* __restrict__ counts)
{
    unsigned votes[TURNS];
    int kept = vote(n, mask, warp_first(), votes);
    int total = block_reduce(lane() == 0 ? kept : 0, 0, Plus());
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

// Calls write(place, position) for everything this block keeps, places in the order of positions.
template <typename T, typename Write>
__device__ __forceinline__ void for_kept(long long n, const T* __restrict__ mask,
                                         const long long* __restrict__ starts, Write write)
{
    unsigned votes[TURNS];
    long long first = warp_first();
    int kept = vote(n, mask, first, votes);
    int total;
    int before = block_exclusive_sum(lane() == 0 ? kept : 0, &total);
    long long place = starts[blockIdx.x] + __shfl_sync(ALL, before, 0);
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
        if (votes[turn] >> lane() & 1)
            write(place + __popc(votes[turn] & lanes_below()), first + turn * WARP + lane());
        place += __popc(votes[turn]);
    }
}

// Values are moved as words of 4 or 8 bytes, whatever they are.
template <typename T, typename K>
__global__ void __launch_bounds__(BLOCK)
write_values(long long n, const T* __restrict__ mask, const long long* __restrict__ starts,
             const K* __restrict__ values, K* __restrict__ out)
{
    for_kept(n, mask, starts, [&](long long place, long long at) { out[place] = values[at]; });
}

template <typename T, typename I>
__global__ void __launch_bounds__(BLOCK)
write_positions(long long n, const T* __restrict__ mask, const long long* __restrict__ starts,
                I* __restrict__ out)
{
    for_kept(n, mask, starts, [&](long long place, long long at) { out[place] = (I)at; });
}
