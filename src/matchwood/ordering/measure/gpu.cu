// Bandwidth, profile and wavefronts on the GPU.  Host side: gpu.py; definitions: __init__.py.
#include "matchwood/atomics.cuh"
#include "matchwood/edges.cuh"

constexpr int TILE = 2048;  // rows and entries of a warp

// place[v], or v where there is none.
template <typename I>
__device__ __forceinline__ I at(const I* place, I v)
{
    return place == nullptr ? v : place[v];
}

template <typename I>
__global__ void start_rows(I n, const I* place, I* first)
{
    long long v = global_thread();
    if (v < n) first[v] = at(place, (I)v);
}

// first[u]: the least place of u and its neighbours; its own at first.  Lowered by atomicMin alone,
// after a read, which saves most atomics; long rows are shared by many warps.
template <typename I>
__global__ void lower_rows(I n, I nnz, const I* indptr, const I* indices, const I* place, I* first)
{
    for_tiles<TILE>(n, nnz, indptr, [&](I u, I begin, I end) {
        WarpRows<I>(begin, end).for_entries([&](int owner, I entry, bool is_entry) {
            I row = __shfl_sync(ALL, u, owner);
            if (!is_entry) return;
            I column = at(place, indices[entry]);
            if (load_relaxed(&first[row]) > column) lower_to(&first[row], column);
        });
    });
}

// The largest and the sum of all distances from the diagonal; 0 at first.
template <typename I>
__global__ void add_distances(
    I n, const I* place, const I* first, unsigned long long* most, unsigned long long* sum)
{
    unsigned long long largest = 0, all = 0;
    for (long long v = global_thread(); v < n; v += all_threads()) {
        unsigned long long distance = (unsigned long long)(at(place, (I)v) - first[v]);
        largest = distance > largest ? distance : largest;
        all += distance;
    }
    largest = block_reduce(largest, 0ull, Most());
    all = block_reduce(all, 0ull, Plus());
    if (threadIdx.x == 0) {
        atomicMax(most, largest);
        atomicAdd(sum, all);
    }
}

// Rows that begin at each place; 0 at first.
template <typename I>
__global__ void count_first(I n, const I* first, I* count)
{
    long long v = global_thread();
    if (v < n) take(&count[first[v]], I(1));
}

// The wavefronts are the running sums of those counts, less the rows that have ended: their largest and the
// sum of their squares, low 32 bits and the rest apart, so that it is exact; 0 at first.
template <typename I>
__global__ void add_fronts(
    I n, const I* begun, unsigned long long* most, unsigned long long* low, unsigned long long* high)
{
    unsigned long long largest = 0, lower = 0, upper = 0;
    for (long long i = global_thread(); i < n; i += all_threads()) {
        unsigned long long front = (unsigned long long)(begun[i] - i), square = front * front;
        largest = front > largest ? front : largest;
        lower += square & 0xffffffff;
        upper += square >> 32;
    }
    largest = block_reduce(largest, 0ull, Most());
    lower = block_reduce(lower, 0ull, Plus());
    upper = block_reduce(upper, 0ull, Plus());
    if (threadIdx.x == 0) {
        atomicMax(most, largest);
        atomicAdd(low, lower);
        atomicAdd(high, upper);
    }
}
