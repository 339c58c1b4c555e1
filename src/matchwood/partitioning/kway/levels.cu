// What is asked of a level beside its refinement: its cut, the edges that may be contracted, and the smallest
// vertices of blocks.  Host side: gpu.py.  Races: first_of_blocks lowers words by atomics.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// `width` lanes per vertex: add twice the weight of the edges between blocks.
template <typename I>
__global__ void add_cut(I n, const I* indptr, const I* indices, const long long* data, const int* labels, int width,
                        unsigned long long* total)
{
    long long v = global_thread() / width;
    unsigned long long sum = 0;
    if (v < n)
        for (long long e = indptr[v] + threadIdx.x % width, end = indptr[v + 1]; e < end; e += width)
            if (labels[indices[e]] != labels[v]) sum += data == nullptr ? 1 : data[e];
    sum = block_reduce(sum, 0ull, Plus());
    if (threadIdx.x == 0 && sum != 0) atomicAdd(total, sum);
}

// A warp to a vertex: the edges whose ends together weigh at most `limit` and have one label, where there are
// labels.  lengths: their number in each row; then, where out_indices is not null, the edges themselves.
template <typename I>
__global__ void light_edges(I n, const I* indptr, const I* indices, const long long* data, const long long* weights,
                            const int* labels, long long limit, I* lengths, const I* out_indptr, I* out_indices,
                            double* out_data)
{
    long long v = global_thread() / WARP;
    if (v >= n) return;
    long long at = out_indices == nullptr ? 0 : (long long)out_indptr[v];
    for (long long first = indptr[v], end = indptr[v + 1]; first < end; first += WARP) {
        long long e = first + lane();
        I u = e < end ? indices[e] : I(0);
        bool may = e < end && weights[v] + weights[u] <= limit && (labels == nullptr || labels[v] == labels[u]);
        unsigned votes = __ballot_sync(ALL, may);
        if (may && out_indices != nullptr) {
            long long place = at + __popc(votes & lanes_below());
            out_indices[place] = u;
            out_data[place] = data == nullptr ? 1.0 : (double)data[e];
        }
        at += __popc(votes);
    }
    if (out_indices == nullptr && lane() == 0) lengths[v] = (I)at;
}

// One thread to a vertex: the smallest vertex of each block.  first: more than any vertex before.
template <typename I>
__global__ void first_of_blocks(I n, const int* labels, I* first)
{
    long long v = global_thread();
    if (v < n && load_relaxed(&first[labels[v]]) > (I)v) lower_to(&first[labels[v]], (I)v);
}
