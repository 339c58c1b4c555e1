// Packets to links on the GPU.  Host side: gpu.py.  The idea: cpu.py.
//
// A warp takes a tile of sorted keys and counts the heads of runs by votes; after a scan of the
// counts it writes where runs begin, in order.  Lengths are the gaps between beginnings.
// Everything is an integer sum, a maximum or a place that one thread writes, so the order of the
// threads does not matter.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

constexpr int TILE = 1024;  // keys of a warp

// A key: the source above the destination.
__global__ void pack_packets(
    long long n, const unsigned int* src, const unsigned int* dst, unsigned long long* keys)
{
    for (long long i = global_thread(); i < n; i += all_threads())
        keys[i] = (unsigned long long)src[i] << 32 | dst[i];
}

// True where key i begins a run of keys that are equal above `shift` bits.
template <typename K>
__device__ __forceinline__ bool is_head(const K* keys, long long i, int shift)
{
    return i == 0 || (keys[i] >> shift) != (keys[i - 1] >> shift);
}

// How many runs begin in each tile.
template <typename K>
__global__ void count_heads(long long n, const K* keys, int shift, int* counts)
{
    long long tile = global_thread() / WARP;
    if (tile * TILE >= n) return;
    int heads = 0;
#pragma unroll 8
    for (int step = 0; step < TILE; step += WARP) {
        long long i = tile * TILE + step + lane();
        heads += __popc(__ballot_sync(ALL, i < n && is_head(keys, i, shift)));
    }
    if (lane() == 0) counts[tile] = heads;
}

// The number of links and of sources that begin in each tile, in one pass.
__global__ void count_links(
    long long n, const unsigned long long* keys, int* link_counts, int* source_counts)
{
    long long tile = global_thread() / WARP;
    if (tile * TILE >= n) return;
    int links = 0, sources = 0;
#pragma unroll 8
    for (int step = 0; step < TILE; step += WARP) {
        long long i = tile * TILE + step + lane();
        unsigned long long key = i < n ? keys[i] : 0, before = i > 0 && i < n ? keys[i - 1] : 0;
        links += __popc(__ballot_sync(ALL, i < n && (i == 0 || key != before)));
        sources += __popc(__ballot_sync(ALL, i < n && (i == 0 || key >> 32 != before >> 32)));
    }
    if (lane() == 0) {
        link_counts[tile] = links;
        source_counts[tile] = sources;
    }
}

// Words for the host, written into its memory: a copy would wait behind large ones under way.
__global__ void tell_host(const long long* first, const long long* second, long long* host)
{
    if (threadIdx.x == 0) host[0] = *first;
    if (threadIdx.x == 1) host[1] = *second;
}

// Where runs begin, and the key there.  `values` may be null.
template <typename K, typename P, typename V>
__global__ void write_heads(
    long long n, const K* keys, int shift, const long long* places, P* starts, V* values)
{
    long long tile = global_thread() / WARP;
    if (tile * TILE >= n) return;
    long long place = places[tile];
#pragma unroll 4
    for (int step = 0; step < TILE; step += WARP) {
        long long i = tile * TILE + step + lane();
        bool head = i < n && is_head(keys, i, shift);
        unsigned votes = __ballot_sync(ALL, head);
        if (head) {
            long long at = place + __popc(votes & lanes_below());
            starts[at] = (P)i;
            if (values != nullptr) values[at] = (V)(keys[i] >> shift);
        }
        place += __popc(votes);
    }
}

// Links and sources in one pass: where each begins among the packets, the destination of a link,
// and the first link of a source.
template <typename P>
__global__ void write_links(
    long long n, const unsigned long long* keys, const long long* link_places,
    const long long* source_places, P* link_starts, unsigned int* destinations, P* source_starts,
    P* source_links)
{
    long long tile = global_thread() / WARP;
    if (tile * TILE >= n) return;
    long long link = link_places[tile], source = source_places[tile];
#pragma unroll 4
    for (int step = 0; step < TILE; step += WARP) {
        long long i = tile * TILE + step + lane();
        unsigned long long key = i < n ? keys[i] : 0, before = i > 0 && i < n ? keys[i - 1] : 0;
        bool is_link = i < n && (i == 0 || key != before);
        bool is_source = i < n && (i == 0 || key >> 32 != before >> 32);
        unsigned links = __ballot_sync(ALL, is_link), sources = __ballot_sync(ALL, is_source);
        long long at = link + __popc(links & lanes_below());
        if (is_link) {
            link_starts[at] = (P)i;
            destinations[at] = (unsigned int)key;
        }
        if (is_source) {
            long long row = source + __popc(sources & lanes_below());
            source_starts[row] = (P)i;
            source_links[row] = (P)at;
        }
        link += __popc(links);
        source += __popc(sources);
    }
}

// The largest of many numbers, and how often it occurs.
struct Largest {
    unsigned long long value, many;
};

struct Larger {
    __device__ __forceinline__ Largest operator()(Largest a, Largest b) const
    {
        if (a.value == b.value) return {a.value, a.many + b.many};
        return a.value > b.value ? a : b;
    }
};

// Of this block, written by one thread.  block_reduce takes numbers only, so it is done here.
__device__ __forceinline__ void write_largest(Largest mine, unsigned long long* found)
{
    __shared__ unsigned long long values[WARP], numbers[WARP];
    Larger larger;
    for (int step = WARP / 2; step > 0; step /= 2) {
        Largest other = {__shfl_xor_sync(ALL, mine.value, step), __shfl_xor_sync(ALL, mine.many, step)};
        mine = larger(mine, other);
    }
    if (lane() == 0) {
        values[warp()] = mine.value;
        numbers[warp()] = mine.many;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < (int)(blockDim.x / WARP); w++) mine = larger(mine, {values[w], numbers[w]});
    found[2 * blockIdx.x] = mine.value;
    found[2 * blockIdx.x + 1] = mine.many;
}

