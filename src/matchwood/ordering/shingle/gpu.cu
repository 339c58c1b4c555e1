// Shingles on the GPU: the least hashes of the neighbours of each vertex.  Host side: gpu.py.
#include "matchwood/atomics.cuh"
#include "matchwood/edges.cuh"
#include "matchwood/hashing.cuh"

constexpr int TILE = 2048;  // rows and entries of a warp

// One thread per vertex: its two hashes, one after the other, and words that any hash is below.
__global__ void hash_vertices(long long n, unsigned long long seed, unsigned long long* hashed, unsigned long long* least)
{
    long long v = global_thread();
    if (v >= n) return;
    hashed[2 * v] = hash2(v, 0, seed);
    hashed[2 * v + 1] = hash2(v, 1, seed);
    least[v] = least[n + v] = ~0ull;
}

// Lowered by atomicMin alone, after a read, which saves most atomics: a minimum is the same in any
// order of arrival.  Long rows are shared by many warps.
template <typename I>
__global__ void lower_rows(I n, I nnz, const I* indptr, const I* indices, const unsigned long long* hashed,
                           unsigned long long* least)
{
    for_tiles<TILE>(n, nnz, indptr, [&](I v, I begin, I end) {
        WarpRows<I> rows(begin, end);
        rows.for_entries([&](int owner, I entry, bool is_entry) {
            I row = __shfl_sync(ALL, v, owner);
            if (!is_entry) return;
            I u = indices[entry];
#pragma unroll
            for (int which = 0; which < 2; ++which) {
                unsigned long long word = hashed[2 * (long long)u + which];
                unsigned long long* at = &least[which * (long long)n + row];
                if (load_relaxed(at) > word) lower_to(at, word);
            }
        });
    });
}
