// A stencil at every point of a grid.  Host side: gpu.py.  Numbering and order: reference.py.
//
//   count_rows   one thread per point: how many entries its row has
//   fill_rows    one thread per point: the row
//
// A point writes its own row only.
#include "matchwood/threads.cuh"

// Number of point (z, y, x).  `starts` is null where points are numbered row by row.
__device__ __forceinline__ long long number(long long z, long long y, long long x, long long ny,
                                            long long nx, const long long* starts)
{
    if (!starts) return (z * ny + y) * nx + x;
    long long s = y + x;
    return starts[s] + y - max(0ll, s - (nx - 1));
}

__device__ __forceinline__ bool inside(long long z, long long y, long long x, long long nz,
                                       long long ny, long long nx)
{
    return 0 <= z && z < nz && 0 <= y && y < ny && 0 <= x && x < nx;
}

template <typename I>
__global__ void count_rows(long long nz, long long ny, long long nx, int size,
                           const long long* __restrict__ offsets,
                           const long long* __restrict__ starts, I* __restrict__ counts)
{
    long long point = global_thread();
    if (point >= nz * ny * nx) return;
    long long z = point / (ny * nx), y = point / nx % ny, x = point % nx;
    I entries = 0;
    for (int k = 0; k < size; ++k) {
        const long long* o = offsets + 3 * k;
        entries += inside(z + o[0], y + o[1], x + o[2], nz, ny, nx);
    }
    counts[number(z, y, x, ny, nx, starts)] = entries;
}

template <typename I, typename W>
__global__ void fill_rows(long long nz, long long ny, long long nx, int size,
                          const long long* __restrict__ offsets, const W* __restrict__ values,
                          const long long* __restrict__ starts, const I* __restrict__ indptr,
                          I* __restrict__ indices, W* __restrict__ data)
{
    long long point = global_thread();
    if (point >= nz * ny * nx) return;
    long long z = point / (ny * nx), y = point / nx % ny, x = point % nx;
    long long place = indptr[number(z, y, x, ny, nx, starts)];
    for (int k = 0; k < size; ++k) {
        const long long* o = offsets + 3 * k;
        if (!inside(z + o[0], y + o[1], x + o[2], nz, ny, nx)) continue;
        indices[place] = (I)number(z + o[0], y + o[1], x + o[2], ny, nx, starts);
        data[place++] = values[k];
    }
}