// The largest gap between beginnings; the last run ends at `end`.
template <typename P>
__global__ void largest_gap(long long n, const P* starts, long long end, unsigned long long* found)
{
    Largest mine = {0, 0};
    Larger larger;
    for (long long i = global_thread(); i < n; i += all_threads()) {
        unsigned long long next = i + 1 < n ? (unsigned long long)starts[i + 1] : end;
        mine = larger(mine, {next - starts[i], 1});
    }
    write_largest(mine, found);
}

template <typename C>
__global__ void largest_value(long long n, const C* numbers, unsigned long long* found)
{
    Largest mine = {0, 0};
    Larger larger;
    for (long long i = global_thread(); i < n; i += all_threads())
        mine = larger(mine, {(unsigned long long)numbers[i], 1});
    write_largest(mine, found);
}

// Lengths of runs.
template <typename P, typename C>
__global__ void write_gaps(long long n, const P* starts, long long end, C* lengths)
{
    for (long long i = global_thread(); i < n; i += all_threads())
        lengths[i] = (C)((i + 1 < n ? (long long)starts[i + 1] : end) - (long long)starts[i]);
}

// The source of each row, from the key where it begins.
template <typename P>
__global__ void write_sources(
    long long n, const unsigned long long* keys, const P* starts, unsigned int* sources)
{
    for (long long i = global_thread(); i < n; i += all_threads())
        sources[i] = (unsigned int)(keys[starts[i]] >> 32);
}

// Links of a matrix as keys: a thread for each link finds its row.
__global__ void write_keys(
    long long links, long long rows, const unsigned int* sources, const long long* row_starts,
    const unsigned int* destinations, unsigned long long* keys)
{
    for (long long k = global_thread(); k < links; k += all_threads()) {
        long long lo = 0, hi = rows;  // row_starts[lo] <= k < row_starts[hi]
        while (hi - lo > 1) {
            long long middle = (lo + hi) / 2;
            if (row_starts[middle] <= k) lo = middle;
            else hi = middle;
        }
        keys[k] = (unsigned long long)sources[lo] << 32 | destinations[k];
    }
}

// Packets beyond the first of a link, added to those of its destination.  `packets` holds the
// fan-in at first.  For few links with several packets: each looks for its destination.
// Races: `packets` is changed by atomicAdd alone.
template <typename C>
__global__ void add_extras(
    long long links, const unsigned int* destinations, const C* counts, long long n,
    const unsigned int* values, unsigned long long* packets)
{
    for (long long k = global_thread(); k < links; k += all_threads()) {
        C count = counts[k];
        if (count <= 1) continue;
        unsigned int wanted = destinations[k];
        long long lo = 0, hi = n;  // values[lo] <= wanted < values[hi]
        while (hi - lo > 1) {
            long long middle = (lo + hi) / 2;
            if (values[middle] <= wanted) lo = middle;
            else hi = middle;
        }
        atomicAdd(&packets[lo], (unsigned long long)(count - 1));
    }
}

// A destination above its packets; for many links with several packets.
template <typename C>
__global__ void pack_counts(
    long long links, const unsigned int* destinations, const C* counts, unsigned long long* keys)
{
    for (long long k = global_thread(); k < links; k += all_threads())
        keys[k] = (unsigned long long)destinations[k] << 32 | (unsigned long long)counts[k];
}

// Differences of running sums at the ends of runs.  sums[i] is the sum of all up to i.
template <typename P>
__global__ void sums_of_runs(
    long long n, const P* starts, long long end, const long long* sums, long long* out)
{
    for (long long i = global_thread(); i < n; i += all_threads()) {
        long long begin = (long long)starts[i], stop = i + 1 < n ? (long long)starts[i + 1] : end;
        out[i] = sums[stop - 1] - (begin > 0 ? sums[begin - 1] : 0);
    }
}

// The largest of each window and how often it occurs, in two passes.  Entities are in the order of
// their windows, so lanes of a warp mostly share one, and one lane makes the atomic call for all.
// Races: `most` by atomicMax, `many` by atomicAdd alone; `most` is only read in the second pass.
template <bool COUNT>
__global__ void largest_of_windows(
    long long n, const unsigned int* window, const long long* values, unsigned long long* most,
    unsigned long long* many)
{
    long long i = global_thread();
    bool here = i < n;
    unsigned int w = here ? window[i] : 0xffffffffu;
    unsigned long long value = here ? (unsigned long long)values[i] : 0;
    unsigned int first = __shfl_sync(ALL, w, 0);
    bool alike = __all_sync(ALL, w == first);
    if (COUNT) {
        bool attains = here && value == most[w];
        if (alike) {
            unsigned votes = __ballot_sync(ALL, attains);
            if (lane() == 0 && votes) atomicAdd(&many[w], (unsigned long long)__popc(votes));
        } else if (attains) {
            atomicAdd(&many[w], 1ull);
        }
        return;
    }
    if (alike) {
        value = warp_reduce(value, Most());
        if (lane() == 0 && here) atomicMax(&most[w], value);
    } else if (here) {
        atomicMax(&most[w], value);
    }
}
