// Tiles of arrays in shared memory: loaded in whole lines, read by one thread in a row.
//
// Each thread of a block owns CHUNKS consecutive chunks of 16 bytes of every array.  Written as they
// lie in memory, eight neighbouring threads would read from the same banks; so the lowest three bits
// of a chunk's number are mixed with those of its thread, and any eight threads that read the same
// chunk of theirs hit eight different bank groups.
#pragma once

#include "matchwood/threads.cuh"

struct alignas(16) Chunk {
    unsigned int word[4];
};

template <int CHUNKS>
__device__ __forceinline__ int chunk_place(int chunk)
{
    constexpr int ROW = CHUNKS < 8 ? 8 : CHUNKS;
    return chunk ^ ((chunk / ROW) & 7);
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
    __syncthreads();
}

template <int CHUNKS, typename T>
__device__ __forceinline__ T& tile_item(Chunk* tile, int item)
{
    constexpr int EACH = 16 / sizeof(T);
    return ((T*)(tile + chunk_place<CHUNKS>(item / EACH)))[item % EACH];
}

// Items first.. of an array of `size` into the tile; those past the end become `filler(item)`.
// All threads of the block call; `tile_loaded` must follow.
template <int CHUNKS, typename T, typename Filler>
__device__ __forceinline__ void load_tile(Chunk* tile, const T* array, long long first, long long size,
                                          Filler filler)
{
    constexpr int EACH = 16 / sizeof(T);
    int chunks = CHUNKS * blockDim.x;
    bool whole = first + (long long)chunks * EACH <= size && ((unsigned long long)(array + first) & 15) == 0;
    if (whole) {
        for (int i = threadIdx.x; i < chunks; i += blockDim.x)
            copy_chunk(tile + chunk_place<CHUNKS>(i), array + first + (long long)i * EACH);
    } else {
        for (int i = threadIdx.x; i < chunks * EACH; i += blockDim.x)
            tile_item<CHUNKS, T>(tile, i) = first + i < size ? array[first + i] : filler(i);
    }
}

// Chunk number `chunk` of this thread's own.
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

// The tile into items first.. of an array.  All threads of the block call, after __syncthreads.
template <int CHUNKS, typename T>
__device__ __forceinline__ void store_tile(Chunk* tile, T* array, long long first, long long size)
{
    constexpr int EACH = 16 / sizeof(T);
    int chunks = CHUNKS * blockDim.x;
    bool whole = first + (long long)chunks * EACH <= size && ((unsigned long long)(array + first) & 15) == 0;
    if (whole) {
        for (int i = threadIdx.x; i < chunks; i += blockDim.x)
            *(Chunk*)(array + first + (long long)i * EACH) = tile[chunk_place<CHUNKS>(i)];
    } else {
        for (int i = threadIdx.x; i < chunks * EACH; i += blockDim.x)
            if (first + i < size) array[first + i] = tile_item<CHUNKS, T>(tile, i);
    }
}
