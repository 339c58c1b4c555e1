// The orders of the largest component, of the other ones, and of the vertices without neighbours, made
// one.  Host side: gpu.py.
#include "matchwood/threads.cuh"

// Vertices 0 to size - 1 of a list go where they belong in the whole order: behind those before them in
// the list, those of another list whose keys are smaller, and the largest component if its key is.
// The key of a vertex is the smallest one of its component; the keys of both lists ascend.
template <typename I>
__global__ void merge_list(I size, const I* vertices, const I* keys, I others, const I* other_keys, I largest_key,
                           I largest_size, I* order)
{
    long long i = global_thread();
    if (i >= size) return;
    I key = keys[i], low = 0, high = others;
    while (low < high) {
        I middle = low + (high - low) / 2;
        if (other_keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    order[i + low + (largest_key < key ? largest_size : I(0))] = vertices[i];
}

// Mark the vertices of a list.
template <typename I>
__global__ void mark_vertices(I size, const I* vertices, unsigned char* marks)
{
    long long i = global_thread();
    if (i < size) marks[vertices[i]] = 1;
}

// The columns of the entries of some rows of a symmetric pattern, which have no neighbours outside of
// them, as numbers of these rows.  One thread per entry.
template <typename I>
__global__ void copy_rows(I entries, I rows, const I* starts, const I* vertices, const I* indptr, const I* indices,
                          const I* number, I* copied)
{
    long long at = global_thread();
    if (at >= entries) return;
    I low = 0, high = rows;
    while (high - low > 1) {
        I middle = low + (high - low) / 2;
        if (starts[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    copied[at] = number[indices[indptr[vertices[low]] + (I)at - starts[low]]];
}
