// Graphs of random points.  Host side: gpu.py.  Points and cells: reference.py; see also cpu.py.
//
//   draw_points    one thread per coordinate
//   count_cells    one thread per point: points of each cell
//   place_points   one thread per point: its slot among those of its cell
//   join           one thread per slot: edges to later slots, counted or written
//   measure        one warp per row: lengths of its edges
//
// Races: cell counts and cursors change by atomicAdd alone.  Counts do not depend on the order of
// arrival.  Slots within a cell do; they decide the order of the edge list, which gpu.py sorts.
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"

typedef unsigned long long u64;

constexpr int BITS = 31;  // of a coordinate

__global__ void draw_points(long long n, int dim, unsigned long long key, int* __restrict__ points)
{
    long long k = global_thread();
    if (k >= n * dim) return;
    points[k % dim * n + k / dim] = (int)(mix64(key + (u64)k * GOLDEN) >> (64 - BITS));
}

// Cells are numbered with the first coordinate running fastest.
__device__ __forceinline__ long long cell_of(long long n, int dim, const int* points, long long v,
                                             long long width, long long cells)
{
    long long number = 0;
    for (int i = dim - 1; i >= 0; --i) number = number * cells + points[i * n + v] / width;
    return number;
}

__global__ void count_cells(long long n, int dim, const int* __restrict__ points, long long width,
                            long long cells, int* counts)
{
    long long v = global_thread();
    if (v < n) atomicAdd(&counts[cell_of(n, dim, points, v, width, cells)], 1);
}

template <typename I>
__global__ void place_points(long long n, int dim, const int* __restrict__ points, long long width,
                             long long cells, const long long* __restrict__ starts, int* cursor,
                             I* __restrict__ vertex, int* __restrict__ placed)
{
    long long v = global_thread();
    if (v >= n) return;
    long long c = cell_of(n, dim, points, v, width, cells);
    long long slot = starts[c] + atomicAdd(&cursor[c], 1);
    vertex[slot] = (I)v;
    for (int i = 0; i < dim; ++i) placed[i * n + slot] = points[i * n + v];
}

// Squared distance; a sum of three squares needs all 64 bits.
__device__ __forceinline__ u64 square(long long n, int dim, const int* points, long long u,
                                      long long v)
{
    u64 total = 0;
    for (int i = 0; i < dim; ++i) {
        long long apart = (long long)points[i * n + u] - points[i * n + v];
        total += (u64)(apart * apart);
    }
    return total;
}

// COUNTING: counts[slot] = how many edges.  Otherwise counts[slot] says where they go in rows and
// cols.  Cells in a line along x are neighbours in the numbering, so a point is compared with one range of
// slots for each of the lines around it, beginning with its own.
template <typename I, bool COUNTING>
__global__ void join(long long n, int dim, long long width, long long nz, long long ny,
                     long long nx, unsigned long long limit, const long long* __restrict__ starts,
                     const I* __restrict__ vertex, const int* __restrict__ placed,
                     long long* __restrict__ counts, I* __restrict__ rows, I* __restrict__ cols)
{
    long long slot = global_thread();
    if (slot >= n) return;
    long long x = placed[slot] / width, y = placed[n + slot] / width;
    long long z = dim == 3 ? placed[2 * n + slot] / width : 0;
    long long x_first = max(x - 1, 0ll), x_last = min(x + 1, nx - 1);
    long long place = COUNTING ? 0 : counts[slot];
    for (long long to_z = z; to_z <= min(z + 1, nz - 1); ++to_z)
        for (long long to_y = to_z == z ? y : max(y - 1, 0ll); to_y <= min(y + 1, ny - 1); ++to_y) {
            long long line = (to_z * ny + to_y) * nx;
            long long end = starts[line + x_last + 1];
            for (long long k = max(starts[line + x_first], slot + 1); k < end; ++k) {
                if (square(n, dim, placed, slot, k) > limit) continue;
                if (!COUNTING) rows[place] = vertex[slot], cols[place] = vertex[k];
                ++place;
            }
        }
    if (COUNTING) counts[slot] = place;
}

template <typename I, typename W>
__global__ void measure(long long n, int dim, const int* __restrict__ points,
                        const I* __restrict__ indptr, const I* __restrict__ indices,
                        W* __restrict__ data)
{
    long long u = global_thread() / WARP;
    if (u >= n) return;  // the whole warp leaves together
    long long end = indptr[u + 1];
    for (long long k = indptr[u] + lane(); k < end; k += WARP)
        data[k] = (W)(sqrt((double)square(n, dim, points, u, indices[k])) * (1.0 / (1ll << BITS)));
}
