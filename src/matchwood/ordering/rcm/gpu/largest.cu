// The orders of the largest component, of the other ones, and of the vertices without neighbours, made
// one.  Host side: __init__.py.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// A component of a few vertices, by one thread: where it starts, and its order.  The rule: __init__.py
// of the folder above, for graphs that are not small.
//
// Vertices are numbered as they ascend, so that ties are broken as everywhere.  Sets of them are words.

constexpr int TINY = 32;  // vertices, as many as a word has bits

template <typename I>
struct Tiny {
    I vertex[TINY], degree[TINY];
    unsigned near[TINY];  // neighbours of each
    int size;

    __device__ int number(I v) const
    {
        int k = 0;
        while (k < size && vertex[k] != v) ++k;
        return k;
    }

    // Gather the component of v.  Its size; 0 if v is not the smallest of it, more than TINY if it is too large.
    __device__ int gather(const I* indptr, const I* indices, I v)
    {
        vertex[0] = v;
        size = 1;
        for (int k = 0; k < size; ++k) {
            for (I at = indptr[vertex[k]]; at < indptr[vertex[k] + 1]; ++at) {
                I w = indices[at];
                if (w < v) return 0;
                if (number(w) < size) continue;
                if (size == TINY) return TINY + 1;
                vertex[size++] = w;
            }
        }
        return size;
    }

    // After `gather`: sort the vertices, and find which are neighbours.
    __device__ void link(const I* indptr, const I* indices)
    {
        for (int k = 1; k < size; ++k) {
            I v = vertex[k];
            int at = k;
            for (; at > 0 && vertex[at - 1] > v; --at) vertex[at] = vertex[at - 1];
            vertex[at] = v;
        }
        for (int k = 0; k < size; ++k) {
            I begin = indptr[vertex[k]], end = indptr[vertex[k] + 1];
            degree[k] = end - begin;
            near[k] = 0;
            for (I at = begin; at < end; ++at) near[k] |= 1u << (number(indices[at]) & (TINY - 1));
        }
    }

    // The vertex of least (degree, vertex) of a set that is not empty.
    __device__ int least(unsigned set) const
    {
        int best = __ffs(set) - 1;
        for (; set != 0; set &= set - 1)
            if (degree[__ffs(set) - 1] < degree[best]) best = __ffs(set) - 1;
        return best;
    }

    struct SearchResult {
        int width, depth, far;
    };

    __device__ SearchResult search(int start) const
    {
        unsigned front = 1u << start, seen = front;
        SearchResult found{1, 0, start};
        while (true) {
            unsigned next = 0;
            for (unsigned left = front; left != 0; left &= left - 1) next |= near[__ffs(left) - 1];
            next &= ~seen;
            if (next == 0) break;
            int both = __popc(front) + __popc(next);
            found.width = both > found.width ? both : found.width;
            found.depth += 1;
            seen |= next;
            front = next;
        }
        found.far = least(front);
        return found;
    }

    __device__ int find_start() const
    {
        int start = least(size == TINY ? ~0u : (1u << size) - 1);
        SearchResult best = search(start);
        while (true) {
            int other = best.far;
            SearchResult found = search(other);
            if (found.width >= best.width) return start;
            start = other;
            if (found.depth <= best.depth) return start;
            best = found;
        }
    }

    // give(place, vertex) in the order of Cuthill and McKee.
    template <typename Give>
    __device__ void order(int start, Give give) const
    {
        int queue[TINY], tail = 1;
        queue[0] = start;
        unsigned open = (size == TINY ? ~0u : (1u << size) - 1) & ~(1u << start);
        for (int head = 0; head < tail; ++head) {
            give(head, vertex[queue[head]]);
            for (unsigned children = near[queue[head]] & open; children != 0;) {
                int child = least(children);
                queue[tail++] = child;
                children &= ~(1u << child);
                open &= ~(1u << child);
            }
        }
    }
};

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
