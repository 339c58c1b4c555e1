// The order in which vertices leave blocks that are too heavy, as numbers.  The rule: reference.py.
#pragma once
#include "matchwood/atomics.cuh"

using Key = unsigned long long;
constexpr Key HALF = 0x4800000000000000ull;  // more than the bits of any rank without its sign

// Of many candidates those are sorted that may be needed: of each block the first by buckets of ranks, until
// they weigh PLENTY times what must leave it.  Where that was too little, all are sorted.
constexpr int SIDE = 128;            // buckets of ranks of one sign, four for each power of two from 2^-8 on
constexpr int BUCKETS = 3 * SIDE;    // positive, others, and those without a block that they are tied to
constexpr int PLENTY = 4;
constexpr int WORTH_FILTER = 512;    // candidates
constexpr unsigned long long TOO_FEW = ~0ull;

// Candidates by this key, then by vertex: those with a block that they are tied to first, larger ranks first.
__device__ __forceinline__ Key key_of(long long gain, long long weight, bool second)
{
    double g = (double)gain, w = (double)weight, rank = gain > 0 ? __dmul_rn(g, w) : __ddiv_rn(g, w);
    Key bits = bits_as<Key>(rank < 0 ? -rank : rank);
    return rank > 0 ? HALF - bits : HALF + bits + (second ? HALF : 0);
}

// Grows with the key.
__device__ __forceinline__ int bucket_of(Key key)
{
    bool positive = key < HALF, second = key >= 2 * HALF;
    int octave = (int)((positive ? HALF - key : key - HALF - (second ? HALF : 0)) >> 50) - (1023 - 8) * 4;
    int at = octave < 0 ? 0 : octave < SIDE ? octave : SIDE - 1;
    return positive ? SIDE - 1 - at : SIDE + at + (second ? SIDE : 0);
}

// Sorts `padded` candidates in shared memory, a power of two, by key and vertex.  All threads of the block call.
template <typename I>
__device__ __forceinline__ void sort_tile(Key* keys, I* vertices, int padded)
{
    for (int run = 2; run <= padded; run *= 2)
        for (int hop = run / 2; hop > 0; hop /= 2) {
            __syncthreads();
            for (int pair = threadIdx.x; pair < padded / 2; pair += blockDim.x) {
                int low = 2 * pair - (pair & (hop - 1)), high = low + hop;
                bool swap = keys[high] < keys[low] || (keys[high] == keys[low] && vertices[high] < vertices[low]);
                if (swap != ((low & run) == 0)) continue;
                Key other = keys[low];
                I whose = vertices[low];
                keys[low] = keys[high], vertices[low] = vertices[high];
                keys[high] = other, vertices[high] = whose;
            }
        }
    __syncthreads();
}

// The place of candidate i among all, of which each TILE is sorted.
template <int TILE, typename I>
__device__ __forceinline__ long long place_in_tiles(const Key* keys, const I* vertices, long long size, long long i)
{
    Key mine = keys[i];
    I v = vertices[i];
    long long place = i % TILE;
    for (long long from = 0; from < size; from += TILE) {
        if (from == i - i % TILE) continue;
        long long low = from, high = from + TILE < size ? from + TILE : size;
        while (low < high) {
            long long middle = (low + high) / 2;
            if (keys[middle] < mine || (keys[middle] == mine && vertices[middle] < v))
                low = middle + 1;
            else
                high = middle;
        }
        place += low - from;
    }
    return place;
}
