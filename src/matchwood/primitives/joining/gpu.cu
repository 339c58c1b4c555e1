// A round of joins on the GPU.  Host side: gpu.py; the rule: __init__.py.
//
// Rows and entries are distributed to warps in tiles, so that many warps share a hub.  Three passes over
// the entries.  Each only raises words to a maximum, so the order of arrival does not matter:
//   raise_gains       the largest gain of each row, as bits: positive doubles ascend as integers do
//   pick_neighbours   of the neighbours that gain as much, the largest mix64
//   settle_joins      the neighbour with that gain and that mix64, if it goes up: only one has both
#include "matchwood/atomics.cuh"
#include "matchwood/edges.cuh"
#include "matchwood/hashing.cuh"

constexpr int TILE = 2048;  // rows and entries of a warp

// In the same order of operations on all engines; rounded after each, so no fused multiplication.
__device__ __forceinline__ double gain_of(long long w, long long mine, long long other, double total, double resolution)
{
    double product = __dmul_rn(__dmul_rn(resolution, (double)mine), (double)other);
    return __dsub_rn((double)w, __ddiv_rn(product, total));
}

template <typename I>
__device__ __forceinline__ unsigned long long mixed_of(I name)
{
    return mix64((unsigned long long)name);
}

template <typename I>
__device__ __forceinline__ bool goes_up(const long long* volume, const I* names, I r, I u)
{
    if (volume[r] != volume[u]) return volume[r] < volume[u];
    return mixed_of(names[r]) < mixed_of(names[u]);
}

// each(row, neighbour, bits of the gain) for entries that gain something.
template <typename I, typename Each>
__device__ __forceinline__ void for_gains(I n, I nnz, const I* indptr, const I* indices, const long long* weights,
                                          const long long* volume, double total, double resolution, Each each)
{
    for_tiles<TILE>(n, nnz, indptr, [&](I v, I begin, I end) {
        WarpRows<I> rows(begin, end);
        rows.for_entries([&](int owner, I entry, bool is_entry) {
            I r = __shfl_sync(ALL, v, owner);
            if (!is_entry) return;
            I u = indices[entry];
            if (u == r) return;
            long long w = weights == nullptr ? 1 : weights[entry];
            double gain = gain_of(w, volume[r], volume[u], total, resolution);
            if (gain > 0) each(r, u, (unsigned long long)__double_as_longlong(gain));
        });
    });
}

template <typename I>
__global__ void raise_gains(I n, I nnz, const I* indptr, const I* indices, const long long* weights,
                            const long long* volume, const I* names, double total, double resolution,
                            unsigned long long* gain)
{
    for_gains(n, nnz, indptr, indices, weights, volume, total, resolution, [&](I r, I, unsigned long long bits) {
        if (load_relaxed(&gain[r]) < bits) raise_to(&gain[r], bits);
    });
}

template <typename I>
__global__ void pick_neighbours(I n, I nnz, const I* indptr, const I* indices, const long long* weights,
                                const long long* volume, const I* names, double total, double resolution,
                                const unsigned long long* gain, unsigned long long* mixed)
{
    for_gains(n, nnz, indptr, indices, weights, volume, total, resolution, [&](I r, I u, unsigned long long bits) {
        if (bits != gain[r]) return;
        unsigned long long hash = mixed_of(names[u]);
        if (load_relaxed(&mixed[r]) < hash) raise_to(&mixed[r], hash);
    });
}

template <typename I>
__global__ void settle_joins(I n, I nnz, const I* indptr, const I* indices, const long long* weights,
                             const long long* volume, const I* names, double total, double resolution,
                             const unsigned long long* gain, const unsigned long long* mixed, I* target)
{
    for_gains(n, nnz, indptr, indices, weights, volume, total, resolution, [&](I r, I u, unsigned long long bits) {
        if (bits == gain[r] && mixed_of(names[u]) == mixed[r] && goes_up(volume, names, r, u)) target[r] = u;
    });
}

constexpr int STEPS = 32;  // up a tree, in one launch

// One thread per community: its ancestor STEPS further up, or the root.  *changed is set unless all
// ancestors are roots.
template <typename I>
__global__ void climb(I n, const I* __restrict__ parent, I* __restrict__ ancestor, int* changed)
{
    long long v = global_thread();
    if (v >= n) return;
    I at = parent[v], above = parent[at];
    for (int step = 0; step < STEPS && above != at; ++step) {
        at = above;
        above = parent[at];
    }
    ancestor[v] = at;
    if (above != at) *changed = 1;
}
