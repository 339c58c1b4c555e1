// Words of 32 vertices: who has room (low bits) and their charges (high bits).
#pragma once
#include "matchwood/threads.cuh"

__device__ __forceinline__ bool has_room(unsigned long long word, unsigned v) { return (unsigned)word >> (v & 31) & 1; }
__device__ __forceinline__ bool charge_of(unsigned long long word, unsigned v) { return (unsigned)(word >> 32) >> (v & 31) & 1; }

// Word of the vertices v .. v + 31 of a warp; all lanes call, and lane 0 writes it.
__device__ __forceinline__ void write_state(unsigned long long* word, bool room, bool charge)
{
    unsigned low = __ballot_sync(ALL, room), high = __ballot_sync(ALL, charge);
    if (lane() == 0) *word = (unsigned long long)high << 32 | low;
}

// The rows row .. end - 1 with room, of the 32 in word w.
template <typename I>
__device__ __forceinline__ unsigned rows_with_room(const unsigned long long* state, I w, I row, I end)
{
    unsigned word = (unsigned)state[w];
    I base = w * 32;
    if (base < row) word &= ALL << (int)(row - base);
    if (end - base < 32) word &= (1u << (int)(end - base)) - 1;
    return word;
}

// How many of the rows row .. end - 1 have room.  All lanes of a warp call and get it.
template <typename I>
__device__ __forceinline__ int count_room(const unsigned long long* state, I row, I end)
{
    int count = 0;
    for (I w = row / 32 + lane(); w * 32 < end; w += WARP) count += __popc(rows_with_room(state, w, row, end));
    return warp_reduce(count, Plus());
}
