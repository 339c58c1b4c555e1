// What transposing on the GPU needs beside CuPy's sort.  Host: gpu.py.
#include "matchwood/threads.cuh"

// rows[k] = the row of entry k.  `width` neighbouring threads per row, a power of two.
template <typename I>
__global__ void expand_rows(I n, const I* __restrict__ indptr, int width, I* __restrict__ rows)
{
    long long row = global_thread() / width;
    if (row >= n) return;
    I end = indptr[row + 1];
    for (I k = indptr[row] + (I)(threadIdx.x % width); k < end; k += width) rows[k] = (I)row;
}

// starts[r] = the first place in `sorted` whose number, shifted right, is at least r; r = 0 .. n.
// One thread per r, by bisection.
template <typename S, typename I>
__global__ void first_places(long long n, long long m, const S* __restrict__ sorted, int shift,
                             I* __restrict__ starts)
{
    long long r = global_thread();
    if (r > n) return;
    long long low = 0, high = m;
    while (low < high) {
        long long middle = (low + high) / 2;
        if ((long long)(sorted[middle] >> shift) < r)
            low = middle + 1;
        else
            high = middle;
    }
    starts[r] = (I)low;
}
