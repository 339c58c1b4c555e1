// The ring buffer that holds the batches and their signals, and the counters.  What the signals mean:
// gpu.cu.  The size of the ring: gpu.py.
#pragma once
#include "matchwood/batch_children.cuh"

// Measured: bench/ordering/rcm_gpu.py, H200.
constexpr int SLEEP_NANOSECONDS = 20;        // nanoseconds between two reads of a signal, at first,
constexpr int MOST_SLEEP_NANOSECONDS = 160;  // and at most

// Two bits below number + 1, in `discovered`.
constexpr unsigned int OFFERED = 1, VOID = 2, FULL = 3;
// 10 bits of carried vertices, 12 of their entries, 12 of the longest row.
constexpr int CARRIED_BITS = 10, VALUE_BITS = 12;
constexpr Wide CONTENT = (1ull << 40) - 1;

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
    // 24 bits above 40 of content: how often the ring has wrapped round.
    __device__ __forceinline__ Wide tag(unsigned int b) const { return (Wide)((b >> log) + 1 & 0xffffff) << 40; }

    // Signal that batch b has offered, or that all up to it have.  Caller: one warp, after a fence.
    __device__ __forceinline__ void tell(unsigned int b, unsigned int state) const
    {
        if (lane() == 0) store_relaxed(&discovered[at(b)], b + 1 << 2 | state);
    }

    // Have all batches before b offered?  `wait`: until they have, or *over is set.  All lanes of one
    // warp call.
    __device__ bool look_back(unsigned int b, bool wait, const Wide* over) const
    {
        unsigned int from = b, ns = SLEEP_NANOSECONDS;  // from there to b all have
        while (true) {
            unsigned int q = from - 1 - lane(), word = 0;
            bool none = from <= (unsigned int)lane();
            if (!none) word = load_relaxed(&discovered[at(q)]);
            unsigned int state = none ? FULL : word >> 2 == q + 1 ? word & 3 : 0;
            unsigned full = __ballot_sync(ALL, state == FULL), open = __ballot_sync(ALL, state == 0);
            unsigned empty = __ballot_sync(ALL, state == VOID);
            int first = full != 0 ? __ffs(full) - 1 : WARP, gap = open != 0 ? __ffs(open) - 1 : WARP;
            int hole = empty != 0 ? __ffs(empty) - 1 : WARP;
            if (first < gap && first < hole) {
                fence();
                return true;
            }
            if (hole < gap) {
                unsigned int start = hole == lane() ? load_relaxed(&skip[at(q)]) : 0;
                from = __shfl_sync(ALL, start, hole);
                continue;
            }
            from -= gap;
            if (gap == WARP) continue;
            if (!wait || __any_sync(ALL, load_relaxed(over) != 0)) return false;
            __nanosleep(ns);
            if (ns < MOST_SLEEP_NANOSECONDS) ns *= 2;
        }
    }
};

// Words of `control`.
constexpr int TICKET = 0, OVER = 1, MADE = 2, COUNTERS = 3;
// Counters follow, then cycles by stage.
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
