// The two passes over the rows, for plain rows and blocks alike: one warp a block, one part a thread.
//
//   reduce_rows         a thread reduces its part to its element
//   substitute_rows     a thread finds the unknowns between the two ends of its part
//
// The rows of a block's parts lie in shared memory (tile.cuh), loaded in whole lines.  A thread reads and writes
// only its own part there, apart from loading and storing, which are fenced by barriers.  plain/gpu.cu and
// block/gpu.cu say what a part is:
//
//   Rows<T>             P, block rows of a part and of a block of threads, chunks of 16 bytes, where the solution lies
//   reduce_part         the elimination of a part; its element
//   picks_of            the pivots of a part, as the reduction left them
//   substitute_part     the elimination once more, and back; the solution takes its place in the tile
//   mark_rows           which rows are off
#pragma once

#include "matchwood/elements.cuh"
#include "matchwood/mend.cuh"
#include "matchwood/residual.cuh"
#include "matchwood/tile.cuh"

template <typename T>
struct Rows;

// A constant as an argument, by which a function of the including file is chosen.
template <bool LOOK>
struct Looking {};

// Four arrays of the block's tile; rows past the end are X = 0.  With `perm` the right-hand side of equation i is
// b[perm[i]], which is also written to gathered[i]; 1 where perm is negative.
template <typename T, typename I>
__device__ __forceinline__ void load_rows(Chunk* tile, long long n, const T* dl, const T* d, const T* du, const T* b,
                                          const I* perm, T* gathered)
{
    constexpr int P = Rows<T>::P, CHUNKS = Rows<T>::CHUNKS, RIGHT_CHUNKS = Rows<T>::RIGHT_CHUNKS, ARRAY = Rows<T>::ARRAY;
    long long first = (long long)blockIdx.x * Rows<T>::BLOCK;
    Chunk* right = tile + 3 * ARRAY;
    auto zero = [](int) { return T(0); };
    auto identity = [](int i) { return i % (P * P) % (P + 1) ? T(0) : T(1); };
    load_tile<CHUNKS>(tile, dl, P * P * first, P * P * n, zero);
    load_tile<CHUNKS>(tile + ARRAY, d, P * P * first, P * P * n, identity);
    load_tile<CHUNKS>(tile + 2 * ARRAY, du, P * P * first, P * P * n, zero);
    if (perm == nullptr) {
        load_tile<RIGHT_CHUNKS>(right, b, P * first, P * n, zero);
    } else {
        gather_tile<RIGHT_CHUNKS>(right, b, perm, P * first, P * n, gathered);
    }
}

// Wait for them, and clear what is not part of the matrix.
template <typename T>
__device__ __forceinline__ void rows_loaded(Chunk* tile, long long n)
{
    constexpr int P = Rows<T>::P, CHUNKS = Rows<T>::CHUNKS, ROWS = Rows<T>::ROWS;
    tile_loaded();
    int mine = threadIdx.x * ROWS;
    long long start = (long long)blockIdx.x * Rows<T>::BLOCK + mine;
    if (start == 0)
        for (int k = 0; k < P * P; ++k) tile_item<CHUNKS, T>(tile, k) = T(0);
    if (start < n && n <= start + ROWS) {
        int last = (mine + (int)(n - 1 - start)) * P * P;
        for (int k = 0; k < P * P; ++k) tile_item<CHUNKS, T>(tile + 2 * Rows<T>::ARRAY, last + k) = T(0);
    }
}

template <typename T, typename I>
__global__ void reduce_rows(long long n, const T* __restrict__ dl, const T* __restrict__ d,
                            const T* __restrict__ du, const T* __restrict__ b, const I* __restrict__ perm,
                            T* __restrict__ gathered, T* __restrict__ elements, long long total, long long parts,
                            unsigned long long* status)
{
    extern __shared__ Chunk tile[];
    load_rows(tile, n, dl, d, du, b, perm, gathered);
    rows_loaded<T>(tile, n);
    long long part = global_thread();
    if (part >= parts) return;
    Elements<Rows<T>::P, T> out = {elements, total};
    if (part == 0) *out.count() = 0;
    reduce_part(tile, out, part, status);
}

template <typename T, typename I, bool LOOK>
__global__ void substitute_rows(long long n, const T* __restrict__ dl, const T* __restrict__ d,
                                const T* __restrict__ du, const T* __restrict__ b, T* elements, long long total,
                                long long parts, const T* __restrict__ ends, const I* __restrict__ perm,
                                T* __restrict__ x, T limit, int few, int usual, unsigned* marks,
                                unsigned long long* status)
{
    constexpr int P = Rows<T>::P, BLOCK = Rows<T>::BLOCK, RIGHT_CHUNKS = Rows<T>::RIGHT_CHUNKS;
    extern __shared__ Chunk tile[];
    load_rows<T, I>(tile, n, dl, d, du, b, nullptr, nullptr);
    long long part = global_thread(), first = (long long)blockIdx.x * BLOCK;
    bool there = part < parts;
    Elements<P, T> known = {elements, total};
    auto picks = picks_of(known, there ? part : 0);
    rows_loaded<T>(tile, n);
    Judge<T> judge(limit);
    if (there) substitute_part(tile, ends + 2 * P * part, picks, judge, Looking<LOOK>());
    __syncwarp();
    Chunk* solution = tile + Rows<T>::SOLUTION;
    if (perm == nullptr) {
        store_tile<RIGHT_CHUNKS>(solution, x, P * first, P * n);
    } else {
        scatter_tile<RIGHT_CHUNKS>(solution, x, perm, P * first, P * n);
    }
    if (LOOK) {
        Lists lists(marks, parts);
        if (part < lists.cleared()) lists.counts[part] = 0;
        mark_rows(solution, n, dl, d, du, b, ends, there ? marks + part : nullptr, marks, judge);
        if (judge.report(known.count(), few, usual, first, status)) {
            const T* arrays[3] = {dl, d, du};
            for (const T* array : arrays)
                look_for_subnormal(array, P * P * first, P * P * BLOCK, P * P * n, first, status);
            look_for_subnormal(b, P * first, P * BLOCK, P * n, first, status);
        }
    }
}
