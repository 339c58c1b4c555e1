// Exclusive scan in one pass over the counts, by look-back (D. Merrill, M. Garland. Single-pass
// parallel prefix scan with decoupled look-back. NVIDIA NVR-2016-002).  Host: gpu.py.
//
// A tile is TILE counts, one block each.  The block sums its tile, publishes the sum, and looks
// back over the tiles before it: a tile either offers its own sum (SUM) or everything up to its
// end (PREFIX).  Tiles are taken in order from a counter, so whatever a block waits for is running.
//
// Races: a number is written before its flag and read after it, with a fence on both sides.
#include "matchwood/atomics.cuh"
#include "matchwood/status.cuh"
#include "matchwood/threads.cuh"

constexpr int BLOCK = 256;                         // threads of a block
constexpr int STEPS = 4;                           // a warp's turns in its part of the tile
constexpr int EACH = 4;                            // neighbouring counts of a thread in a turn
constexpr int WARP_PART = WARP * EACH * STEPS;     // counts of a warp
constexpr int TILE = WARP_PART * (BLOCK / WARP);   // counts of a block
constexpr unsigned DOES_NOT_FIT = 1;  // code of the failure: a sum is too large for its type
constexpr unsigned SUM = 1, PREFIX = 2;  // flags of a tile: its own sum, or that of all up to it, is there

// EACH neighbouring numbers move 16 bytes at a time where the array allows it: one number at a
// time, a warp's stores would touch each sector four times.
template <typename T>
struct alignas(16) Pack {
    T value[16 / sizeof(T)];
};

template <typename T>
__device__ __forceinline__ bool packed(const T* array)
{
    return reinterpret_cast<unsigned long long>(array) % sizeof(Pack<T>) == 0;
}

template <typename T>
__device__ __forceinline__ void load_each(const T* from, T (&value)[EACH])
{
    constexpr int HOLDS = 16 / sizeof(T);
#pragma unroll
    for (int e = 0; e < EACH; e += HOLDS) {
        Pack<T> pack = *reinterpret_cast<const Pack<T>*>(from + e);
#pragma unroll
        for (int h = 0; h < HOLDS; ++h) value[e + h] = pack.value[h];
    }
}

template <typename T>
__device__ __forceinline__ void store_each(T* to, const T (&value)[EACH])
{
    constexpr int HOLDS = 16 / sizeof(T);
#pragma unroll
    for (int e = 0; e < EACH; e += HOLDS) {
        Pack<T> pack;
#pragma unroll
        for (int h = 0; h < HOLDS; ++h) pack.value[h] = value[e + h];
        *reinterpret_cast<Pack<T>*>(to + e) = pack;
    }
}

// Sum of all tiles before `tile`.  The first warp of the block calls.
__device__ __forceinline__ long long look_back(int tile, const unsigned int* flags,
                                               const long long* sums, const long long* prefixes)
{
    long long before = 0;
    for (int nearest = tile - 1;; nearest -= WARP) {
        int at = nearest - lane();
        unsigned int flag = PREFIX;  // before the first tile: nothing
        if (at >= 0) {
            while ((flag = load_relaxed(&flags[at])) == 0) {
            }
        }
        fence();
        __syncwarp();
        long long sum = 0;
        if (at >= 0) sum = load_relaxed(flag == PREFIX ? &prefixes[at] : &sums[at]);
        unsigned complete = __ballot_sync(ALL, flag == PREFIX);
        int last = complete ? __ffs(complete) - 1 : WARP - 1;
        before += warp_reduce(lane() <= last ? sum : 0, Plus());
        if (complete) return before;
    }
}

// offsets[i] = counts[0] + ... + counts[i - 1] for i = 0 .. n.  Caller: flags[0 .. tiles] are 0,
// flags[tiles] is the counter; sums and prefixes have a number for each tile; BLOCK threads.
// Fails with code 1 when an offset does not fit O.
template <typename C, typename O>
__global__ void __launch_bounds__(BLOCK)
scan(long long n, const C* __restrict__ counts, O* __restrict__ offsets, int tiles,
     unsigned int* flags, long long* sums, long long* prefixes, unsigned long long* status)
{
    __shared__ int my_tile;
    __shared__ long long my_before;
    if (threadIdx.x == 0) my_tile = atomicAdd(&flags[tiles], 1u);
    __syncthreads();
    int tile = my_tile;
    long long first = (long long)tile * TILE + warp() * WARP_PART + lane() * EACH;

    // values of a turn lie together in a thread, and turns follow each other in the warp's part
    C value[STEPS][EACH];
    long long turn_before[STEPS];
    long long part = 0;
    bool whole = (tile + 1ll) * TILE <= n;
    if (whole && packed(counts)) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
            load_each(counts + first + step * (WARP * EACH), value[step]);
    } else {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            long long at = first + step * (WARP * EACH);
#pragma unroll
            for (int e = 0; e < EACH; ++e) value[step][e] = at + e < n ? counts[at + e] : C(0);
        }
    }
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        long long mine = 0;
#pragma unroll
        for (int e = 0; e < EACH; ++e) mine += value[step][e];
        long long before = warp_exclusive_sum(mine);
        turn_before[step] = part + before;
        part += __shfl_sync(ALL, before + mine, WARP - 1);
    }
    // `part` is the warp's sum in all lanes; the block's order of warps is the order of counts
    long long total;
    long long warps_before = block_exclusive_sum(lane() == 0 ? part : 0, &total);
    warps_before = __shfl_sync(ALL, warps_before, 0);

    if (warp() == 0) {
        if (lane() == 0) {
            store_relaxed(tile ? &sums[tile] : &prefixes[tile], total);
            fence();
            store_relaxed(&flags[tile], tile ? SUM : PREFIX);
        }
        long long before = tile ? look_back(tile, flags, sums, prefixes) : 0;
        if (lane() == 0) {
            if (tile) {
                store_relaxed(&prefixes[tile], before + total);
                fence();
                store_relaxed(&flags[tile], PREFIX);
            }
            my_before = before;
        }
    }
    __syncthreads();
    long long block_before = my_before + warps_before;

    bool fits = true;
    bool stores_packs = whole && packed(offsets);
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        long long at = first + step * (WARP * EACH);
        long long sum = block_before + turn_before[step];
        O offset[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            offset[e] = (O)sum;
            if (at + e <= n) fits = fits && offset[e] == sum;
            sum += value[step][e];
        }
        if (stores_packs) {
            store_each(offsets + at, offset);
        } else {
#pragma unroll
            for (int e = 0; e < EACH; ++e)
                if (at + e <= n) offsets[at + e] = offset[e];
        }
    }
    if (!fits) fail(status, DOES_NOT_FIT, 0);
}
