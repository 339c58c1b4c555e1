// Sorted keys in fewer bytes, for the way to the host and back.  Host side: batches.py.
//
// The upper half of an address is left out: a table says where keys with each upper half begin.
// Every word is written by one thread, so there are no races.
#include "matchwood/threads.cuh"

constexpr int BUCKETS = 1 << 16;  // upper halves of an address
constexpr int TILE = 1024;        // entries of a warp

// Where keys with each upper half begin among sorted ones; a thread for each.
template <typename K>
__global__ void bucket_starts(long long n, const K* keys, int shift, long long* starts)
{
    long long bucket = global_thread();
    if (bucket > BUCKETS) return;
    long long lo = 0, hi = n;  // keys before lo are below the bucket, those from hi on are not
    while (lo < hi) {
        long long middle = (lo + hi) / 2;
        if ((long long)(keys[middle] >> shift) < bucket) lo = middle + 1;
        else hi = middle;
    }
    starts[bucket] = lo;
}

// A link without the upper half of its source.
__global__ void split_links(
    long long n, const unsigned long long* keys, unsigned short* halves, unsigned int* lows)
{
    for (long long i = global_thread(); i < n; i += all_threads()) {
        unsigned long long key = keys[i];
        halves[i] = (unsigned short)(key >> 32);
        lows[i] = (unsigned int)key;
    }
}

// An address without its upper half.
__global__ void split_addresses(long long n, const unsigned int* keys, unsigned short* halves)
{
    for (long long i = global_thread(); i < n; i += all_threads())
        halves[i] = (unsigned short)keys[i];
}

// The last slot from lo to hi that begins at place i or before it; slot lo does.
__device__ __forceinline__ long long slot_of(
    const long long* begins, long long lo, long long hi, long long i)
{
    while (lo < hi) {
        long long middle = (lo + hi + 1) / 2;
        if (begins[middle] <= i) lo = middle;
        else hi = middle - 1;
    }
    return lo;
}

// Keys from what is left of them.  Pieces of several runs lie one after the other; each has a slot
// for every upper half of the range, `width` of them, the first one is `first`.  A warp looks for
// the slots of its tile's ends, then each lane between them.
template <typename K>
__global__ void unpack(
    long long n, long long slots, long long width, long long first, const long long* begins,
    const unsigned short* halves, const unsigned int* lows, K* keys)
{
    long long start = global_thread() / WARP * TILE;
    if (start >= n) return;
    long long last = start + TILE < n ? start + TILE - 1 : n - 1;
    long long lo = slot_of(begins, 0, slots - 1, start);
    long long hi = slot_of(begins, lo, slots - 1, last);
    for (long long i = start + lane(); i <= last; i += WARP) {
        unsigned long long upper = first + slot_of(begins, lo, hi, i) % width;
        if (sizeof(K) == 8)
            keys[i] = (K)(upper << 48 | (unsigned long long)halves[i] << 32 | lows[i]);
        else
            keys[i] = (K)(upper << 16 | halves[i]);
    }
}
