// The two passes over the rows, for plain rows and blocks: a thread block is one warp, a thread has one part.
//
//   reduce_rows         a thread reduces its part to its element
//   substitute_rows     a thread computes the unknowns between the two ends of its part
//
// The rows of a thread block's parts are in shared memory (tile.cuh), loaded in whole lines.  A thread reads and
// writes only its own part there; loads and stores of the whole tile are separated from that by barriers.
// plain/gpu.cu and block/gpu.cu define a part:
//
//   Rows<T>             P, block rows of a part and of a thread block, chunks of 16 bytes, place of the solution
//   reduce_part         the elimination of a part; its element
//   picks_of            the pivots of a part, as reduce_part stored them
//   substitute_part     the elimination again, and back; the solution goes to its place in the tile
//   mark_rows           which rows are off
#pragma once

#include "matchwood/elements.cuh"
#include "matchwood/mend.cuh"
#include "matchwood/residual.cuh"
#include "matchwood/tile.cuh"

template <typename T>
struct Rows;

// A constant as the type of an argument, so that substitute_part of the including file can depend on it.
template <bool CHECK>
struct Checking {};

// Load the four arrays of the thread block's tile; rows past the end are X = 0.  With `perm` the right-hand side of
// equation i is b[perm[i]], which is also written to gathered[i]; 1 where perm is negative.
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

// Wait for the loads, and clear dl of the first row and du of the last, which are not part of the matrix.
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

template <typename T, typename I, bool CHECK>
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
    RowChecker<T> checker(limit);
    if (there) substitute_part(tile, ends + 2 * P * part, picks, checker, Checking<CHECK>());
    __syncwarp();
    Chunk* solution = tile + Rows<T>::SOLUTION;
    if (perm == nullptr) {
        store_tile<RIGHT_CHUNKS>(solution, x, P * first, P * n);
    } else {
        scatter_tile<RIGHT_CHUNKS>(solution, x, perm, P * first, P * n);
    }
    if (CHECK) {
        Lists lists(marks, parts);
        if (part < lists.cleared()) lists.counts[part] = 0;
        mark_rows(solution, n, dl, d, du, b, ends, there ? marks + part : nullptr, marks, checker);
        if (checker.report(known.count(), few, usual, first, status)) {
            const T* arrays[3] = {dl, d, du};
            for (const T* array : arrays)
                report_subnormal(array, P * P * first, P * P * BLOCK, P * P * n, first, status);
            report_subnormal(b, P * first, P * BLOCK, P * n, first, status);
        }
    }
}
