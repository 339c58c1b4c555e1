// The ring in which batches are kept and tell each other how far they are, and what is counted; see
// gpu_batch.cu of ordering/rcm for what is told, and gpu_batch.py for the size.
#pragma once
#include "matchwood/batch_children.cuh"

// The ring: `mask` + 1 words of every kind.
template <typename I>
struct Ring {
    unsigned int mask;
    int log;
    unsigned int *published, *discovered, *completed;  // number + 1; discovered: see below
    unsigned int *next;                                // where `counted` leads
    unsigned int *skip;                                // of an empty batch: the first of those made with it
    Wide *number, *carried, *out;                      // counted
    I *begin, *end;

    __device__ __forceinline__ Ring(unsigned int size, unsigned int* words, Wide* wide, I* places)
        : mask(size - 1), log(31 - __clz((int)size))
    {
        published = words;
        discovered = words + size;
        completed = words + 2 * (Wide)size;
        next = words + 3 * (Wide)size;
        skip = words + 4 * (Wide)size;
        number = wide;
        carried = wide + size;
        out = wide + 2 * (Wide)size;
        begin = places;
        end = places + size;
    }

    __device__ __forceinline__ unsigned int at(unsigned int b) const { return b & mask; }
    // 24 bits above 40 of content: how often the ring has been gone round.
    __device__ __forceinline__ Wide tag(unsigned int b) const { return (Wide)((b >> log) + 1 & 0xffffff) << 40; }
};

// Two bits below number + 1, in `discovered`.
constexpr unsigned int OFFERED = 1, VOID = 2, FULL = 3;
// 10 bits of carried vertices, 12 of their entries, 12 of the longest row.
constexpr int CARRIED_BITS = 10, VALUE_BITS = 12;
constexpr Wide CONTENT = (1ull << 40) - 1;

// Words of `control`.
constexpr int TICKET = 0, OVER = 1, MADE = 2, COUNTERS = 3;
// Counters behind them, then cycles by stage.
constexpr int DEQUEUED = 0, EXECUTED = 1, EMPTY = 2, REDISCOVERIES = 3, REMOVED = 4, STAGES = 5;
constexpr int DISCOVER = 0, SORT = 1, REDISCOVER = 2, SIGNAL = 3, OUTPUT = 4, STALL = 5, ALL_STAGES = 6;

// Clocks of thread 0.
struct Clock {
    Wide* cycles;
    long long since;
    long long spent[ALL_STAGES];

    __device__ __forceinline__ explicit Clock(Wide* words) : cycles(words), since(0), spent{}
    {
        if (cycles != nullptr) since = clock64();
    }
    __device__ __forceinline__ void lap(int stage)
    {
        if (cycles == nullptr) return;
        long long now = clock64();
        spent[stage] += now - since;
        since = now;
    }
    __device__ __forceinline__ void report()
    {
        if (cycles == nullptr) return;
        for (int k = 0; k < ALL_STAGES; ++k) atomicAdd(&cycles[k], (Wide)spent[k]);
    }
};
