// Where components start: the vertex of least (degree, vertex), then the rounds of searches of
// `pseudo_peripheral_vertex`, for all components at once; and the measures of the orders that a
// small graph tries.  Host side: start.py.
//
// label[v] is the component of v.  A word of a component is raised or lowered by atomics alone, and
// least and most do not depend on the order of arrival; a warp whose vertices all belong to one
// component reduces first, and reading the word before saves most atomics.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// Lower, or raise, the words of the vertices' components.  All lanes of the warp call; `open` is true
// for those that have a vertex.
template <typename I>
__device__ __forceinline__ void lower_word(I* words, I label, I value, bool open, I highest)
{
    I first = __shfl_sync(ALL, label, 0);
    if (__all_sync(ALL, label == first)) {
        value = warp_reduce(open ? value : highest, Least());
        open = lane() == 0 && value < highest;
    }
    if (open && load_relaxed(&words[label]) > value) lower_to(&words[label], value);
}

template <typename I>
__device__ __forceinline__ void raise_word(I* words, I label, I value, bool open)
{
    I first = __shfl_sync(ALL, label, 0);
    if (__all_sync(ALL, label == first)) {
        value = warp_reduce(open ? value : I(-1), Most());
        open = lane() == 0 && value >= 0;
    }
    if (open && load_relaxed(&words[label]) < value) raise_to(&words[label], value);
}

// Is v a vertex of the last level of its component's search?  Without levels, every vertex is.
template <typename I>
__device__ __forceinline__ bool is_last(const I* level, const I* depth, I v, I label)
{
    return level == nullptr || (level[v] >= 0 && level[v] == depth[label]);
}

// The least degree, and after it the least vertex of that degree, of each component; n at first.
template <typename I>
__global__ void least_degree(I n, const I* indptr, const I* label, const I* level, const I* depth, I* least)
{
    long long thread = global_thread();
    I v = thread < n ? (I)thread : n - 1, mine = label[v];
    bool open = thread < n && is_last(level, depth, v, mine);
    lower_word(least, mine, I(indptr[v + 1] - indptr[v]), open, n);
}

template <typename I>
__global__ void least_vertex(
    I n, const I* indptr, const I* label, const I* level, const I* depth, const I* least, I* vertex)
{
    long long thread = global_thread();
    I v = thread < n ? (I)thread : n - 1, mine = label[v];
    bool open = thread < n && is_last(level, depth, v, mine) && indptr[v + 1] - indptr[v] == least[mine];
    lower_word(vertex, mine, v, open, n);
}

// The largest level of each component; -1 at first, and where there was no search.
template <typename I>
__global__ void deepest(I n, const I* label, const I* level, I* depth)
{
    long long thread = global_thread();
    I v = thread < n ? (I)thread : n - 1;
    raise_word(depth, label[v], level[v], thread < n && level[v] >= 0);
}

// Vertices of each level, the levels of a component one after the other from end - (depth + 1) on.
template <typename I>
__global__ void count_levels(I n, const I* label, const I* level, const I* depth, const I* end, I* count)
{
    long long thread = global_thread();
    I v = thread < n ? (I)thread : n - 1, mine = label[v], its = thread < n ? level[v] : I(-1);
    I slot = its >= 0 ? end[mine] - depth[mine] - 1 + its : I(-1);
    unsigned same = __match_any_sync(ALL, slot);
    if (slot >= 0 && (same & lanes_below()) == 0) take(&count[slot], I(__popc(same)));
}

// The most vertices in two levels that follow one another; 0 at first.
template <typename I>
__global__ void widest(
    I n, const I* label, const I* level, const I* depth, const I* end, const I* count, I* width)
{
    long long thread = global_thread();
    I v = thread < n ? (I)thread : n - 1, mine = label[v], its = thread < n ? level[v] : I(-1), both = 0;
    if (its >= 0) {
        I slot = end[mine] - depth[mine] - 1 + its;
        both = count[slot] + (its < depth[mine] ? count[slot + 1] : I(0));
    }
    raise_word(width, mine, both, its >= 0);
}

// What a search from x found, set against the one from v, for each component that is open: go on
// from x, or close it with the start chosen.  The next vertices to search from are listed.
template <typename I>
__global__ void decide(I components, bool first, const I* found_width, const I* found_depth, const I* far, I* v,
                       I* x, I* width, I* depth, bool* open, I* next, I* next_size)
{
    long long c = global_thread();
    if (c >= components || !open[c]) return;
    if (!first && found_width[c] >= width[c]) {
        open[c] = false;
        return;
    }
    if (!first) v[c] = x[c];
    if (!first && found_depth[c] <= depth[c]) {
        open[c] = false;
        return;
    }
    width[c] = found_width[c];
    depth[c] = found_depth[c];
    x[c] = far[c];
    next[take(next_size, I(1))] = far[c];
}

// The component of v; without labels there is only one.
template <typename I>
__device__ __forceinline__ I component_of(const I* label, I v)
{
    return label == nullptr ? I(0) : label[v];
}

// The last vertex that has the degree of `first`, a vertex of each component; -1 at first.
template <typename I>
__global__ void last_alike(I n, const I* indptr, const I* label, const I* first, I* last)
{
    long long thread = global_thread();
    I v = thread < n ? (I)thread : n - 1, mine = component_of(label, v), u = first[mine];
    bool open = thread < n && indptr[v + 1] - indptr[v] == indptr[u + 1] - indptr[u];
    raise_word(last, mine, v, open);
}

// The bandwidth of each component, in an order from its start; 0 at first.  `size` vertices are in the
// order, and owner[v] is where in it the earliest neighbour of v is, -1 for a start.  Of two neighbours the
// later one counts: none of its neighbours is farther away before it than its owner.  Components may be
// mixed in the order; then `place` has the places without the others between.
template <typename I>
__global__ void widest_band(I size, const I* order, const I* owner, const I* place, const I* label, I* band)
{
    long long thread = global_thread();
    I at = thread < size ? (I)thread : size - 1, v = order[at], first = owner[v], gap = 0;
    bool open = thread < size && first >= 0;
    if (open) gap = place == nullptr ? at - first : place[v] - place[order[first]];
    raise_word(band, component_of(label, v), gap, open);
}
