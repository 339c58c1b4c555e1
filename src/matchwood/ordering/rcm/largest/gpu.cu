// The orders of the largest component, of the other ones, and of the vertices without neighbours, made
// one.  Host side: gpu.py.
#include "matchwood/atomics.cuh"
#include "matchwood/tiny.cuh"

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

// Mark the vertices that are not reached (their owner is n) and have neighbours.  *smallest is lowered
// to the smallest one that is reached.
template <typename I>
__global__ void mark_rest(I n, const I* indptr, const I* owner, unsigned char* marks, I* smallest)
{
    long long v = global_thread();
    bool reached = v < n && owner[v] < n;
    if (v < n) marks[v] = !reached && indptr[v + 1] > indptr[v];
    unsigned votes = __ballot_sync(ALL, reached);
    if (votes == 0 || lane() != __ffs(votes) - 1) return;
    if (load_relaxed(smallest) > (I)v) lower_to(smallest, (I)v);
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

// How many vertices the component of each vertex of a list has if it is the smallest of them, else 0.
// The list has all vertices of its components.  *large is set where a component has too many.
template <typename I>
__global__ void measure_tiny(I size, const I* vertices, const I* indptr, const I* indices, I* sizes, I* large)
{
    long long i = global_thread();
    if (i >= size) return;
    Tiny<I> tiny;
    int found = tiny.gather(indptr, indices, vertices[i]);
    if (found > TINY) store_relaxed(large, I(1));
    sizes[i] = found > TINY ? I(0) : I(found);
}

// Order the components of at most TINY vertices, one thread for each.  `starts` are the sums of the sizes.
template <typename I>
__global__ void order_tiny(I size, const I* vertices, const I* starts, const I* indptr, const I* indices,
                           I* ordered, I* keys)
{
    long long i = global_thread();
    if (i >= size || starts[i + 1] == starts[i]) return;
    Tiny<I> tiny;
    tiny.gather(indptr, indices, vertices[i]);
    tiny.link(indptr, indices);
    tiny.order(tiny.find_start(), [&](int place, I v) {
        ordered[starts[i] + place] = v;
        keys[starts[i] + place] = vertices[i];
    });
}
