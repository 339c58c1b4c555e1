// Connected components of a partition; few rows are sent.  Host side: gpu.py; steps: __init__.py.
//
//   join_two       a thread per row: its vertex with the first two neighbours, which the host has gathered
//   read_two       ... which it reads from pinned memory of the host
//   list_rest      a thread per vertex of the partition: those outside the largest component whose rows have more
//   join_rows      32 rows to a warp, their entries shared out evenly
//   join_forest    a thread per vertex: the edges of another device's forest
//   flatten_forest, mark_roots, write_labels
//
// The forest is one array, parent[v] <= v (union_find.cuh, with its races): a root is the smallest vertex of its
// tree, so the labels do not depend on scheduling, nor on which component is taken for the largest.
#include "matchwood/edges.cuh"
#include "matchwood/frontier.cuh"
#include "matchwood/union_find.cuh"

template <typename I>
__device__ __forceinline__ void join_ends_of(I* parent, I u, I v)
{
    I a = load_relaxed(&parent[u]), b = load_relaxed(&parent[v]);
    if (a != b) join_sets(parent, a, b);
}

template <typename I>
__global__ void begin_forest(long long n, I* parent)
{
    long long v = global_thread();
    if (v < n) parent[v] = (I)v;
}

// two[2 i], two[2 i + 1]: the first neighbours of the i-th row from `base` on, `none` for none, ~vertex where the row has
// more.  more[i] becomes 1 there.
template <typename I>
__global__ void join_two(long long rows, long long base, I none, const I* two, unsigned char* more, I* parent)
{
    long long i = global_thread();
    if (i >= rows) return;
    I u = (I)(base + i), first = two[2 * i], second = two[2 * i + 1];
    if (first >= 0) join_ends_of(parent, u, first);
    bool has_more = second < 0 && second != none;
    more[i] = has_more;
    if (second != none) join_ends_of(parent, u, has_more ? (I)~second : second);
}

// Rows lo to hi - 1 lie in memory of the host that the device reads.  sent[0] counts the neighbours that were read.
template <typename I, typename P>
__global__ void read_two(long long lo, long long hi, const P* indptr, const I* indices, unsigned char* more, I* parent,
                         unsigned long long* sent)
{
    long long u = lo + global_thread();
    long long begin = 0, degree = 0;
    if (u < hi) begin = indptr[u], degree = indptr[u + 1] - begin;
    I first = I(-1), second = I(-1);
    if (degree > 0) first = indices[begin];
    if (degree > 1) second = indices[begin + 1];
    int read = __popc(__ballot_sync(ALL, degree > 0)) + __popc(__ballot_sync(ALL, degree > 1));
    if (lane() == 0 && read > 0) take(sent, (unsigned long long)read);
    if (u >= hi) return;
    more[u - lo] = degree > 2;
    if (degree > 0) join_ends_of(parent, (I)u, first);
    if (degree > 1) join_ends_of(parent, (I)u, second);
}

// Caller: the forest is flat.
template <typename I>
__global__ void list_rest(long long lo, long long hi, I largest, const unsigned char* more, const I* parent, I* rest,
                          unsigned long long* count)
{
    long long u = lo + global_thread();
    append(rest, count, (I)u, u < hi && more[u - lo] && parent[u] != largest);
}

// Row i is the entries begins[i] to ends[i] - 1, of which first to last - 1 lie at `columns`.
template <typename I, typename P>
__global__ void join_rows(long long rows, const I* ids, long long base, const P* begins, const P* ends, long long first,
                          long long last, const I* columns, I* parent)
{
    for (long long from = global_thread() - lane(); from < rows; from += all_threads()) {
        long long i = from + lane(), begin = 0, end = 0;
        I u = 0;
        if (i < rows) {
            begin = begins[i] < first ? first : (long long)begins[i];
            end = ends[i] > last ? last : (long long)ends[i];
            if (end < begin) end = begin;
            u = ids != nullptr ? ids[i] : (I)(base + i);
        }
        WarpRows<long long>(begin, end).for_entries([&](int owner, long long entry, bool is_entry) {
            I v = __shfl_sync(ALL, u, owner);
            if (is_entry) join_ends_of(parent, v, columns[entry - first]);
        });
    }
}

template <typename I>
__global__ void join_forest(long long n, const I* other, I* parent)
{
    long long v = global_thread();
    if (v < n && other[v] != (I)v) join_ends_of(parent, (I)v, other[v]);
}

template <typename I>
__global__ void flatten_forest(long long n, I* parent)
{
    long long v = global_thread();
    if (v >= n) return;
    I up = load_relaxed(&parent[v]), root = find_root(parent, up);
    if (root != up) store_relaxed(&parent[v], root);
}

template <typename I>
__global__ void mark_roots(long long n, const I* parent, I* numbers)
{
    long long v = global_thread();
    if (v < n) numbers[v] = parent[v] == (I)v ? I(1) : I(0);
}

// numbers[v]: roots up to v, itself counted.
template <typename I>
__global__ void write_labels(long long n, const I* parent, const I* numbers, I* label)
{
    long long v = global_thread();
    if (v < n) label[v] = numbers[parent[v]] - 1;
}
