// A graph added up by labels on the GPU.  Host side: __init__.py.
//
// Entries between labels become numbers, row << shift | column, which are sorted.  What lies inside a
// label is added to its word.  Neighbouring lanes mostly have the same label: they add up among
// themselves first, so that few atomic additions are left where a label has many entries.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// Adds w to sums[label], where label >= 0; integers, so the order does not matter.  All lanes call.
template <typename I>
__device__ __forceinline__ void add_to_label(I label, long long w, long long* sums)
{
    I before = __shfl_up_sync(ALL, label, 1), after = __shfl_down_sync(ALL, label, 1);
    unsigned heads = __ballot_sync(ALL, lane() == 0 || before != label);
    int head = 31 - __clz(heads & (lanes_below() | 1u << lane()));  // where this run of equal labels begins
#pragma unroll
    for (int step = 1; step < WARP; step *= 2) {
        long long below = __shfl_up_sync(ALL, w, step);
        if (lane() - step >= head) w += below;
    }
    bool is_end = lane() == WARP - 1 || after != label;
    if (is_end && label >= 0 && w != 0)
        atomicAdd(reinterpret_cast<unsigned long long*>(&sums[label]), (unsigned long long)w);
}

// One thread per entry.  data: null where all weigh 1.
template <typename I>
__global__ void label_entries(long long m, const I* __restrict__ rows, const I* __restrict__ indices,
                              const long long* __restrict__ data, const I* __restrict__ labels, int shift,
                              unsigned long long* __restrict__ keys, bool* __restrict__ between, long long* inner)
{
    long long e = global_thread();
    I row = I(-1), column = I(-1);
    if (e < m) {
        row = labels[rows[e]];
        column = labels[indices[e]];
        keys[e] = (unsigned long long)row << shift | (unsigned long long)column;
        between[e] = row != column;
    }
    long long w = e < m && row == column ? (data == nullptr ? 1 : data[e]) : 0;
    add_to_label(row, w, inner);
}

// One thread per vertex: sums of values by label.
template <typename I>
__global__ void add_by_label(long long n, const I* __restrict__ labels, const long long* __restrict__ values,
                             long long* sums)
{
    long long v = global_thread();
    add_to_label(v < n ? labels[v] : I(-1), v < n ? values[v] : 0ll, sums);
}
