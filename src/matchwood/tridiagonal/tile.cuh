// Tiles of arrays in shared memory: loaded in whole cache lines, then each thread reads its own consecutive part.
//
// A thread block is one warp.  Each of its threads owns CHUNKS consecutive chunks of 16 bytes of every array.  In
// the order of global memory, eight neighbouring threads would read from the same banks.  So the lowest three bits
// of a chunk's number are combined by XOR with those of its thread.  Then any eight threads that read their k-th
// chunk use eight different groups of banks.
//
// Loops over chunks are unrolled and of known length, so that places are one address plus constants.  Computing
// each place took a fifth of all instructions.
#pragma once

#include "matchwood/threads.cuh"

struct alignas(16) Chunk {
    unsigned int word[4];
};

constexpr int TILE_THREADS = 32;  // threads of a block: one warp

template <int CHUNKS>
__device__ __forceinline__ int chunk_place(int chunk)
{
    static_assert(CHUNKS == 8 || CHUNKS == 16, "chunks of a thread");
    return chunk ^ ((chunk / CHUNKS) & 7);
}

// The place of chunk TILE_THREADS * j + thread, from that of chunk `thread`; what depends on j is a constant.
template <int CHUNKS>
__device__ __forceinline__ int chunk_place(int thread_place, int j)
{
    return TILE_THREADS * j + (thread_place ^ ((TILE_THREADS / CHUNKS * j) & 7));
}

// Copy 16 bytes from global to shared memory without waiting; `tile_loaded` waits.
__device__ __forceinline__ void copy_chunk(Chunk* to, const void* from)
{
#if __CUDA_ARCH__ >= 800
    unsigned int place = (unsigned int)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
#else
    *to = *(const Chunk*)from;
#endif
}

__device__ __forceinline__ void tile_loaded()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncwarp();
}

template <int CHUNKS, typename T>
__device__ __forceinline__ T& tile_item(Chunk* tile, int item)
{
    constexpr int EACH = 16 / sizeof(T);
    return ((T*)(tile + chunk_place<CHUNKS>(item / EACH)))[item % EACH];
}

// Load the tile from an array of `size` items, from item `first` on; items past the end become `filler(item)`.
// All threads of the block call; `tile_loaded` must follow.
template <int CHUNKS, typename T, typename Filler>
__device__ __forceinline__ void load_tile(Chunk* tile, const T* array, long long first, long long size,
                                          Filler filler)
{
    constexpr int EACH = 16 / sizeof(T), CHUNKS_ALL = CHUNKS * TILE_THREADS;
    const T* begin = array + first;
    if (first + CHUNKS_ALL * EACH <= size && ((unsigned long long)begin & 15) == 0) {
        int place = chunk_place<CHUNKS>(threadIdx.x);
        const Chunk* from = (const Chunk*)begin + threadIdx.x;
#pragma unroll
        for (int j = 0; j < CHUNKS; ++j) copy_chunk(tile + chunk_place<CHUNKS>(place, j), from + j * TILE_THREADS);
    } else {
        for (int i = threadIdx.x; i < CHUNKS_ALL * EACH; i += TILE_THREADS)
            tile_item<CHUNKS, T>(tile, i) = first + i < size ? begin[i] : filler(i);
    }
}

// Read chunk number `chunk` of this thread.
template <int CHUNKS, typename T>
__device__ __forceinline__ void get_chunk(const Chunk* tile, int chunk, T (&values)[16 / sizeof(T)])
{
    Chunk whole = tile[chunk_place<CHUNKS>((int)threadIdx.x * CHUNKS + chunk)];
    memcpy(values, &whole, 16);
}

template <int CHUNKS, typename T>
__device__ __forceinline__ void put_chunk(Chunk* tile, int chunk, const T (&values)[16 / sizeof(T)])
{
    Chunk whole;
    memcpy(&whole, values, 16);
    tile[chunk_place<CHUNKS>((int)threadIdx.x * CHUNKS + chunk)] = whole;
}

// Store the tile to an array, from item `first` on.  All threads of the block call, after __syncwarp.
template <int CHUNKS, typename T>
__device__ __forceinline__ void store_tile(Chunk* tile, T* array, long long first, long long size)
{
    constexpr int EACH = 16 / sizeof(T), CHUNKS_ALL = CHUNKS * TILE_THREADS;
    T* begin = array + first;
    if (first + CHUNKS_ALL * EACH <= size && ((unsigned long long)begin & 15) == 0) {
        int place = chunk_place<CHUNKS>(threadIdx.x);
        Chunk* to = (Chunk*)begin + threadIdx.x;
#pragma unroll
        for (int j = 0; j < CHUNKS; ++j) to[j * TILE_THREADS] = tile[chunk_place<CHUNKS>(place, j)];
    } else {
        for (int i = threadIdx.x; i < CHUNKS_ALL * EACH; i += TILE_THREADS)
            if (first + i < size) begin[i] = tile_item<CHUNKS, T>(tile, i);
    }
}

// Item i of the tile becomes array[order[first + i]], and a copy of it goes to gathered[first + i]; 1 where the
// order is negative, 0 past the end.  All indices are loaded before the first is used, so that loads overlap.
template <int CHUNKS, typename T, typename I>
__device__ __forceinline__ void gather_tile(Chunk* tile, const T* array, const I* order, long long first,
                                            long long size, T* gathered)
{
    constexpr int EACH = CHUNKS * 16 / sizeof(T);
    I place[EACH];
    T value[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        long long i = first + k * TILE_THREADS + threadIdx.x;
        place[k] = order[i < size ? i : 0];
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) value[k] = place[k] >= 0 ? array[place[k]] : T(1);
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        int i = k * TILE_THREADS + threadIdx.x;
        bool there = first + i < size;
        tile_item<CHUNKS, T>(tile, i) = there ? value[k] : T(0);
        if (there) gathered[first + i] = value[k];
    }
}

// Item i of the tile goes to array[order[first + i]], unless that place is negative.  Caller: __syncwarp before.
template <int CHUNKS, typename T, typename I>
__device__ __forceinline__ void scatter_tile(Chunk* tile, T* array, const I* order, long long first, long long size)
{
    constexpr int EACH = CHUNKS * 16 / sizeof(T);
    I place[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        long long i = first + k * TILE_THREADS + threadIdx.x;
        place[k] = i < size ? order[i] : I(-1);
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k)
        if (place[k] >= 0) array[place[k]] = tile_item<CHUNKS, T>(tile, k * TILE_THREADS + threadIdx.x);
}
