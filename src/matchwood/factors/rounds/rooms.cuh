// Words of 32 vertices: those that have room and no charge in the low bits, those that have room and
// a charge in the high bits.  So half a word says which of 32 vertices another may choose from.
#pragma once
#include "matchwood/threads.cuh"

__device__ __forceinline__ bool has_room(unsigned long long word, unsigned v)
{
    return ((unsigned)word | (unsigned)(word >> 32)) >> (v & 31) & 1;
}
__device__ __forceinline__ bool has_charge(unsigned long long word, unsigned v)
{
    return (unsigned)(word >> 32) >> (v & 31) & 1;
}

// Word of the vertices v .. v + 31 of a warp; all lanes call, and lane 0 writes it.
__device__ __forceinline__ void write_state(unsigned long long* word, bool room, bool charge)
{
    unsigned low = __ballot_sync(ALL, room && !charge), high = __ballot_sync(ALL, room && charge);
    if (lane() == 0) *word = (unsigned long long)high << 32 | low;
}
